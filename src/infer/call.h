// One inference on its way: what is asked, who waits for the answer, and when each thing happened.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "infer/tensor.h"

namespace weir::infer {

struct Request {
  std::string model;
  std::string version;  // empty: the newest
  std::string id;
  std::vector<Tensor> inputs;
  std::vector<std::string> outputs;  // wanted, by name; empty: all
  std::optional<Instant> deadline;
  int priority = 0;
};

struct Response {
  std::string model;
  std::string version;
  std::string id;
  std::vector<Tensor> outputs;
};

// Stamps of one clock. Each is set by the one who does the thing; what did not happen stays unset.
struct Times {
  std::optional<Instant> planned;     // when the schedule wanted it sent
  std::optional<Instant> sent;        // handed to the Service
  std::optional<Instant> first_byte;  // of the answer, where there is a wire
  std::optional<Instant> queued;      // in the queue of the Runner
  std::optional<Instant> started;     // the engine began
  std::optional<Instant> done;        // the engine ended
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
  void Drop() { Answer(Fail(ErrorCode::kCancelled, "dropped without an answer"), Times{}); }

  Function function_;
};

struct Call {
  Request request;
  Completion completion;
  Times times;

  void Answer(Result<Response> result) { completion.Answer(std::move(result), times); }
};

}  // namespace weir::infer
