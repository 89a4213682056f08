// Requests for objects until each has its response or its error: retries, second requests, the limit in
// flight.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/seed.h"
#include "object/policy.h"
#include "object/transport.h"

namespace weir::object {

// Bytes [offset, offset + size) of an object; the last ones where it is shorter.
struct Range {
  int64_t offset = 0, size = 0;
};

struct Response {
  int status = 0;
  Bytes body;
  std::string etag;              // as the server gave it, with its quotes; empty: none
  std::optional<int64_t> total;  // bytes of the whole object, where the response says so
};

// One request, as often as it has to be sent.
struct Operation {
  std::string method = "GET";
  std::string host, key;  // bucket and key, or host and path
  std::vector<Header> query, headers;
  Bytes body;
  std::optional<Range> range;
  std::string etag;             // not empty: any other is an error, and the data is not given
  std::optional<int64_t> size;  // of the body, where it is known
  uint64_t max_bytes = 256 << 20;
  bool may_hedge = false;                      // has no effect but its response
  std::function<void(Result<Response>)> done;  // once, on the thread of the loop; must not block
};

// Makes the request of an operation: address, headers, signature. One thread at a time.
class RequestBuilder {
 public:
  virtual ~RequestBuilder() = default;
  virtual Result<HttpRequest> Build(const Operation& operation) = 0;
  // Looks at a refusal (a status of 300 and above); true: another request would do, once, such as one to the
  // region that the response names.
  virtual bool LearnFrom(const Operation&, const HttpResponse&) { return false; }
  // For messages: "s3://bucket/key".
  virtual std::string NameOf(const Operation& operation) const = 0;
};

struct RequestCounts {
  int64_t operations = 0, requests = 0, retries = 0, hedges = 0, hedges_won = 0, refused = 0;
};

// Errors that `done` gets: kNotFound (404); kInvalidArgument (another 4xx: credentials, names); kCorrupt (the
// object changed, or came in another range than asked); kUnsupported (it is stored compressed); kOverloaded
// (refused until the retries were used up); kIo (no whole response); kCancelled. One thread at a time; the
// transport's callbacks come within Step.
class RequestLoop {
 public:
  struct Options {
    int retries = 6;  // of one operation
    BackoffOptions backoff;
    DepthLimit::Options depth;
    bool hedge = true;
    Seed seed{1};
  };
  // All must outlive it.
  RequestLoop(Transport& transport, RequestBuilder& builder, const Clock& clock, Options options);

  void Submit(Operation operation);
  // Sends what is due. Returns when to be called again if nothing comes before.
  Instant Step();
  // Answers all that is open with kCancelled.
  void CancelAll();
  bool is_idle() const { return open_.empty(); }
  int depth() const { return depth_.limit(); }
  const RequestCounts& counts() const { return counts_; }

 private:
  struct Attempt {
    uint64_t transfer = 0;
    Instant sent;
    bool is_hedge = false;
  };
  struct Open {
    Operation operation;
    int retries = 0;
    bool has_learned = false;
    std::optional<Error> last;
    std::map<uint64_t, Attempt> attempts;  // by number
  };
  enum class Timer { kRetry, kHedge };

  void Send(uint64_t id, bool is_hedge);
  void HedgeIfQuiet(uint64_t id, Instant now);
  void Ended(uint64_t id, uint64_t attempt, TransportResult result);
  void RetryOrFail(uint64_t id, Error error, bool may_pass, std::optional<Duration> at_least);
  void Finish(uint64_t id, Result<Response> result);
  Result<Response> Check(const Operation& operation, HttpResponse& response) const;

  Transport& transport_;
  RequestBuilder& builder_;
  const Clock& clock_;
  const Options options_;
  Random random_;
  RetryBudget budget_;
  HedgePolicy hedge_;
  DepthLimit depth_;
  RequestCounts counts_;
  std::map<uint64_t, Open> open_;
  std::deque<uint64_t> waiting_;
  std::multimap<Instant, std::pair<uint64_t, Timer>> timers_;
  int in_flight_ = 0;
  uint64_t last_id_ = 0, last_attempt_ = 0;
};

}  // namespace weir::object
