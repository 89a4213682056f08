// The Open Inference Protocol v2 with Triton's extensions, as values: what both servers (HTTP and gRPC) read
// from clients and write to them. The codecs turn bytes into these and back; a server implements Api.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "infer/call.h"
#include "infer/choices.h"
#include "infer/endpoint.h"
#include "infer/tensor.h"

namespace weir::oip {

using infer::Protocol;

using infer::RegionPart;

// One output that the client asks for.
struct RequestedOutput {
  std::string name;
  bool binary = false;         // HTTP: after the JSON, not in it; gRPC: always
  int64_t classification = 0;  // above 0: the best so many classes, "value:index[:label]", instead of scores
  std::optional<RegionPart> region;  // write it there; the answer carries no data of it
};

struct InferRequest {
  // Inputs that lie in a region have their shape and type here and no data yet.
  infer::Request request;
  std::vector<std::optional<RegionPart>> input_regions;  // one for each input
  std::vector<RequestedOutput> outputs;                  // empty: all, none of them special
  bool binary_by_default = false;  // HTTP: outputs that are not requested by name are binary
  std::optional<std::chrono::microseconds> timeout;  // "timeout": from the arrival on
  Protocol protocol = Protocol::kHttp;
  // Stamps of the server: the request's first byte and its last, and when it was understood.
  Instant first_byte{}, received{}, decoded{};
};

struct ServerMetadata {
  std::string name, version;
  std::vector<std::string> extensions;
};

struct ModelMetadata {
  std::string name;
  std::vector<std::string> versions;
  std::string platform;
  std::vector<infer::TensorInfo> inputs, outputs;  // with the batch dimension, -1
};

// The configuration in force, in Triton's terms: as JSON with the field names of config.pbtxt, and as the
// bytes of an inference.ModelConfig message.
struct ModelConfig {
  Json json;
  std::string message;
};

// Labels can be many times as long as the rest of a configuration, so they are told to who asks for them.
inline constexpr const char* kLabelsHeader = "weir-labels";

struct DurationCount {
  uint64_t count = 0;
  Duration total{};
};

struct BatchStatistics {
  uint64_t batch_size = 0;
  DurationCount compute_input, compute_infer, compute_output;
};

// Cumulative since the version was loaded.
struct ModelStatistics {
  std::string name, version;
  uint64_t last_inference_ms = 0;  // wall time, since 1970
  uint64_t inference_count = 0;    // rows
  uint64_t execution_count = 0;    // batches
  DurationCount success, fail, queue, compute_input, compute_infer, compute_output;
  std::vector<BatchStatistics> batches;  // by batch size, rising
};

struct IndexEntry {
  std::string name;
  std::string version;  // empty: no version is loaded
  std::string state;    // "READY", "LOADING", "UNLOADING", "UNAVAILABLE"; empty: never loaded
  std::string reason;   // why it is not ready, or why what should take its place could not be loaded
};

struct Region {
  std::string name, key;
  uint64_t offset = 0, byte_size = 0;
};

// Memory of a GPU, by the handle that the client's CUDA exported.
struct CudaRegion {
  std::string name;
  std::string handle;  // raw
  int64_t device = 0;  // as CUDA counts them in the server's process
  uint64_t byte_size = 0;
};

// The outcome of one inference, reported to the server once the response is on its way.
struct RequestTrace {
  std::string model, version;
  Protocol protocol = Protocol::kHttp;
  std::optional<ErrorCode> error;  // none: answered well
  bool malformed = false;          // it could not be read: Infer has not seen it
  Instant first_byte{}, received{}, decoded{}, encoded{}, sent{};
  infer::Times times;
  int64_t executed_batch = 0;
};

// The operations of a server. Thread-safe; nothing in it blocks for longer than a table look-up,
// but Load and Unload, which answer when they are done, on a thread of their own.
class Api {
 public:
  using Done = std::move_only_function<void(Status)>;

  virtual ~Api() = default;
  virtual Status Live() = 0;  // an error is the reason why not
  virtual Status Ready() = 0;
  virtual Status ModelReady(const std::string& model, const std::string& version) = 0;
  virtual ServerMetadata Server() = 0;
  virtual Result<ModelMetadata> Metadata(const std::string& model, const std::string& version) = 0;
  virtual Result<ModelConfig> Config(const std::string& model, const std::string& version) = 0;
  // The labels of the model's classes, one a line; empty where it has none. A client that sends the header
  // kLabelsHeader gets them with the configuration, as the parameter "labels".
  virtual Result<std::string> Labels(const std::string& /*model*/, const std::string& /*version*/) {
    return std::string();
  }
  // `model` empty: of all.
  virtual Result<std::vector<ModelStatistics>> Statistics(const std::string& model,
                                                          const std::string& version) = 0;
  virtual std::vector<IndexEntry> Index(bool ready_only) = 0;
  // The reason why nobody may load or unload a model here.
  virtual Status MayControl() { return {}; }
  // `config`: a configuration as JSON instead of the folder's; empty: the folder's.
  virtual void Load(const std::string& model, const std::string& config, Done done) = 0;
  virtual void Unload(const std::string& model, Done done) = 0;
  virtual Status RegisterRegion(const Region& region) = 0;
  virtual Status UnregisterRegion(const std::string& name) = 0;              // empty: all
  virtual Result<std::vector<Region>> Regions(const std::string& name) = 0;  // empty: all
  // The first region of a device makes the driver's context for it, which takes some tenths of a second.
  virtual Status RegisterCudaRegion(const CudaRegion& region) = 0;
  // The last two answer on machines without a GPU as well: clients call them before and after their work.
  virtual Status UnregisterCudaRegion(
      const std::string& name) = 0;  // empty: all; one that is not there: well
  virtual Result<std::vector<CudaRegion>> CudaRegions(const std::string& name) = 0;  // empty: all
  // The completion may be answered on any thread, also before Infer returns.
  virtual void Infer(InferRequest request, infer::Completion completion) = 0;
  virtual void Observe(const RequestTrace& exchange) = 0;
};

}  // namespace weir::oip
