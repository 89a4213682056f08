// The difference between the steady clocks of two hosts, by round trips. Pure.
#pragma once

#include <optional>

#include "base/clock.h"

namespace weir::cluster {

// A clock there against the one here.
struct ClockOffset {
  Duration offset{};  // the clock there less the clock here
  Duration error{};   // the true offset differs by at most this: half the round trip

  Instant There(Instant here) const { return here + offset; }
  Instant Here(Instant there) const { return there - offset; }
};

// Keeps the round trip that took least. Its two ways may differ by all of it, so its half bounds the error.
class OffsetEstimator {
 public:
  static constexpr int kRoundTrips = 64;  // as many are usual

  // `sent` and `received` by the clock here, `there` by the other between both.
  void Add(Instant sent, Instant there, Instant received) {
    const Duration trip = received - sent;
    if (trip < Duration{} || (least_ && trip >= 2 * least_->error)) return;
    least_ = ClockOffset{.offset = there - (sent + trip / 2), .error = (trip + 1ns) / 2};
  }
  // Returns nullopt before the first round trip.
  const std::optional<ClockOffset>& Best() const { return least_; }

 private:
  std::optional<ClockOffset> least_;
};

}  // namespace weir::cluster
