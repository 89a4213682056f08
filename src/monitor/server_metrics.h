// An inference server's own metrics page, as values. Pure: the caller fetches the page.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/prometheus.h"
#include "monitor/range.h"

namespace weir::monitor {

// One reading. What the server does not tell is absent. Several samples of one name are those of several
// processes or devices.
struct ServerMetrics {
  // The server's process (weir, MLServer and others that use Prometheus's own libraries).
  std::optional<double> cpu_s;           // process_cpu_seconds_total: so far; the sum
  std::optional<double> resident_bytes;  // process_resident_memory_bytes; the sum
  // Its machine (Triton); absent until Triton has looked at it for the first time.
  std::optional<double> machine_cpu_share;     // nv_cpu_utilization: 0 to 1
  std::optional<double> machine_memory_bytes;  // nv_cpu_memory_used_bytes
  // Its GPUs (Triton).
  std::optional<double> gpu_share;         // nv_gpu_utilization: 0 to 1; the mean
  std::optional<double> gpu_memory_bytes;  // nv_gpu_memory_used_bytes; the sum
  std::optional<double> gpu_energy_j;      // nv_energy_consumption: so far; the sum
};

// Those of `metrics` that are finite and not negative. kNotFound where none of the names is there: the page
// is another program's, or the server was told to keep them to itself.
Result<ServerMetrics> PickServerMetrics(const std::vector<Metric>& metrics);

// The whole way from a page's text. The errors of ParsePrometheus and PickServerMetrics.
Result<ServerMetrics> ReadServerMetrics(std::string_view page);

using results::ServerUse;

class ServerTally {
 public:
  // `period`: about the time between readings.
  explicit ServerTally(Duration period) : period_(period), cpu_(period / 2), gpu_energy_(period / 2) {}

  // `at`: when the page was asked for; a page that could not be had or understood is an error in the sum.
  void Add(Instant at, const Result<ServerMetrics>& reading);
  ServerUse Sum() const;

 private:
  Duration period_;
  Counter cpu_, gpu_energy_;
  Extremes resident_, machine_cpu_, machine_memory_, gpu_, gpu_memory_;
  int samples_ = 0, errors_ = 0;
  std::string last_error_;
};

}  // namespace weir::monitor
