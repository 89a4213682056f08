#include "results/monitor_result.h"

#include "base/fields.h"
#include "results/describe.h"

namespace weir::results {

template <typename F>
void DescribeActivities(F& fields, Described<F, GpuActivities>& use) {
  fields("gpu_graphics_percent", use.graphics_percent);
  fields("gpu_sm_percent", use.sm_percent);
  fields("gpu_tensor_percent", use.tensor_percent);
  fields("gpu_dram_percent", use.dram_percent);
  fields("gpu_jpeg_percent", use.jpeg_percent);
  fields("gpu_pcie_sent_mib_s", use.pcie_sent_mib_s);
  fields("gpu_pcie_received_mib_s", use.pcie_received_mib_s);
  fields("gpu_neighbours", use.neighbours);
  fields("gpu_ecc_errors", use.ecc_errors);
  fields("gpu_xid", use.xid);
}

template <typename F>
void DescribeActivitiesOfOne(F& fields, Described<F, GpuActivities>& use) {
  fields("graphics_percent", use.graphics_percent);
  fields("sm_percent", use.sm_percent);
  fields("tensor_percent", use.tensor_percent);
  fields("dram_percent", use.dram_percent);
  fields("jpeg_percent", use.jpeg_percent);
  fields("pcie_sent_mib_s", use.pcie_sent_mib_s);
  fields("pcie_received_mib_s", use.pcie_received_mib_s);
  fields("neighbours", use.neighbours);
  fields("ecc_errors", use.ecc_errors);
  fields("xid", use.xid);
}

template <typename F>
void Describe(F& fields, Described<F, GpuUse>& gpu) {
  fields("name", gpu.name);
  fields("percent", gpu.percent);
  fields("memory_bytes", gpu.memory_bytes);
  fields("power_watts", gpu.power_watts);
  fields("energy_j", gpu.energy_j);
  fields("clock_mhz", gpu.clock_mhz);
  fields.Unless("throttled", gpu.throttled);
  fields.Unless("uuid", gpu.uuid);
  DescribeActivitiesOfOne(fields, gpu.activities);
}

template <typename F>
void Describe(F& fields, Described<F, ServerUse>& use) {
  fields("cpu", use.cpu);
  fields("process_memory_bytes", use.process_memory_bytes);
  fields("machine_cpu_percent", use.machine_cpu_percent);
  fields("machine_memory_bytes", use.machine_memory_bytes);
  fields("gpu_percent", use.gpu_percent);
  fields("gpu_memory_bytes", use.gpu_memory_bytes);
  fields("gpu_power_watts", use.gpu_power_watts);
  fields.IfAny("samples", use.samples);
  fields.IfAny("period_ms", use.period_ms);
  fields.Unless("errors", use.errors);
  fields.Unless("last_error", use.last_error);
}

template <typename F>
void Describe(F& fields, Described<F, Resources>& use) {
  fields("server_cpu", use.server_cpu);
  fields("recogniser_cpu", use.recogniser_cpu);
  fields("client_cpu", use.client_cpu);
  fields("app_cpu", use.app_cpu);
  fields("gpu_percent", use.gpu_percent);
  fields.Unless("gpu_label", use.gpu_label);
  fields.Unless("gpu_driver", use.gpu_driver);
  fields("gpu_memory_bytes", use.gpu_memory_bytes);
  fields("gpu_power_watts", use.gpu_power_watts);
  fields("gpu_energy_j", use.gpu_energy_j);
  fields("gpu_clock_mhz", use.gpu_clock_mhz);
  fields.Unless("gpu_throttled", use.gpu_throttled);
  fields("gpu_event_busy_percent", use.gpu_event_busy_percent);
  DescribeActivities(fields, use.gpu_activities);
  fields.Unless("gpus", use.gpus);
  fields.Unless("gpu_samples", use.gpu_samples);
  fields.Unless("gpu_period_ms", use.gpu_period_ms);
  fields("host_memory_bytes", use.host_memory_bytes);
  fields("container_memory_bytes", use.container_memory_bytes);
  fields("process_memory_bytes", use.process_memory_bytes);
  fields("largest_process_bytes", use.largest_process_bytes);
  fields("threads", use.threads);
  fields("read_bytes", use.read_bytes);
  fields("written_bytes", use.written_bytes);
  fields("disk_read_bytes", use.disk_read_bytes);
  fields("disk_written_bytes", use.disk_written_bytes);
  fields("received_bytes", use.received_bytes);
  fields("sent_bytes", use.sent_bytes);
  fields("context_switches_per_s", use.context_switches_per_s);
  fields.FromZero("steal_percent", use.steal_percent);
  fields.FromZero("throttled_s", use.throttled_s);
  fields("cpu_pressure_percent", use.cpu_pressure_percent);
  fields("memory_pressure_percent", use.memory_pressure_percent);
  fields("io_pressure_percent", use.io_pressure_percent);
  fields("server_metrics", use.server_metrics);
  fields.IfAny("observer_cpu", use.observer_cpu);
  fields("observer_us_per_sample", use.observer_us_per_sample);
  fields.IfAny("observer_first_us", use.observer_first_us);
  fields.FromZero("wall_s", use.wall_s);
  fields.FromZero("samples", use.samples);
  fields.FromZero("period_ms", use.period_ms);
}

template <typename F>
void Describe(F& fields, Described<F, MonitorResult>& result) {
  fields("pids", result.pids);
  fields("exit_status", result.exit_status);
  fields("signal", result.signal);
  fields("wall_s", result.wall_s);
  fields("user_s", result.user_s);
  fields("system_s", result.system_s);
  fields("max_resident_bytes", result.max_resident_bytes);
  fields("resources", result.resources);
  fields("command", result.command);
}

namespace {

// Takes the ranges of what is described, and passes over other fields.
class RangeCollector {
 public:
  static constexpr bool kReads = false;
  RangeCollector(std::string before, std::vector<Resources::NamedRange>& ranges)
      : before_(std::move(before)), ranges_(ranges) {}

