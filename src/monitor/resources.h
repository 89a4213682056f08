// What was used between two moments: by this machine, by a tree of processes, by the engine's threads apart
// from the application's, by the control group.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"

namespace weir::monitor {

// The mean is from counter differences over the whole time and so exact; max and min are over the samples'
// periods.
struct Range {
  double mean = 0;
  double max = 0;
  double min = 0;
};

// What cannot be read is absent. CPU is in cores (1 = one core busy all the time).
struct Resources {
  std::optional<Range> server_cpu;      // everything on the machine that runs the recogniser
  std::optional<Range> recogniser_cpu;  // the engine's threads, or the inference server
  std::optional<Range> client_cpu;      // everything on the machine that runs the application
  std::optional<Range> app_cpu;         // the application: what is not the recogniser's
  std::optional<Range> gpu_percent;
  std::string gpu_label;                        // "emulated", or the device's name
  std::optional<Range> host_memory_bytes;       // in use on the machine, the container's own left out
  std::optional<Range> container_memory_bytes;  // of the control group, where it is limited to a container
  std::optional<Range> process_memory_bytes;    // resident, of the processes watched
  std::optional<int64_t> read_bytes, written_bytes;   // storage I/O of the processes watched
  std::optional<int64_t> received_bytes, sent_bytes;  // network, whole machine, loopback apart
  std::optional<double> steal_percent;                // of the machine's CPU time, taken by the hypervisor
  std::optional<double> throttled_s;                  // the control group's quota held it back
  std::optional<double> cpu_pressure_percent, memory_pressure_percent,
      io_pressure_percent;  // PSI "some", share of the time
  double observer_cpu = 0;  // the monitor's own, in cores
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
  };
  // Has read all counters once when it returns. `clock` is the steady one (the samples are paced by it) and
  // must outlive this. kInvalidArgument for the period, kNotFound for a process that is not there.
  static Result<std::unique_ptr<ResourceMonitor>> Start(const Clock& clock, Options options);
  ~ResourceMonitor();
  Resources Stop();  // takes a last sample, joins, and sums up; again: the same sum

 private:
  struct State;
  explicit ResourceMonitor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weir::monitor
