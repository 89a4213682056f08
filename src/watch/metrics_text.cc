#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <utility>

#include "watch/live_view.h"

namespace weir::watch {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using results::WatchLive;
using results::WatchResult;
using Labels = std::vector<ClientMetric::Label>;

MetricFamily Family(const char* name, MetricType type, const char* help) {
  return {.name = name, .help = help, .type = type, .metric = {}};
}

void Count(MetricFamily& family, Labels labels, int64_t value) {
  ClientMetric& metric = family.metric.emplace_back();
  metric.label = std::move(labels);
  metric.counter.value = static_cast<double>(value);
}

void Set(MetricFamily& family, Labels labels, double value) {
  ClientMetric& metric = family.metric.emplace_back();
  metric.label = std::move(labels);
  metric.gauge.value = value;
}

// Milliseconds to seconds, with the quantiles that the number of frames supports.
void Summarise(MetricFamily& family, Labels labels, const WatchResult::Times& times) {
  ClientMetric& metric = family.metric.emplace_back();
  metric.label = std::move(labels);
  metric.summary.sample_count = static_cast<uint64_t>(times.n);
  metric.summary.sample_sum = 1e-3 * times.mean * static_cast<double>(times.n);
  for (const auto& [quantile, ms] : {std::pair{0.5, times.p50}, {0.9, times.p90}, {0.99, times.p99}}) {
    if (ms) metric.summary.quantile.push_back({quantile, 1e-3 * *ms});
  }
}

}  // namespace

std::string MetricsText(const WatchLive& state) {
  MetricFamily captured = Family("weir_watch_frames_captured_total", MetricType::Counter,
                                 "Frames that a stream captured, those lost on the way too");
  MetricFamily answered =
      Family("weir_watch_frames_answered_total", MetricType::Counter, "Frames that were answered");
  MetricFamily in_time = Family("weir_watch_frames_in_time_total", MetricType::Counter,
                                "Frames that were answered within the deadline");
  MetricFamily dropped =
      Family("weir_watch_frames_dropped_total", MetricType::Counter, "Frames that were dropped, by cause");
  MetricFamily faults =
      Family("weir_watch_stream_faults_total", MetricType::Counter, "Faults of a stream, by kind");
  MetricFamily connects =
      Family("weir_watch_stream_connects_total", MetricType::Counter, "Connections made to a stream");
  MetricFamily latency = Family("weir_watch_latency_seconds", MetricType::Summary,
                                "Time from a frame's capture to its answer, since the watch began");
  MetricFamily stages = Family("weir_watch_stage_seconds", MetricType::Summary,
                               "Time of a stage of the answered frames of all streams");
  MetricFamily deadline =
      Family("weir_watch_deadline_seconds", MetricType::Gauge, "Deadline from capture to answer");
  Set(deadline, {}, 1e-3 * state.deadline_ms);
  for (const auto& [stage, times] : state.stages_ms) Summarise(stages, {{"stage", stage}}, times);
  // Two streams may have one name: the number tells them apart.
  for (size_t i = 0; i < state.tiles.size(); ++i) {
    const WatchResult::Stream& stream = state.tiles[i].stream;
    const Labels labels{{"number", std::to_string(i)}, {"stream", stream.name}};
    const auto with = [&](const char* name, const std::string& value) {
      Labels more = labels;
      more.push_back({name, value});
      return more;
    };
    Count(captured, labels, stream.frames.captured);
    Count(answered, labels, stream.frames.answered);
    Count(in_time, labels, stream.frames.in_time);
    Count(connects, labels, stream.connects);
    for (const auto& [cause, count] : stream.frames.dropped) Count(dropped, with("cause", cause), count);
    for (const WatchResult::Fault& fault : stream.faults)
      Count(faults, with("kind", fault.kind), fault.count);
    if (stream.latency_ms) Summarise(latency, labels, *stream.latency_ms);
  }
  std::vector<MetricFamily> families{std::move(captured), std::move(answered), std::move(in_time),
                                     std::move(dropped),  std::move(faults),   std::move(connects),
                                     std::move(latency),  std::move(stages),   std::move(deadline)};
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace weir::watch
