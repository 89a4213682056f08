// Resource use between two moments: by this machine, by a tree of processes, by the engine's threads apart
// from the application's, by the control group, by the GPUs, and by a server that tells of itself.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "monitor/gpu.h"
#include "monitor/gpu_tally.h"
#include "monitor/range.h"
#include "monitor/server_metrics.h"
#include "results/monitor_result.h"

namespace weir::monitor {

using results::Resources;

// Samples on a thread of its own named "monitor". One thread at a time. Watching this process, the recogniser
// is the threads whose name begins with "engine" and the application is the rest but the monitor itself;
// watching others, the application is their trees.
class ResourceMonitor {
 public:
  struct Options {
    std::vector<int> processes;      // roots of the trees to watch; empty: this process
    Duration period = 100ms;         // at least 1 ms
    std::optional<Instant> started;  // the processes were started at this moment, just now: what they used
                                     // since then counts. Absent: from Start on
    std::function<Duration()> device_busy;  // how long the accelerator has computed so far (the mean of its
                                            // streams); called on the monitor's thread. Empty: there is none
    std::string device_label;               // what to call it

    // How long the engine has computed on its GPUs so far by events around each batch, the mean of the GPUs;
    // called on the monitor's thread. Empty: there is no such engine. NVML is read beside it.
    std::function<Duration()> gpu_events;

    // The machine's GPUs; not read where `device_busy` stands for the accelerator. A reader that was opened
    // before makes Start quick: without one Start opens `nvml_library` itself (GpuReader::Open) and does
    // without where that fails. Empty: no GPU is read.
    std::shared_ptr<const GpuReader> gpus;
    std::string nvml_library = kNvmlLibrary;
    // The GPUs that count, by the identifiers that NVML and CUDA share; empty: all. None of them there, as
    // for an instance of a divided card: no GPU is read.
    std::vector<std::string> gpu_uuids;
    Duration gpu_period = 200ms;  // at least `period`: NVML's own figures are over 1/6 s and more

    // Gets the text of a server's metrics page, or says why not: an error is counted, and the page asked for
    // again at its next time. Called on the monitor's thread, at the first sample, at the last, and every
    // `metrics_period` between, after `device_busy`, which may have fetched it; while it waits nothing else
    // is sampled, so it should give up soon. Empty: there is none.
    std::function<Result<std::string>()> server_page;
    Duration metrics_period = 1s;

    bool peaks = false;  // largest_process_bytes is wanted: another file read for each process at each sample
  };
  // Has read all counters once when it returns. `clock` is the steady one (the samples are paced by it) and
  // must outlive this. kInvalidArgument for a period, kNotFound for a process that is not there.
  static Result<std::unique_ptr<ResourceMonitor>> Start(const Clock& clock, Options options);
  ~ResourceMonitor();
  Resources Stop();  // takes a last sample, joins, and sums up; again: the same sum

 private:
  struct State;
  explicit ResourceMonitor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weir::monitor
