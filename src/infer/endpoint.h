// A Service that also tells of itself: a server elsewhere, or the models of this process.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "infer/service.h"
#include "infer/tensor.h"

namespace weir::infer {

// The facts of a model that a caller needs before its first call.
struct ModelInfo {
  std::string name;
  std::vector<std::string> versions;  // ready ones, as the server names them
  std::string platform;               // "onnxruntime_onnx", ...
  std::vector<TensorInfo> inputs;     // with the batch dimension, -1, where max_batch > 0
  std::vector<TensorInfo> outputs;
  int max_batch = 0;  // 0: the dimensions are all there are
  // Levels of dynamic batching; 0 if the model has none. Absent if the server hides its configuration.
  std::optional<int> priority_levels;
  std::map<std::string, std::string> parameters;  // of its configuration; "recipe" and "labels" among them
};

// A server's counters for one model since it was loaded: the time of all requests, by phase.
struct PhaseTotals {
  struct Phase {
    uint64_t count = 0;  // requests
    Duration total{};

    Phase& operator+=(const Phase& more) {
      count += more.count;
      total += more.total;
      return *this;
    }
    Phase operator-(const Phase& before) const { return {count - before.count, total - before.total}; }
  };
  uint64_t rows = 0;     // inferred
  uint64_t batches = 0;  // executed
  Phase success, fail;   // whole requests
  Phase queue, compute_input, compute_infer, compute_output;

  PhaseTotals& operator+=(const PhaseTotals& more);
  PhaseTotals operator-(const PhaseTotals& before) const;  // what has come since
};

inline PhaseTotals& PhaseTotals::operator+=(const PhaseTotals& more) {
  rows += more.rows;
  batches += more.batches;
  success += more.success;
  fail += more.fail;
  queue += more.queue;
  compute_input += more.compute_input;
  compute_infer += more.compute_infer;
  compute_output += more.compute_output;
  return *this;
}

inline PhaseTotals PhaseTotals::operator-(const PhaseTotals& before) const {
  return {.rows = rows - before.rows,
          .batches = batches - before.batches,
          .success = success - before.success,
          .fail = fail - before.fail,
          .queue = queue - before.queue,
          .compute_input = compute_input - before.compute_input,
          .compute_infer = compute_infer - before.compute_infer,
          .compute_output = compute_output - before.compute_output};
}

// A part of a shared-memory region that the server knows.
struct RegionPart {
  std::string region;
  uint64_t offset = 0;
  uint64_t byte_size = 0;
};

// The calls that one of several servers took.
struct ServerCalls {
  std::string server;     // as its URL names it
  uint64_t answered = 0;  // with a result
  uint64_t failed = 0;    // with an error that the caller saw
  uint64_t moved = 0;     // failed here and were sent again to another server
};

// How a prepared request is sent, and what is made of its answer.
struct RequestForm {
  enum class Outputs {
    kRead,
    kPassOver,  // the answer must be no error, and its outputs as long as it says itself; the Response has
                // none of them
  };
  Outputs outputs = Outputs::kRead;
  // Where the inputs lie instead of in the request, one for each, or none at all.
  std::vector<std::optional<RegionPart>> input_regions;
  // Where outputs go instead of into the answer, by name.
  std::map<std::string, RegionPart> output_regions;
};

// Thread-safe. These calls block, for as long as the endpoint's own time limit, and must not be made by a
// Completion.
class Endpoint : public Service {
 public:
  // The names of the models that are ready.
  virtual Result<std::vector<std::string>> Models() = 0;
  // `version` empty: the newest. kNotFound when there is no such model.
  virtual Result<ModelInfo> Info(const std::string& model, const std::string& version) = 0;
  // The request as this endpoint sends it; nothing where it has no such form.
  virtual std::shared_ptr<const PreparedRequest> Prepare(const Request&, const RequestForm&) {
    return nullptr;
  }
  // Makes a region of this machine's shared memory known to the server, under a name for RegionPart; `key` is
  // its name for shm_open. kUnsupported where the server has no such thing.
  virtual Status RegisterRegion(const std::string&, const std::string&, uint64_t) {
    return Fail(ErrorCode::kUnsupported, "there is no shared memory with it");
  }
  virtual Status UnregisterRegion(const std::string&) {
    return Fail(ErrorCode::kUnsupported, "there is no shared memory with it");
  }
  // For an endpoint without threads: sends, reads and answers on the calling thread until
  // `until`, give or take what the answers at hand take and, where `awake` is 0, how late a sleep ends. It
  // does not sleep in the last `awake` (or more, where it cannot sleep so finely) but turns on the spot for
  // want of work, and returns how long. One thread at a time, the one that submits; to be stopped for good
  // before the endpoint ends. Others just wait.
  virtual Duration Drive(Instant until, Duration /*awake*/) {
    SleepUntil(until);
    return {};
  }
  // Returns the calls so far by server; empty for an endpoint that has only one.
  virtual std::vector<ServerCalls> Calls() const { return {}; }
  // Returns the server's extensions of the protocol, as its metadata lists them.
  virtual Result<std::vector<std::string>> Extensions() { return {}; }
  // Returns the sum over all versions if `version` is empty. kUnsupported if the server keeps no statistics.
  virtual Result<PhaseTotals> Statistics(const std::string& model, const std::string& version) = 0;
};

}  // namespace weir::infer
