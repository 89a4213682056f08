// From samples of GPUs to what they did on the whole. Pure: no library, no clock.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "monitor/gpu.h"
#include "monitor/range.h"

namespace weir::monitor {

using results::GpuUse;

// The activities and the state of a device.
class GpuActivityTally {
 public:
  void Add(const GpuSample& sample);
  results::GpuActivities Sum() const;

 private:
  Extremes graphics_, sm_, tensor_, dram_, jpeg_, sent_, received_, neighbours_;
  std::optional<int64_t> first_ecc_, last_ecc_, xid_;
};

class GpuTally {
 public:
  // `period`: about the time between samples.
  GpuTally(std::vector<std::string> names, Duration period);

  // One sample for each of the names, in their order; none: nothing was read.
  void Add(Instant at, const std::vector<GpuSample>& samples);
  std::vector<GpuUse> Each() const;
  // All devices together, named by the first, as in "2 x NVIDIA H200". Nothing without a sample.
  std::optional<GpuUse> Together() const;

 private:
  struct Device {
    Device(std::string called, Duration shortest) : name(std::move(called)), energy(shortest) {}
    void Add(Instant at, const GpuSample& sample);
    std::optional<Range> Power() const;
    GpuUse Sum() const;

    std::string name;
    Counter energy;
    Extremes percent, memory, power, clock;
    GpuActivityTally activities;
    std::map<std::string, int> reasons;
    int told_reasons = 0;  // samples that told of the reasons
    int samples = 0;
  };

  std::vector<Device> devices_;
  Extremes percent_, memory_, power_, clock_;  // of the devices together
  GpuActivityTally activities_;
  int samples_ = 0;
};

}  // namespace weir::monitor