  template <typename T>
  void operator()(const char* key, const T& value) {
    if constexpr (std::same_as<T, std::optional<Range>>) {
      if (value) ranges_.push_back({before_ + key, *value});
    } else if constexpr (std::same_as<T, std::optional<ServerUse>>) {
      RangeCollector inner(before_ + key + ".", ranges_);
      if (value) Describe(inner, *value);
    } else if constexpr (std::same_as<T, std::vector<GpuUse>>) {
      for (size_t i = 0; i < value.size(); ++i) {
        RangeCollector inner(before_ + key + "[" + std::to_string(i) + "].", ranges_);
        Describe(inner, value[i]);
      }
    }
  }
  template <typename T>
  void Unless(const char* key, const T& value) {
    (*this)(key, value);
  }
  template <typename T>
  void IfAny(const char*, const T&) {}
  template <typename T>
  void FromZero(const char*, const T&) {}

 private:
  std::string before_;
  std::vector<Resources::NamedRange>& ranges_;
};

}  // namespace

std::vector<Resources::NamedRange> Resources::Ranges() const {
  std::vector<NamedRange> ranges;
  RangeCollector collector("", ranges);
  Describe(collector, *this);
  return ranges;
}

Json Resources::ToValue() const {
  Json json = Json::object();
  FieldWriter writer(json);
  Describe(writer, *this);
  return json;
}

Result<Resources> Resources::FromValue(const Json& json) {
  Resources use;
  FieldReader reader(json);
  Describe(reader, use);
  TRY_STATUS(reader.status());
  return use;
}

void Resources::Update(const Resources& other) {
  Json json = ToValue();
  json.update(other.ToValue());
  *this = FromValue(json).value_or(other);
}

Json MonitorResult::ToJson() const { return FieldsToJson(*this); }

Result<MonitorResult> MonitorResult::FromJson(const Json& json) {
  return FieldsFromJson<MonitorResult>(json);
}

}  // namespace weir::results
