#include "serve/metrics.h"

#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <bit>

#include "serve/statistics.h"

namespace weir::serve {
namespace {

using Labels = prometheus::Labels;
template <typename T>
using Family = prometheus::Family<T>;

constexpr std::array kRefusals = {"queue_full", "deadline", "cancelled", "invalid"};
constexpr std::array kRequestRefusals = {"unknown_model",        "not_ready",      "stopping",
                                         "too_many_connections", "too_many_bytes", "too_slow",
                                         "json_queue_full",      "cross_site",     "malformed"};
constexpr std::array kFailures = {"REJECTED", "CANCELED", "BACKEND", "OTHER"};
constexpr std::array kPhaseNames = {"receive", "decode", "queue", "compute_input", "infer", "output", "send"};
// Seconds, from 10 us to 10 s.
const prometheus::Histogram::BucketBoundaries kBounds = {1e-5,   2.5e-5, 5e-5, 1e-4,   2.5e-4, 5e-4, 1e-3,
                                                         2.5e-3, 5e-3,   1e-2, 2.5e-2, 5e-2,   0.1,  0.25,
                                                         0.5,    1,      2.5,  5,      10};

size_t FailureOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOverloaded:
    case ErrorCode::kDeadline:
      return 0;
    case ErrorCode::kCancelled:
      return 1;
    case ErrorCode::kInternal:
    case ErrorCode::kIo:
      return 2;
    default:
      return 3;
  }
}

// A counter of something that is counted elsewhere. One thread at a time.
void RaiseTo(double total, prometheus::Counter& counter) {
  counter.Increment(std::max(0.0, total - counter.Value()));
}

// Returns the index of the first power of two that is not less.
int BatchIndex(int64_t batch, int sizes) {
  const auto rows = static_cast<uint64_t>(std::max<int64_t>(1, batch));
  return std::min(sizes - 1, static_cast<int>(std::bit_width(rows - 1)));
}

}  // namespace

struct MetricFamilies {
  prometheus::Registry registry;

