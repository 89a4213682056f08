// Who answers a run: a model on an engine of this process, or a server elsewhere.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/server_watch.h"
#include "infer/service.h"
#include "monitor/resources.h"
#include "results/bottleneck.h"
#include "run/application.h"

namespace weir::cli {

// What `weir run` was asked for; its flags' defaults.
struct RunFlags {
  std::string model;
  std::vector<std::string> data;
  std::string recipe, payload = "tensor", engine, precision, mode = "async", answers, json, cache_dir;
  int threads = 0, streams = 0, batch = 0, in_flight = 0, decode_threads = 0, repeat_data = 1, top = 5;
  int64_t max_pixels = 100'000'000, max_file_bytes = 256 << 20;
  ServerPlace server;
  bool no_files = false, tolerate_damage = false, strict = false;

  bool sync() const { return mode == "sync"; }
};

// One thread at a time, but for its service.
class Backend {
 public:
  virtual ~Backend() = default;

  // Known from the beginning; Load may fix the batch.
  const std::string& name() const { return name_; }
  const run::Target& target() const { return target_; }
  std::optional<int> max_batch() const { return max_batch_; }
  int batch() const { return batch_; }  // pictures a batch

  // Makes it ready to answer.
  virtual Status Load() = 0;
  double prepare_s() const { return prepare_s_; }  // what finding and loading it took

  // The rest after Load.
  virtual infer::Service& service() = 0;
  virtual int in_flight() const = 0;         // batches: as asked for, or what keeps it busy
  virtual bool invents_answers() const = 0;  // an emulated engine's mean nothing
  virtual std::string Title() const = 0;     // behind the model's name: who answers, in a line
  virtual void Describe(Json& result) const = 0;
  virtual std::map<std::string, std::string> Libraries() const = 0;
  virtual monitor::ResourceMonitor::Options WatchOptions() const = 0;
  // Right before and after the run.
  virtual void Begin() = 0;
  virtual void End() = 0;
  // Puts in the costs of `resources` that only it can tell from the application's, of which the whole is
  // `cpu_s`; takes out what was not seen.
  virtual void Attribute(double cpu_s, monitor::Resources& resources, run::Costs& costs) const = 0;
  // What the other side measured of its own work; empty where there is none.
  virtual std::string ServerLine(const run::Report& report) const = 0;

 protected:
  // `target`: its input, output and recipe fit. kInvalidArgument for a batch it cannot take.
  Status Aim(run::Target target, std::optional<int> max_batch, const RunFlags& flags);
  void FixBatch(int batch);

  std::string name_;
  run::Target target_;
  std::optional<int> max_batch_;
  int batch_ = 0;
  double prepare_s_ = 0;
};

// By the form of flags.model: a file or folder, or a URL. kInvalidArgument names a flag that makes no sense
// with it. `flags` and `clock` must outlive it.
Result<std::unique_ptr<Backend>> OpenRecogniser(const RunFlags& flags, const Clock& clock);
Result<std::unique_ptr<Backend>> OpenLocalRecogniser(const RunFlags& flags, const Clock& clock);
Result<std::unique_ptr<Backend>> OpenRemoteRecogniser(const RunFlags& flags, const Clock& clock);

// The model's input and output that the recipe means.
struct ModelTensors {
  std::string name;
  std::vector<infer::TensorInfo> inputs, outputs;
};
Result<run::Target> MakeTarget(const ModelTensors& model, const std::optional<dataset::Recipe>& recipe,
                               std::vector<std::string> labels);

}  // namespace weir::cli
