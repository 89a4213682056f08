#include "monitor/server_metrics.h"

#include <cmath>

namespace weir::monitor {
namespace {

struct Sum {
  double sum = 0;
  int count = 0;

  std::optional<double> sum_if_any() const {
    if (count == 0) return std::nullopt;
    return sum;
  }
  std::optional<double> mean() const {
    if (count == 0) return std::nullopt;
    return sum / count;
  }
};

}  // namespace

Result<ServerMetrics> PickServerMetrics(const std::vector<Metric>& metrics) {
  Sum cpu, resident, machine_cpu, machine_memory, gpu, gpu_memory, gpu_energy;
  const std::pair<std::string_view, Sum*> wanted[] = {
      {"process_cpu_seconds_total", &cpu},   {"process_resident_memory_bytes", &resident},
      {"nv_cpu_utilization", &machine_cpu},  {"nv_cpu_memory_used_bytes", &machine_memory},
      {"nv_gpu_utilization", &gpu},          {"nv_gpu_memory_used_bytes", &gpu_memory},
      {"nv_energy_consumption", &gpu_energy}};
  bool any = false;
  for (const Metric& metric : metrics) {
    if (!std::isfinite(metric.value) || metric.value < 0) continue;
    for (const auto& [name, sum] : wanted) {
      if (metric.name != name) continue;
      sum->sum += metric.value;
      ++sum->count;
      any = true;
    }
  }
  if (!any) {
    return Fail(ErrorCode::kNotFound,
                "metrics: none of process_cpu_seconds_total, process_resident_memory_bytes, nv_cpu_... and "
                "nv_gpu_... "
                "is there: is this the server's metrics page?");
  }
  // Triton answers before it has looked at its machine for the first time, with zeros; no machine runs in no
  // memory.
  if (machine_memory.count > 0 && machine_memory.sum == 0) machine_memory = machine_cpu = {};
  return ServerMetrics{.cpu_s = cpu.sum_if_any(),
                       .resident_bytes = resident.sum_if_any(),
                       .machine_cpu_share = machine_cpu.mean(),
                       .machine_memory_bytes = machine_memory.mean(),
                       .gpu_share = gpu.mean(),
                       .gpu_memory_bytes = gpu_memory.sum_if_any(),
                       .gpu_energy_j = gpu_energy.sum_if_any()};
}

Result<ServerMetrics> ReadServerMetrics(std::string_view page) {
  return PickServerMetrics(TRY(ParsePrometheus(page)));
}

void ServerTally::Add(Instant at, const Result<ServerMetrics>& reading) {
  if (!reading) {
    ++errors_;
    last_error_ = reading.error().message;
    return;
  }
  ++samples_;
  if (reading->cpu_s) cpu_.Add(at, *reading->cpu_s);
  if (reading->gpu_energy_j) gpu_energy_.Add(at, *reading->gpu_energy_j);
  resident_.AddIfAny(reading->resident_bytes);
  machine_cpu_.AddIfAny(reading->machine_cpu_share, 100);
  machine_memory_.AddIfAny(reading->machine_memory_bytes);
  gpu_.AddIfAny(reading->gpu_share, 100);
  gpu_memory_.AddIfAny(reading->gpu_memory_bytes);
}

ServerUse ServerTally::Sum() const {
  return {.cpu = cpu_.PerSecond(),
          .process_memory_bytes = resident_.ToRange(),
          .machine_cpu_percent = machine_cpu_.ToRange(),
          .machine_memory_bytes = machine_memory_.ToRange(),
          .gpu_percent = gpu_.ToRange(),
          .gpu_memory_bytes = gpu_memory_.ToRange(),
          .gpu_power_watts = gpu_energy_.PerSecond(),
          .samples = samples_,
          .period_ms = Milliseconds(period_),
          .errors = errors_,
          .last_error = EscapeBytes(last_error_)};
}

}  // namespace weir::monitor
