// From samples of GPUs to what they did on the whole. Pure: no library, no clock.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "monitor/gpu.h"
#include "monitor/range.h"

namespace weir::monitor {

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
  std::optional<Range> clock_mhz;  // several: their mean
  std::optional<double> energy_j;  // by the counter
  // By name (ClockReasons), the share of the samples, 0 to 1, in which it held the clocks down; empty:
  // nothing did, or nothing was told. Several devices: the mean share.
  std::map<std::string, double> throttled;
  int samples = 0;

  Json ToJson() const;  // without the samples
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
    std::map<std::string, int> reasons;
    int told_reasons = 0;  // samples that told of the reasons
    int samples = 0;
  };

  std::vector<Device> devices_;
  Extremes percent_, memory_, power_, clock_;  // of the devices together
  int samples_ = 0;
};

}  // namespace weir::monitor