  Family<prometheus::Counter>& Counters(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  Family<prometheus::Gauge>& Gauges(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }
  Family<prometheus::Histogram>& Histograms(const char* name, const char* help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }

  Family<prometheus::Counter>& success =
      Counters("nv_inference_request_success", "Requests that were answered well");
  Family<prometheus::Counter>& failure =
      Counters("nv_inference_request_failure", "Requests that failed, by reason");
  Family<prometheus::Counter>& count = Counters("nv_inference_count", "Rows inferred");
  Family<prometheus::Counter>& executions =
      Counters("nv_inference_exec_count", "Batches that the engine computed");
  Family<prometheus::Counter>& request_us =
      Counters("nv_inference_request_duration_us",
               "Time of answered requests in the server, summed; without those refused, timed out or failed");
  Family<prometheus::Counter>& queue_us =
      Counters("nv_inference_queue_duration_us",
               "Time of answered requests in the queue, summed; without those refused, timed out or failed");
  Family<prometheus::Counter>& input_us = Counters("nv_inference_compute_input_duration_us",
                                                   "Time of putting batches together, summed over requests");
  Family<prometheus::Counter>& infer_us =
      Counters("nv_inference_compute_infer_duration_us", "Time in the engine, summed over requests");
  Family<prometheus::Counter>& output_us =
      Counters("nv_inference_compute_output_duration_us", "Time of taking answers out, summed over requests");
  Family<prometheus::Gauge>& pending =
      Gauges("nv_inference_pending_request_count", "Requests that wait for the engine");
  Family<prometheus::Gauge>& busy =
      Gauges("weir_accelerator_busy_seconds",
             "Time in which the accelerator computed, summed over its streams or GPUs, since it was loaded");
  Family<prometheus::Gauge>& streams =
      Gauges("weir_accelerator_streams", "Streams of the emulated accelerator, or GPUs of a real one");
  Family<prometheus::Gauge>& gpu_utilization = Gauges(
      "nv_gpu_utilization", "Share of the time in which some kernel ran on the GPU, 0 to 1, as NVML tells");
  Family<prometheus::Gauge>& gpu_memory_total = Gauges("nv_gpu_memory_total_bytes", "Memory of the GPU");
  Family<prometheus::Gauge>& gpu_memory_used = Gauges("nv_gpu_memory_used_bytes", "Memory of the GPU in use");
  Family<prometheus::Gauge>& gpu_power = Gauges("nv_gpu_power_usage", "Power of the GPU in watts");
  Family<prometheus::Gauge>& gpu_power_limit =
      Gauges("nv_gpu_power_limit", "Limit of the GPU's power in watts");
  Family<prometheus::Counter>& gpu_energy =
      Counters("nv_energy_consumption", "Energy of the GPU in joules, since its driver was loaded");
  Family<prometheus::Gauge>& gpu_activity =
      Gauges("weir_gpu_activity",
             "Share of the time in which a part of the GPU was active, 0 to 1 (NVML's GPM), "
             "since the scrape before");
  Family<prometheus::Gauge>& gpu_xid =
      Gauges("weir_gpu_xid", "The last critical error (XID) of the GPU; 0: none");
  Family<prometheus::Gauge>& gpu_ecc =
      Gauges("weir_gpu_ecc_errors", "Uncorrected memory errors of the GPU since its driver was loaded");
  prometheus::Counter& cpu =
      Counters("process_cpu_seconds_total", "CPU time of the server, user and system").Add({});
  prometheus::Gauge& resident =
      Gauges("process_resident_memory_bytes", "Memory of the server that is resident").Add({});
  prometheus::Counter& log_dropped =
      Counters("weir_log_lines_dropped_total", "Lines of the log that could not be written").Add({});
  Family<prometheus::Gauge>& hung =
      Gauges("weir_engine_hung", "1 where a batch takes ten times its expected time, and 10 s at least");
  Family<prometheus::Gauge>& ready = Gauges("weir_model_ready", "1 where the version takes requests");
  Family<prometheus::Gauge>& batching_idle =
      Gauges("weir_dynamic_batching_idle", "1 where dynamic batching is asked for and cannot help");
  Family<prometheus::Counter>& refused =
      Counters("weir_requests_refused_total", "Requests that were not inferred, by reason");
  Family<prometheus::Histogram>& phases =
      Histograms("weir_phase_seconds",
                 "Time of one phase of an answered request, by protocol and executed batch; without requests "
                 "refused, timed out or failed");
  Family<prometheus::Histogram>& requests = Histograms(
      "weir_request_seconds",
      "Time from a request's first byte to the last of its answer, of answered requests; those refused, "
      "timed out or failed are counted in weir_requests_refused_total and nv_inference_request_failure "
      "alone");
  prometheus::Counter& idle_closed =
      Counters("weir_http_idle_connections_closed_total",
               "Idle HTTP connections that were closed to make room for new ones")
          .Add({});
  std::array<prometheus::Counter*, kRequestRefusals.size()> no_model{};
  Family<prometheus::Counter>& grpc_refused =
      Counters("weir_grpc_connections_refused_total", "gRPC connections that were not admitted, by reason");
  Family<prometheus::Counter>& grpc_closed =
      Counters("weir_grpc_connections_closed_total", "gRPC connections that the server closed, by reason");
  std::array<prometheus::Counter*, oip::kGrpcRefusals> grpc{};

  MetricFamilies() {
    for (size_t i = 0; i < grpc.size(); ++i) {
      const auto refusal = static_cast<oip::GrpcRefusal>(i);
      auto& family = refusal == oip::GrpcRefusal::kMessage ? refused
                     : oip::IsClosing(refusal)             ? grpc_closed
                                                           : grpc_refused;
      grpc[i] = &family.Add({{"reason", std::string(ToString(refusal))}});
    }
    for (size_t i = 0; i < no_model.size(); ++i)
      no_model[i] = &refused.Add({{"reason", kRequestRefusals[i]}});
  }
};

ModelMetrics::ModelMetrics(MetricFamilies& families, const std::string& model, const std::string& version)
    : families_(families), model_(model), version_(version) {
  const Labels labels{{"model", model}, {"version", version}};
  const auto with_reason = [&](const char* reason) {
    Labels more = labels;
    more["reason"] = reason;
    return more;
  };
  success_ = &families.success.Add(labels);
  count_ = &families.count.Add(labels);
  executions_ = &families.executions.Add(labels);
  request_us_ = &families.request_us.Add(labels);
  queue_us_ = &families.queue_us.Add(labels);
  input_us_ = &families.input_us.Add(labels);
  infer_us_ = &families.infer_us.Add(labels);
  output_us_ = &families.output_us.Add(labels);
  for (size_t i = 0; i < failures_.size(); ++i)
    failures_[i] = &families.failure.Add(with_reason(kFailures[i]));
  for (size_t i = 0; i < refusals_.size(); ++i)
    refusals_[i] = &families.refused.Add(with_reason(kRefusals[i]));
  pending_ = &families.pending.Add(labels);
  ready_ = &families.ready.Add(labels);
  hung_ = &families.hung.Add(labels);
  batching_idle_ = &families.batching_idle.Add(labels);
}

void ModelMetrics::Succeeded(const Inferred& inferred) {
  success_->Increment();
  count_->Increment(static_cast<double>(inferred.rows));
  executions_->Increment(static_cast<double>(inferred.executions));
  request_us_->Increment(Microseconds(inferred.request));
  queue_us_->Increment(Microseconds(inferred.queue));
  input_us_->Increment(Microseconds(inferred.compute_input));
  infer_us_->Increment(Microseconds(inferred.compute_infer));
  output_us_->Increment(Microseconds(inferred.compute_output));
}

void ModelMetrics::Failed(ErrorCode code) { failures_[FailureOf(code)]->Increment(); }
void ModelMetrics::Refused(Refusal refusal) { refusals_[static_cast<size_t>(refusal)]->Increment(); }
void ModelMetrics::SetBusy(Duration busy, int64_t streams) {
  const prometheus::Labels labels{{"model", model_}, {"version", version_}};
  families_.busy.Add(labels).Set(Seconds(busy));
  families_.streams.Add(labels).Set(static_cast<double>(streams));
}

void ModelMetrics::SetPending(int64_t calls) { pending_->Set(static_cast<double>(calls)); }
void ModelMetrics::SetReady(bool ready) { ready_->Set(ready ? 1 : 0); }
void ModelMetrics::SetHung(bool hung) { hung_->Set(hung ? 1 : 0); }
void ModelMetrics::SetBatchingIdle(bool idle) { batching_idle_->Set(idle ? 1 : 0); }

void ModelMetrics::Observe(const oip::RequestTrace& exchange) {
  const auto took = [&](Phase phase, Duration duration) {
    HistogramOf(phase, exchange.protocol, exchange.executed_batch).Observe(Seconds(duration));
  };
  const auto observe = [&](Phase phase, std::optional<Instant> from, std::optional<Instant> to) {
    if (!from || !to || *from == Instant{} || *to == Instant{}) return;
    took(phase, std::max(Duration{}, *to - *from));
  };
  observe(kReceive, exchange.first_byte, exchange.received);
  observe(kDecode, exchange.received, exchange.decoded);
  const Phases phases = PhasesOf(exchange.times);
  if (phases.done) {
    took(kQueue, phases.queue);
    took(kComputeInput, phases.compute_input);
    took(kInfer, phases.compute_infer);
  }
  observe(kOutput, phases.done, exchange.encoded);
  observe(kSend, exchange.encoded, exchange.sent);
  observe(kRequest, exchange.first_byte, exchange.sent);
}

prometheus::Histogram& ModelMetrics::HistogramOf(Phase phase, oip::Protocol protocol, int64_t batch) {
  const int index = BatchIndex(batch, kBatchSizes);
  auto& place = histograms_[phase][protocol == oip::Protocol::kGrpc ? 1 : 0][static_cast<size_t>(index)];
  if (prometheus::Histogram* made = place.load(std::memory_order_acquire)) return *made;
  const std::string size =
      index == kBatchSizes - 1 ? "more" : fmt::format("{}", uint64_t{1} << index);  // up to and with it
  Labels labels{{"model", model_},
                {"version", version_},
                {"protocol", std::string(ToString(protocol))},
                {"batch", size}};
  if (phase != kRequest) labels["phase"] = kPhaseNames[phase];
  auto& family = phase == kRequest ? families_.requests : families_.phases;
  prometheus::Histogram& made = family.Add(labels, kBounds);  // the same for all who come at once
  place.store(&made, std::memory_order_release);
  return made;
}

Metrics::Metrics() : families_(std::make_unique<MetricFamilies>()) {}
Metrics::~Metrics() = default;

ModelMetrics& Metrics::OfModel(const std::string& model, const std::string& version) {
  MutexLock lock(mutex_);
  auto& metrics = models_[{model, version}];
  if (!metrics) metrics = std::make_unique<ModelMetrics>(*families_, model, version);
  return *metrics;
}

std::string_view ToString(RequestRefusal refusal) {
  return kRequestRefusals.at(static_cast<size_t>(refusal));
}

void Metrics::Refused(RequestRefusal refusal) {
  families_->no_model[static_cast<size_t>(refusal)]->Increment();
}

void Metrics::IdleConnectionClosed() { families_->idle_closed.Increment(); }

void Metrics::Refused(oip::GrpcRefusal refusal) {
  families_->grpc[static_cast<size_t>(refusal)]->Increment();
}

void Metrics::SetProcess(Duration cpu, int64_t resident_bytes) {
  MutexLock lock(mutex_);
  RaiseTo(Seconds(cpu), families_->cpu);
  families_->resident.Set(static_cast<double>(resident_bytes));
}

void Metrics::SetGpus(const std::vector<monitor::GpuDevice>& devices,
                      const std::vector<monitor::GpuSample>& samples) {
  MutexLock lock(mutex_);
  for (size_t i = 0; i < std::min(devices.size(), samples.size()); ++i) {
    const monitor::GpuDevice& device = devices[i];
    const monitor::GpuSample& sample = samples[i];
    const Labels labels{{"gpu_uuid", device.uuid.empty() ? device.name : device.uuid}};
    const auto set = [&](Family<prometheus::Gauge>& family, const auto& value, double scale = 1) {
      if (value) family.Add(labels).Set(scale * static_cast<double>(*value));
    };
    set(families_->gpu_utilization, sample.percent, 0.01);
    set(families_->gpu_memory_total, device.memory_bytes);
    set(families_->gpu_memory_used, sample.memory_bytes);
    set(families_->gpu_power, sample.power_watts);
    set(families_->gpu_power_limit, device.power_limit_w);
    set(families_->gpu_ecc, sample.ecc_errors);
    families_->gpu_xid.Add(labels).Set(static_cast<double>(sample.xid.value_or(0)));
    if (sample.energy_j) RaiseTo(*sample.energy_j, families_->gpu_energy.Add(labels));
    const std::pair<const char*, std::optional<double>> activities[] = {{"graphics", sample.graphics_percent},
                                                                        {"sm", sample.sm_percent},
                                                                        {"tensor", sample.tensor_percent},
                                                                        {"dram", sample.dram_percent},
                                                                        {"jpeg", sample.jpeg_percent}};
    for (const auto& [part, percent] : activities) {
      Labels of_part = labels;
      of_part["part"] = part;
      if (percent) families_->gpu_activity.Add(of_part).Set(0.01 * *percent);
    }
  }
}

void Metrics::SetLogDropped(uint64_t lines) {
  MutexLock lock(mutex_);
  RaiseTo(static_cast<double>(lines), families_->log_dropped);
}

std::string Metrics::Text() const {
  return prometheus::TextSerializer().Serialize(families_->registry.Collect());
}

}  // namespace weir::serve
