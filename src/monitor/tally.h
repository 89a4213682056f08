// From snapshots to Resources. Pure: no file, no thread, no clock.
#pragma once

#include <optional>

#include "monitor/resources.h"
#include "monitor/snapshot.h"

namespace weir::monitor {

class Tally {
 public:
  enum class Watch { kThisProcess, kOthers };
  enum class From {
    kStart,  // what the processes used before the first snapshot is not counted
    kBirth,  // it is: they were started for this
  };
  struct Options {
    Watch watch = Watch::kThisProcess;
    From from = From::kStart;
    bool in_container = false;
    int cpus = 1;  // logical CPUs of the machine: no reading of one period is above them
    Duration period = 100ms;
  };
  // `begin`: the moment from which the wall time counts; the first snapshot follows it at once.
  Tally(Options options, Instant begin) : options_(options), begin_(begin), previous_at_(begin) {}

  void Add(const Snapshot& snapshot);
  Resources Sum() const;

 private:
  // Something counted upwards by the kernel: its total, and its rates over single periods.
  struct Rate {
    double total = 0;
    double pending = 0;  // not yet in the extremes
    Extremes extremes;
    void Count(double amount) { total += amount, pending += amount; }
  };

  void CountProcesses(const Snapshot& now);
  void CountEngineThreads(const Snapshot& now);
  void CountMachine(const Snapshot& now);
  void CountDevice(const Snapshot& now);
  void AddLevels(const Snapshot& now);
  void ClosePeriod(double seconds);
  void SumCpu(double wall, Resources& sum) const;
  void SumBytes(Resources& sum) const;
  void SumWaiting(double wall, Resources& sum) const;
  std::optional<Range> ToRange(const Rate& rate, double seconds) const;

  Options options_;
  Instant begin_, previous_at_;
  std::optional<Snapshot> first_, previous_;
  Rate tree_cpu_, engine_cpu_, app_cpu_, machine_cpu_;
  Rate device_;               // share of the time, 0 to 1
  double open_period_s_ = 0;  // time since the last period that went into the extremes
  int64_t read_bytes_ = 0, written_bytes_ = 0;
  bool has_io_ = false;
  Extremes host_memory_, container_memory_, process_memory_, threads_;
  std::optional<int64_t> largest_process_;
  int snapshots_ = 0;
};

}  // namespace weir::monitor
