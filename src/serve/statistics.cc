#include "serve/statistics.h"

#include <time.h>

#include <algorithm>
#include <ctime>

namespace weir::serve {
namespace {

void Add(oip::DurationCount& sum, Duration took) {
  sum.count += 1;
  sum.total += took;
}

Duration Between(const std::optional<Instant>& from, const std::optional<Instant>& to) {
  return from && to ? std::max(Duration{}, *to - *from) : Duration{};
}

// Returns the milliseconds of the label that base gives: "2026-11-21T08:20:06Z".
int64_t WallMilliseconds() {
  std::tm parts = {};
  if (::strptime(WallTimeLabel().c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts) == nullptr) return 0;
  return static_cast<int64_t>(::timegm(&parts)) * 1000;
}

}  // namespace

// The way to an accelerator and back is input and output, as in Triton.
Phases PhasesOf(const infer::Times& times) {
  const infer::DeviceStages device = times.device.value_or(infer::DeviceStages{});
  return {.queue = Between(times.queued, times.taken) + Between(times.handed, times.started),
          .compute_input = Between(times.taken, times.handed) + device.upload,
          .compute_infer =
              std::max(Duration{}, Between(times.started, times.done) - device.upload - device.download),
          .download = device.download,
          .done = times.done};
}

infer::ServerDurations DurationsOf(const ServerTimes& stay, const infer::Times& times) {
  const Phases phases = PhasesOf(times);
  infer::ServerDurations durations{.receive = Between(stay.first_byte, stay.received),
                                   .queue = phases.queue,
                                   .compute_input = phases.compute_input,
                                   .compute_infer = phases.compute_infer,
                                   .compute_output = Between(phases.done, stay.answered) + phases.download};
  durations.rest = stay.answered - stay.first_byte - durations.whole();
  return durations;
}

WallTime::WallTime(Instant now) : read_at_(now), milliseconds_(WallMilliseconds()) {}

uint64_t WallTime::MillisecondsAt(Instant when) const {
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(when - read_at_);
  return static_cast<uint64_t>(std::max<int64_t>(0, milliseconds_ + since.count()));
}

uint64_t Statistics::Succeeded(const Answered& answered) {
  const Phases phases = PhasesOf(answered.times);
  const Duration output = Between(phases.done, answered.answered) + phases.download;
  MutexLock lock(mutex_);
  last_ = std::max(last_.value_or(answered.answered), answered.answered);
  totals_.inference_count += static_cast<uint64_t>(answered.rows);
  Add(totals_.success, answered.answered - answered.received);
  Add(totals_.queue, phases.queue);
  Add(totals_.compute_input, phases.compute_input);
  Add(totals_.compute_infer, phases.compute_infer);
  Add(totals_.compute_output, output);
  OfBatch& batch = batches_[answered.executed_batch];
  const auto size = static_cast<uint64_t>(answered.executed_batch);
  const uint64_t before = batch.rows / size;
  batch.rows += static_cast<uint64_t>(answered.rows);
  batch.compute_input += phases.compute_input * answered.rows;
  batch.compute_infer += phases.compute_infer * answered.rows;
  batch.compute_output += output * answered.rows;
  return batch.rows / size - before;
}

void Statistics::Failed(Duration took) {
  MutexLock lock(mutex_);
  Add(totals_.fail, took);
}

oip::ModelStatistics Statistics::Get(const WallTime& wall) const {
  MutexLock lock(mutex_);
  oip::ModelStatistics statistics = totals_;
  if (last_) statistics.last_inference_ms = wall.MillisecondsAt(*last_);
  for (const auto& [size, batch] : batches_) {
    const uint64_t executions = batch.rows / static_cast<uint64_t>(size);
    const auto of_batches = [&](Duration total) { return oip::DurationCount{executions, total / size}; };
    statistics.execution_count += executions;
    statistics.batches.push_back({.batch_size = static_cast<uint64_t>(size),
                                  .compute_input = of_batches(batch.compute_input),
                                  .compute_infer = of_batches(batch.compute_infer),
                                  .compute_output = of_batches(batch.compute_output)});
  }
  return statistics;
}

}  // namespace weir::serve
