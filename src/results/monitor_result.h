// Resource use over some time, and the result of `weir monitor --json`, which has it in it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace weir::results {

// The mean is from counter differences over the whole time and so exact, where there is a counter, else over
// the samples; max and min are over the samples (of a counter: over the times between them).
struct Range {
  double mean = 0;
  double max = 0;
  double min = 0;
  bool operator==(const Range&) const = default;
};

// The activities of a card's parts and its state, over the samples. Several devices: the mean of percents,
// the sum of all else.
struct GpuActivities {
  // GPM's, on Hopper and newer: percent of the time, and MiB/s over PCIe.
  std::optional<Range> graphics_percent, sm_percent, tensor_percent, dram_percent, jpeg_percent;
  std::optional<Range> pcie_sent_mib_s, pcie_received_mib_s;
  std::optional<Range> neighbours;  // processes of others that compute on it
  std::optional<int64_t>
      ecc_errors;              // uncorrected ones that came while it was watched; absent: none, or not told
  std::optional<int64_t> xid;  // the last critical error while it was watched
  bool operator==(const GpuActivities&) const = default;
};

// Use of one device, or of all together. Values that were never reported are absent.
struct GpuUse {
  std::string name;
  // Over the samples; several devices: their mean.
  std::optional<Range> percent;
  std::optional<Range> memory_bytes;  // several: their sum
  // The mean is the energy counter's difference over the time between its readings, max and min are the
  // device's own figure at the samples. Without a counter all three are of that figure, without the figure
  // all three are of the counter. Several devices: their sum.
  std::optional<Range> power_watts;
  std::optional<double> energy_j;  // by the counter
  std::optional<Range> clock_mhz;  // several: their mean
  // By name (ClockReasons), the share of the samples, 0 to 1, in which it held the clocks down; empty:
  // nothing did, or nothing was told. Several devices: the mean share.
  std::map<std::string, double> throttled;
  std::string uuid;  // of one device, as CUDA has it
  GpuActivities activities;
  int samples = 0;  // not in JSON
  bool operator==(const GpuUse&) const = default;
};

// A server's reports over some time. Means of counters are differences of the counters between the
// first and the last reading, over the time between these; other means, and all extremes, are over the
// readings.
struct ServerUse {
  std::optional<Range> cpu;  // cores, of its process
  std::optional<Range> process_memory_bytes;
  std::optional<Range> machine_cpu_percent;
  std::optional<Range> machine_memory_bytes;
  std::optional<Range> gpu_percent;
  std::optional<Range> gpu_memory_bytes;
  std::optional<Range> gpu_power_watts;
  int samples = 0;  // readings that told something
  double period_ms = 0;
  int errors = 0;          // readings that told nothing
  std::string last_error;  // why, through EscapeBytes; empty without errors
  bool operator==(const ServerUse&) const = default;
};

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
  // The share of the time in which the engine of this process computed on its GPUs, by events around each
  // batch; several GPUs: their mean.
  std::optional<Range> gpu_event_busy_percent;
  GpuActivities gpu_activities;
  std::vector<GpuUse> gpus;  // each one, where there are several
  int gpu_samples = 0;       // of the GPUs, which are read at a period of their own
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

  // A range with its place: "app_cpu", "gpus[1].percent", "server_metrics.cpu".
  struct NamedRange {
    std::string name;
    Range range;
  };
  std::vector<NamedRange> Ranges() const;

  // Replaces each value that `other` has.
  void Update(const Resources& other);

  Json ToValue() const;
  // kCorrupt names the key that is missing or of another kind. Ranges are finite and 0 or more.
  static Result<Resources> FromValue(const Json& json);
  bool operator==(const Resources&) const = default;
};

// The use by a command, or by processes that ran before: then all that is the command's own is absent.
struct MonitorResult {
  std::optional<std::vector<int>> pids;  // of the processes
  std::optional<int> exit_status;        // of the command, as a shell tells it
  std::optional<int> signal;             // that ended it
  double wall_s = 0;
  std::optional<double> user_s, system_s;
  std::optional<int64_t> max_resident_bytes;
  Resources resources;
  std::optional<std::string> command;

  Json ToJson() const;
  static Result<MonitorResult> FromJson(const Json& json);  // kCorrupt names the key
  bool operator==(const MonitorResult&) const = default;
};

}  // namespace weir::results
