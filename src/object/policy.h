// Decisions about requests to a store: when to retry, when to send a second one, how many may be in flight.
// Pure: no thread and no clock. One thread at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/seed.h"

namespace weir::object {

// Tokens that retries cost, so that a store that fails is not asked many times as often as before. The
// figures are those of AWS's clients in "standard" mode: 500 tokens, 5 for a retry, 1 back for a success.
class RetryBudget {
 public:
  static constexpr int kTokens = 500, kRetryCost = 5;

  bool TakeRetry();  // false: none is left
  void Succeeded();

 private:
  int tokens_ = kTokens;
};

struct BackoffOptions {
  Duration first = 50ms, longest = 20s;
};
// Returns the wait before retry `number` (from 0): between nothing and first * 2^number, at most the longest
// ("full jitter", AWS Architecture Blog 2015).
Duration Backoff(const BackoffOptions& options, int number, Random& random);

// When nothing has come for longer than 95 % of the last requests took, a second one is sent and the first
// response counts (Dean and Barroso 2013, "The Tail at Scale"). At most 5 % of the requests are sent twice.
// No second one is sent before twice the median: where all take about as long, it would gain nothing and cost
// the link its bytes.
class HedgePolicy {
 public:
  static constexpr double kQuantile = 0.95, kShare = 0.05;
  static constexpr int kLeastOfMedian = 2;
  static constexpr size_t kWindow = 256, kLeast = 32;  // latencies looked at; with fewer there is no hedge
  static constexpr double kMaxTokens = 10;

  // A request was sent that may be sent twice.
  void Sent();
  void Answered(Duration latency);
  // Returns how long to wait before the second request; nullopt as long as too few were answered.
  std::optional<Duration> Delay() const { return delay_; }
  bool TakeHedge();  // false: the share is used up

 private:
  std::vector<Duration> latencies_;
  size_t next_ = 0, since_ = 0;
  std::optional<Duration> delay_;
  double tokens_ = 0;
};

// The number of requests in flight: one more for each success until the store first refuses, then one more
// for each round; 0.7 times as many when it refuses (503, 429), at most once in a round.
class DepthLimit {
 public:
  struct Options {
    int first = 64, least = 1, most = 256;
  };
  explicit DepthLimit(Options options) : options_(options), limit_(options.first) {}

  int limit() const { return static_cast<int>(limit_); }
  // `sent` is when the request was sent that succeeded or was refused. `was_full`: as many were in flight as
  // allowed; more are tried only then.
  void Succeeded(bool was_full);
  void Refused(Instant sent, Instant now);

 private:
  const Options options_;
  double limit_;
  bool refused_once_ = false;
  Instant last_cut_{};
};

}  // namespace weir::object
