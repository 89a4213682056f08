// The metrics page: counters and gauges under Triton's names where they mean the same, and histograms by
// phase, protocol and batch size.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "monitor/gpu.h"
#include "oip/api.h"
#include "oip/grpc/admission.h"

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace weir::serve {

// Why a request was not inferred, as the label "reason" tells it: by a model, and before one was found.
enum class Refusal { kQueueFull, kDeadline, kCancelled, kInvalid };
enum class RequestRefusal {
  kUnknownModel,
  kNotReady,
  kStopping,
  kTooManyConnections,
  kTooManyBytes,
  kTooSlow,
  kJsonQueueFull,
  kCrossSite,
  kMalformed,
};
std::string_view ToString(RequestRefusal refusal);  // "unknown_model", ...: the label of a metric

struct MetricFamilies;

// One version of a model under one of its names. Handles are made before they are needed: recording looks
// nothing up. Thread-safe.
class ModelMetrics {
 public:
  ModelMetrics(MetricFamilies& families, const std::string& model, const std::string& version);
  ModelMetrics(const ModelMetrics&) = delete;
  ModelMetrics& operator=(const ModelMetrics&) = delete;

  struct Inferred {
    int64_t rows = 1;
    uint64_t executions = 1;  // batches that are complete with it
    Duration request{}, queue{}, compute_input{}, compute_infer{}, compute_output{};
  };
  void Succeeded(const Inferred& inferred);
  void Failed(ErrorCode code);
  void Refused(Refusal refusal);
  // The histograms of an exchange that was answered well.
  void Observe(const oip::RequestTrace& exchange);

  void SetPending(int64_t calls);
  void SetReady(bool ready);
  void SetHung(bool hung);
  // Sets the computing time of an accelerator that keeps its own time, over all streams since it was loaded.
  void SetBusy(Duration busy, int64_t streams);
  void SetBatchingIdle(bool idle);  // dynamic batching is asked for and cannot help

 private:
  enum Phase { kReceive, kDecode, kQueue, kComputeInput, kInfer, kOutput, kSend, kRequest, kPhases };
  static constexpr int kBatchSizes = 12;  // 1, 2, 4, ... 1,024, more
  prometheus::Histogram& HistogramOf(Phase phase, oip::Protocol protocol, int64_t batch);

  MetricFamilies& families_;
  const std::string model_, version_;
  prometheus::Counter *success_, *count_, *executions_, *request_us_, *queue_us_, *input_us_, *infer_us_,
      *output_us_;
  std::array<prometheus::Counter*, 4> failures_;
  std::array<prometheus::Counter*, 4> refusals_;
  prometheus::Gauge *pending_, *ready_, *hung_, *batching_idle_;
  std::array<std::array<std::array<std::atomic<prometheus::Histogram*>, kBatchSizes>, 2>, kPhases>
      histograms_{};  // made when first seen
};

// Thread-safe.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  // The same for the same name and version, as long as the Metrics live: counters outlive a reload.
  ModelMetrics& OfModel(const std::string& model, const std::string& version);
  void Refused(RequestRefusal refusal);
  void IdleConnectionClosed();  // to make room for a new one
  void Refused(oip::GrpcRefusal refusal);
  // Sets the CPU time of this process so far, and its resident memory now.
  void SetProcess(Duration cpu, int64_t resident_bytes);
  // Sets the state of the machine's GPUs, `samples` of `devices` in their order.
  void SetGpus(const std::vector<monitor::GpuDevice>& devices,
               const std::vector<monitor::GpuSample>& samples);
  // Lines of the log that nobody got, so far.
  void SetLogDropped(uint64_t lines);

  std::string Text() const;  // in Prometheus' text format

 private:
  const std::unique_ptr<MetricFamilies> families_;
  Mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<ModelMetrics>> models_ GUARDED_BY(mutex_);
};

}  // namespace weir::serve
