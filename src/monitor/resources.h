// Resource use between two moments: by this machine, by a tree of processes, by the engine's threads apart
// from the application's, by the control group, by the GPUs, and by a server that tells of itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "monitor/gpu.h"
#include "monitor/gpu_tally.h"
#include "monitor/range.h"
#include "monitor/server_metrics.h"

namespace weir::monitor {

// Values that cannot be read are absent. CPU is in cores (1 = one core busy all the time).
struct Resources {
  std::optional<Range> server_cpu;      // everything on the machine that runs the recogniser
  std::optional<Range> recogniser_cpu;  // the engine's threads, or the inference server
  std::optional<Range> client_cpu;      // everything on the machine that runs the application
  std::optional<Range> app_cpu;         // the application: what is not the recogniser's
  // The accelerator: the emulated one where there is one, else this machine's GPUs, together, as NVML tells.
  std::optional<Range> gpu_percent;
  std::string gpu_label;   // "emulated", or the device's name, as in "2 x NVIDIA H200" for several
  std::string gpu_driver;  // its version; empty: not told
  std::optional<Range> gpu_memory_bytes, gpu_power_watts, gpu_clock_mhz;  // as GpuUse has them
  std::optional<double> gpu_energy_j;
  std::map<std::string, double> gpu_throttled;  // by name, share of the GPU's samples, 0 to 1
  std::vector<GpuUse> gpus;                     // each one, where there are several
  int gpu_samples = 0;                          // of the GPUs, which are read at a period of their own
  double gpu_period_ms = 0;

  std::optional<Range> host_memory_bytes;       // in use on the machine, the container's own left out
  std::optional<Range> container_memory_bytes;  // of the control group, where it is limited to a container
  std::optional<Range> process_memory_bytes;    // resident, of the processes watched
  std::optional<int64_t>
      largest_process_bytes;     // the most that one of them had resident; where it was asked for
  std::optional<Range> threads;  // of the processes watched, the monitor's own among them
  std::optional<int64_t> read_bytes, written_bytes;            // storage I/O of the processes watched
  std::optional<int64_t> disk_read_bytes, disk_written_bytes;  // the machine's disks, for whomever
  // Network, loopback apart: of the machine, or of the network namespace (a container's) of the first process
  // watched.
  std::optional<int64_t> received_bytes, sent_bytes;
  std::optional<double> context_switches_per_s;  // of the machine
  std::optional<double> steal_percent;           // of the machine's CPU time, taken by the hypervisor
  std::optional<double> throttled_s;             // the control group's quota held it back
  std::optional<double> cpu_pressure_percent, memory_pressure_percent,
      io_pressure_percent;                       // PSI "some", share of the time
  std::optional<ServerUse> server_metrics;       // what the server told, where its page was to be asked for
  double observer_cpu = 0;                       // the monitor's own, in cores, from its first sample on
  std::optional<double> observer_us_per_sample;  // its CPU time for each sample after the first
  double observer_first_us = 0;                  // and for the first, which opens and looks up more
  double wall_s = 0;
  int samples = 0;
  double period_ms = 0;

  Json ToJson() const;  // the design's keys; each range as {mean,max,min}
};

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

    // The machine's GPUs; not read where `device_busy` stands for the accelerator. A reader that was opened
    // before makes Start quick: without one Start opens `nvml_library` itself (GpuReader::Open) and does
    // without where that fails. Empty: no GPU is read.
    std::shared_ptr<const GpuReader> gpus;
    std::string nvml_library = kNvmlLibrary;
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
