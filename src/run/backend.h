// The backend of a run: a model on an engine of this process, or a model of a server elsewhere.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "infer/choices.h"
#include "infer/server_times.h"
#include "infer/service.h"
#include "monitor/resources.h"
#include "results/bottleneck.h"
#include "results/server_shares.h"
#include "run/application.h"

namespace weir::run {

// The options of a run that its backend obeys or refuses; the defaults are those of `weir run`'s flags.
struct BackendOptions {
  std::string model;                                     // a file, a folder or a URL
  infer::Balance balance = infer::Balance::kRoundRobin;  // over several servers
  infer::Payload payload = infer::Payload::kTensor;
  infer::Mode mode = infer::Mode::kAsync;
  std::string recipe, engine, device, precision, cache_dir;
  std::vector<std::string> allow_links;  // folders that links of the model may lead below
  int threads = 0, streams = 0;          // of the engine; 0: as the engine likes
  int batch = 0, in_flight = 0;          // pictures a batch, batches submitted; 0: the backend's own choice
  int64_t max_pixels = 100'000'000;
  bool tolerate_damage = false;

  std::optional<infer::Preprocess> preprocess;  // nothing: as the model says
  bool cuda_graph = false;
  int64_t gpu_memory_mb = 0;  // of an instance; 0: no limit

  bool sync() const { return mode == infer::Mode::kSync; }
};

// A backend in words and figures, for results. Empty and absent: not known, or of the other kind of backend.
struct BackendDescription {
  std::string engine, engine_version, precision, not_batchable;
  std::optional<int> threads, streams;           // of the engine in this process
  std::string server, payload, platform;         // of a server
  std::optional<infer::MeanServerTimes> times;   // the server's own account of the run
  std::optional<results::ServerShares> servers;  // if there are several
};

// One thread at a time, except the service.
class Backend {
 public:
  virtual ~Backend() = default;

  // Known from the beginning; Load may fix the batch.
  const std::string& name() const { return name_; }
  const Target& target() const { return target_; }
  std::optional<int> max_batch() const { return max_batch_; }
  int batch() const { return batch_; }  // pictures a batch

  // Makes it ready to answer.
  virtual Status Load() = 0;
  double prepare_s() const { return prepare_s_; }  // seconds that finding and loading it took

  // The rest only after Load.
  virtual infer::Service& service() = 0;
  virtual int in_flight() const = 0;  // batches: as asked for, or enough to keep it busy
  // Says why nothing can be computed any more, once the device of this process is lost.
  virtual std::optional<std::string> lost() const { return std::nullopt; }
  virtual bool invents_answers() const = 0;  // an emulated engine: its answers mean nothing
  virtual std::string Title() const = 0;     // behind the model's name in a line of text
  virtual BackendDescription Describe() const = 0;
  virtual std::map<std::string, std::string> Libraries() const = 0;
  virtual monitor::ResourceMonitor::Options WatchOptions() const = 0;
  // Called right before and right after the run.
  virtual void Begin() = 0;
  virtual void End() = 0;
  // Puts in the costs of `resources` that only the backend can tell from the application's; `cpu_s` is the
  // CPU time of this process. Removes figures that were not observed.
  virtual void Attribute(double cpu_s, monitor::Resources& resources, Costs& costs) const = 0;

 protected:
  // `target`: its input, output and recipe fit. kInvalidArgument for a batch it cannot take.
  Status Aim(Target target, std::optional<int> max_batch, const BackendOptions& options);
  void FixBatch(int batch);

  std::string name_;
  Target target_;
  std::optional<int> max_batch_;
  int batch_ = 0;
  double prepare_s_ = 0;
};

// Opens the backend for options.model: a local one for a file or folder, a remote one for a URL.
// kInvalidArgument names an option that is not applicable to it. `options` and `clock` must outlive it.
Result<std::unique_ptr<Backend>> OpenBackend(const BackendOptions& options, const Clock& clock);
Result<std::unique_ptr<Backend>> OpenLocalBackend(const BackendOptions& options, const Clock& clock);
Result<std::unique_ptr<Backend>> OpenRemoteBackend(const BackendOptions& options, const Clock& clock);

// Sets in the costs the CPU time of other processes, and what the backend attributes. `cpu_s`: CPU time of
// this process while `resources` were watched.
void AddCosts(const Backend& backend, double cpu_s, monitor::Resources& resources, Costs& costs);

// Makes the target from the model's input and output that the recipe names. kInvalidArgument says what is
// missing, kUnsupported names a model with several inputs.
struct ModelTensors {
  std::string name;
  std::vector<infer::TensorInfo> inputs, outputs;
};
Result<Target> MakeTarget(const ModelTensors& model, const std::optional<dataset::Recipe>& recipe,
                          std::vector<std::string> labels);

}  // namespace weir::run
