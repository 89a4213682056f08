// One inference on its way: what is asked, who waits for the answer, and when each thing happened.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "infer/device_stages.h"
#include "infer/tensor.h"

namespace weir::infer {

using Parameter = std::variant<bool, int64_t, uint64_t, double, std::string>;

// A request in the form in which it leaves, written once to be sent many times. Immutable, so any number of
// threads may send it. Made by Endpoint::Prepare and understood by the endpoint that made it alone.
class PreparedRequest {
 public:
  virtual ~PreparedRequest() = default;
};

struct Request {
  std::string model;
  std::string version;  // empty: the newest
  std::string id;
  std::vector<Tensor> inputs;
  std::vector<std::string> outputs;  // wanted, by name; empty: all
  std::optional<Instant> deadline;   // an answer after it is of no use
  int priority = 0;                  // 1 is the highest; 0: the model's default
  std::map<std::string, Parameter> parameters;
  bool durations = false;     // a server is to tell with the answer where its time went
  std::stop_token cancelled;  // asked for when who waits has left: what has not begun is not computed
  // Sent as it is where there is one: of all else only deadline and cancelled then count.
  std::shared_ptr<const PreparedRequest> prepared;
};

// Where a server's time of one request went, from the request's first byte until its outputs were ready to be
// written. The parts add up to it.
struct ServerDurations {
  Duration receive{};                                                    // from the first byte to the last
  Duration queue{}, compute_input{}, compute_infer{}, compute_output{};  // as in the statistics
  Duration rest{};  // what these leave: reading, checking, preparing. Unclamped: below 0 where they overlap

  Duration whole() const { return receive + queue + compute_input + compute_infer + compute_output + rest; }
  bool operator==(const ServerDurations&) const = default;
};

struct Response {
  std::string model;
  std::string version;
  std::string id;
  std::vector<Tensor> outputs;
  int64_t executed_batch = 0;  // rows that the engine computed together, this call's among them; 0: not known
  std::optional<ServerDurations> durations;  // where a server was asked for them
};

// Stamps of one clock. Each is set by the one who does the thing; what did not happen stays unset.
struct Times {
  std::optional<Instant> planned;  // when the schedule wanted it sent
  std::optional<Instant>
      sent;  // handed to the Service; where that is left to a client, when it began to leave
  std::optional<Instant> written;      // its last byte was handed to the kernel, where a client tells
  std::optional<Instant> first_byte;   // of the answer, where there is a wire
  std::optional<Instant> queued;       // in the queue of the Runner
  std::optional<Instant> taken;        // left the queue: its batch is being put together
  std::optional<Instant> handed;       // to the engine, which may be busy with what came before
  std::optional<Instant> started;      // the engine began
  std::optional<Instant> done;         // the engine ended
  std::optional<DeviceStages> device;  // of its batch, where an accelerator tells: within started to done
};

// The promise to answer: called exactly once, with the answer or an error. Dropping it unanswered answers
// kCancelled, so no request is lost. Move-only. The function runs on whichever thread answers, never under a
// lock; it must not block.
class Completion {
 public:
  using Function = std::move_only_function<void(Result<Response>, const Times&)>;

  Completion() = default;
  explicit Completion(Function function) : function_(std::move(function)) {}
  Completion(Completion&& other) noexcept : function_(std::exchange(other.function_, nullptr)) {}
  Completion& operator=(Completion&& other) noexcept {
    if (this != &other) {
      Drop();
      function_ = std::exchange(other.function_, nullptr);
    }
    return *this;
  }
  ~Completion() { Drop(); }

  void Answer(Result<Response> result, const Times& times) {
    if (Function function = std::exchange(function_, nullptr)) function(std::move(result), times);
  }

 private:
  void Drop() {
    if (function_) Answer(Fail(ErrorCode::kCancelled, "dropped without an answer"), Times{});
  }

  Function function_;
};

struct Call {
  Request request;
  Completion completion;
  Times times;

  void Answer(Result<Response> result) { completion.Answer(std::move(result), times); }
};

}  // namespace weir::infer
