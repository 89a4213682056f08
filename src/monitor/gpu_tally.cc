#include "monitor/gpu_tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weir::monitor {
namespace {

std::optional<double> ToDouble(const std::optional<int64_t>& value) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value);
}

// The sum of what `value` is for the samples; nothing where one does not tell it: a device left out would
// show as a drop.
template <typename Value>
std::optional<double> SumOf(const std::vector<GpuSample>& samples, Value value) {
  double sum = 0;
  for (const GpuSample& sample : samples) {
    const std::optional<double> one = value(sample);
    if (!one) return std::nullopt;
    sum += *one;
  }
  return sum;
}

template <typename Value>
std::optional<double> MeanOf(const std::vector<GpuSample>& samples, Value value) {
  auto sum = SumOf(samples, value);
  if (sum) *sum /= static_cast<double>(samples.size());
  return sum;
}

// The activities of all devices as those of one.
GpuSample Joined(const std::vector<GpuSample>& samples) {
  GpuSample all;
  const auto mean = [&](auto member) {
    return MeanOf(samples, [&](const GpuSample& sample) { return sample.*member; });
  };
  const auto sum = [&](auto member) {
    return SumOf(samples, [&](const GpuSample& sample) { return sample.*member; });
  };
  all.graphics_percent = mean(&GpuSample::graphics_percent);
  all.sm_percent = mean(&GpuSample::sm_percent);
  all.tensor_percent = mean(&GpuSample::tensor_percent);
  all.dram_percent = mean(&GpuSample::dram_percent);
  all.jpeg_percent = mean(&GpuSample::jpeg_percent);
  all.pcie_sent_mib_s = sum(&GpuSample::pcie_sent_mib_s);
  all.pcie_received_mib_s = sum(&GpuSample::pcie_received_mib_s);
  for (const GpuSample& sample : samples) {
    if (sample.neighbours) all.neighbours = all.neighbours.value_or(0) + *sample.neighbours;
    if (sample.ecc_errors) all.ecc_errors = all.ecc_errors.value_or(0) + *sample.ecc_errors;
    if (sample.xid) all.xid = sample.xid;
  }
  return all;
}

}  // namespace

void GpuActivityTally::Add(const GpuSample& sample) {
  graphics_.AddIfAny(sample.graphics_percent);
  sm_.AddIfAny(sample.sm_percent);
  tensor_.AddIfAny(sample.tensor_percent);
  dram_.AddIfAny(sample.dram_percent);
  jpeg_.AddIfAny(sample.jpeg_percent);
  sent_.AddIfAny(sample.pcie_sent_mib_s);
  received_.AddIfAny(sample.pcie_received_mib_s);
  neighbours_.AddIfAny(ToDouble(sample.neighbours));
  if (!first_ecc_) first_ecc_ = sample.ecc_errors;
  if (sample.ecc_errors) last_ecc_ = sample.ecc_errors;
  if (sample.xid) xid_ = sample.xid;
}

results::GpuActivities GpuActivityTally::Sum() const {
  results::GpuActivities sum{.graphics_percent = graphics_.ToRange(),
                             .sm_percent = sm_.ToRange(),
                             .tensor_percent = tensor_.ToRange(),
                             .dram_percent = dram_.ToRange(),
                             .jpeg_percent = jpeg_.ToRange(),
                             .pcie_sent_mib_s = sent_.ToRange(),
                             .pcie_received_mib_s = received_.ToRange(),
                             .neighbours = neighbours_.ToRange(),
                             .ecc_errors = {},
                             .xid = xid_};
  if (first_ecc_ && *last_ecc_ > *first_ecc_) sum.ecc_errors = *last_ecc_ - *first_ecc_;
  return sum;
}

void GpuTally::Device::Add(Instant at, const GpuSample& sample) {
  ++samples;
  percent.AddIfAny(sample.percent);
  memory.AddIfAny(ToDouble(sample.memory_bytes));
  power.AddIfAny(sample.power_watts);
  clock.AddIfAny(sample.clock_mhz);
  activities.Add(sample);
  if (sample.energy_j) energy.Add(at, *sample.energy_j);
  if (!sample.clock_reasons) return;
  ++told_reasons;
  for (const std::string& reason : ClockReasons(*sample.clock_reasons)) ++reasons[reason];
}

std::optional<Range> GpuTally::Device::Power() const {
  const auto counted = energy.PerSecond();
  if (!counted || power.count == 0) return counted ? counted : power.ToRange();
  return Around(counted->mean, power);
}

GpuUse GpuTally::Device::Sum() const {
  GpuUse use{.name = name, .percent = percent.ToRange(), .memory_bytes = memory.ToRange()};
  use.power_watts = Power();
  use.clock_mhz = clock.ToRange();
  use.energy_j = energy.gained();
  use.samples = samples;
  use.activities = activities.Sum();
  for (const auto& [reason, count] : reasons) {
    use.throttled[reason] = static_cast<double>(count) / static_cast<double>(told_reasons);
  }
  return use;
}

GpuTally::GpuTally(std::vector<std::string> names, Duration period) {
  for (std::string& name : names) devices_.emplace_back(std::move(name), period / 2);
}

void GpuTally::Add(Instant at, const std::vector<GpuSample>& samples) {
  if (samples.empty()) return;
  CHECK(samples.size() == devices_.size());
  ++samples_;
  for (size_t i = 0; i < samples.size(); ++i) devices_[i].Add(at, samples[i]);
  percent_.AddIfAny(MeanOf(samples, [](const GpuSample& sample) { return sample.percent; }));
  memory_.AddIfAny(SumOf(samples, [](const GpuSample& sample) { return ToDouble(sample.memory_bytes); }));
  power_.AddIfAny(SumOf(samples, [](const GpuSample& sample) { return sample.power_watts; }));
  clock_.AddIfAny(MeanOf(samples, [](const GpuSample& sample) { return sample.clock_mhz; }));
  activities_.Add(Joined(samples));
}

std::vector<GpuUse> GpuTally::Each() const {
  std::vector<GpuUse> uses;
  for (const Device& device : devices_) uses.push_back(device.Sum());
  return uses;
}

std::optional<GpuUse> GpuTally::Together() const {
  const std::vector<GpuUse> each = Each();
  if (samples_ == 0) return std::nullopt;
  if (each.size() == 1) return each.front();
  GpuUse all{.name = fmt::format("{} x {}", each.size(), each.front().name)};
  all.percent = percent_.ToRange();
  all.memory_bytes = memory_.ToRange();
  all.clock_mhz = clock_.ToRange();
  all.samples = samples_;
  all.activities = activities_.Sum();
  double watts = 0, joules = 0;
  for (const GpuUse& use : each) {
    watts += use.power_watts ? use.power_watts->mean : 0;
    joules += use.energy_j.value_or(0);
    for (const auto& [reason, share] : use.throttled) {
      all.throttled[reason] += share / static_cast<double>(each.size());
    }
  }
  if (std::ranges::all_of(each, [](const GpuUse& use) { return use.power_watts.has_value(); })) {
    all.power_watts = Around(watts, power_);
  }
  if (std::ranges::all_of(each, [](const GpuUse& use) { return use.energy_j.has_value(); })) {
    all.energy_j = joules;
  }
  return all;
}

}  // namespace weir::monitor
