#include "watch/tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "stats/quantile.h"

namespace weir::watch {

using results::WatchResult;

struct Tally::Counts {
  int64_t answered = 0, in_time = 0, ended = 0, connects = 0;
  std::array<int64_t, kDropCauses> dropped{};
  std::map<std::string, int64_t> sources;
  std::map<std::string, WatchResult::Fault> faults;
  stats::Histogram latency, capture_error;
};

std::optional<WatchResult::Times> TimesOf(const stats::Histogram& histogram) {
  if (histogram.empty()) return std::nullopt;
  const auto at = [&](double p) -> std::optional<double> {
    if (!stats::Supports(p, histogram.count())) return std::nullopt;
    return static_cast<double>(*histogram.Quantile(p)) / 1e6;
  };
  return WatchResult::Times{.n = histogram.count(),
                            .mean = *histogram.Mean() / 1e6,
                            .min = static_cast<double>(*histogram.Min()) / 1e6,
                            .max = static_cast<double>(*histogram.Max()) / 1e6,
                            .p50 = at(0.5),
                            .p90 = at(0.9),
                            .p95 = at(0.95),
                            .p99 = at(0.99),
                            .p99_9 = at(0.999)};
}

Tally::Tally(Options options) : options_(std::move(options)) {
  for (size_t i = 0; i < options_.names.size(); ++i) streams_.push_back(std::make_unique<Counts>());
}
Tally::~Tally() = default;

void Tally::Ended(const FrameRecord& record, const FrameResult& result) {
  const auto stages = StageTimes(record.times);
  {
    MutexLock lock(mutex_);
    Counts& mine = *streams_[static_cast<size_t>(record.stream)];
    ++mine.ended;
    if (record.dropped) {
      ++mine.dropped[static_cast<size_t>(*record.dropped)];
    } else {
      const Duration latency = *record.times.done - record.times.capture;
      ++mine.answered;
      mine.in_time += latency <= options_.deadline ? 1 : 0;
      ++mine.sources[std::string(ToString(record.capture_source))];
      mine.latency.Add(latency.count());
      latency_.Add(latency.count());
      const bool looked_up = std::ranges::any_of(result.objects, &FoundObject::embedded);
      const Duration without = latency - (looked_up ? options_.lookup_delay : Duration{});
      without_delay_.Add(without.count());
      in_time_without_ += without <= options_.deadline ? 1 : 0;
      for (size_t i = 0; i < stages.size(); ++i) {
        if (stages[i]) stages_[i].Add(stages[i]->count());
      }
      objects_ += std::ssize(result.objects);
      for (const FoundObject& object : result.objects) {
        embeddings_ += object.embedded ? 1 : 0;
        lookups_ += object.similarity ? 1 : 0;
        identified_ += object.name.empty() ? 0 : 1;
      }
    }
  }
  if (options_.on_frame) options_.on_frame(LineOf(record));
  if (record.dropped || (!options_.on_event && !options_.on_shown)) return;
  const results::WatchEvent event = EventOf(record, result);
  if (options_.on_event) options_.on_event(event);
  if (options_.on_shown) options_.on_shown(record.stream, event, result);
}

void Tally::Lost(int stream, int64_t frames) {
  {
    MutexLock lock(mutex_);
    Counts& mine = *streams_[static_cast<size_t>(stream)];
    mine.ended += frames;
    mine.dropped[static_cast<size_t>(DropCause::kLost)] += frames;
  }
  if (options_.on_frame) {
    options_.on_frame({.stream = options_.names[static_cast<size_t>(stream)],
                       .sequence = -1,
                       .counter = {},
                       .fate = "lost",
                       .count = frames,
                       .captured_s = {},
                       .capture_source = {},
                       .latency_ms = {},
                       .stages_ms = {}});
  }
}

void Tally::Faults(int stream, std::string_view kind, const std::string& message, int64_t count) {
  MutexLock lock(mutex_);
  Counts& mine = *streams_[static_cast<size_t>(stream)];
  WatchResult::Fault& fault = mine.faults[std::string(kind)];
  if (fault.count == 0) {
    fault.kind = kind;
    fault.message = EscapeBytes(message.substr(0, 500));
    news_.push_back(
        fmt::format("stream {}: {}: {}", options_.names[static_cast<size_t>(stream)], kind, fault.message));
  }
  fault.count += count;
}

std::vector<std::string> Tally::TakeNews() {
  MutexLock lock(mutex_);
  return std::exchange(news_, {});
}

void Tally::CaptureError(int stream, Duration error) {
  MutexLock lock(mutex_);
  streams_[static_cast<size_t>(stream)]->capture_error.Add(error.count());
}

void Tally::Connected(int stream) {
  MutexLock lock(mutex_);
  ++streams_[static_cast<size_t>(stream)]->connects;
}

results::WatchFrame Tally::LineOf(const FrameRecord& record) const {
  results::WatchFrame line{
      .stream = options_.names[static_cast<size_t>(record.stream)],
      .sequence = record.sequence,
      .counter = {},
      .fate = record.dropped ? std::string(ToString(*record.dropped)) : "answered",
      .count = {},
      .captured_s = Seconds(record.times.capture.time_since_epoch() + options_.wall_offset),
      .capture_source = std::string(ToString(record.capture_source)),
      .latency_ms = {},
      .stages_ms = {}};
  if (record.counter) line.counter = *record.counter;
  if (record.times.done) line.latency_ms = Milliseconds(*record.times.done - record.times.capture);
  const auto stages = StageTimes(record.times);
  for (size_t i = 0; i < stages.size(); ++i) {
    if (stages[i]) line.stages_ms[std::string(ToString(static_cast<Stage>(i)))] = Milliseconds(*stages[i]);
  }
  return line;
}

results::WatchEvent Tally::EventOf(const FrameRecord& record, const FrameResult& result) const {
  const Duration latency = *record.times.done - record.times.capture;
  results::WatchEvent event{
      .stream = options_.names[static_cast<size_t>(record.stream)],
      .sequence = record.sequence,
      .captured_s = Seconds(record.times.capture.time_since_epoch() + options_.wall_offset),
      .capture_source = std::string(ToString(record.capture_source)),
      .latency_ms = Milliseconds(latency),
      .in_time = latency <= options_.deadline,
      .objects = {}};
  const auto label = [&](int index) {
    if (options_.labels == nullptr || index < 0 || static_cast<size_t>(index) >= options_.labels->size())
      return std::string();
    return EscapeBytes((*options_.labels)[static_cast<size_t>(index)]);
  };
  for (const FoundObject& found : result.objects) {
    results::WatchEvent::Object object{};
    if (found.detection) {
      const Box& b = found.detection->box;
      object.box = {b.x0, b.y0, b.x1, b.y1};
      object.score = found.detection->score;
      object.class_index = found.detection->class_index;
    }
    object.track = found.track;
    if (found.class_index) {
      object.class_index = *found.class_index;
      object.score = found.score;
      object.label = label(*found.class_index);
    }
    object.name = EscapeBytes(found.name);
    object.similarity = found.similarity;
    event.objects.push_back(std::move(object));
  }
  return event;
}

WatchResult::Frames Tally::FramesOf(const Counts& counts) const {
  WatchResult::Frames frames{
      .captured = counts.ended, .answered = counts.answered, .in_time = counts.in_time, .dropped = {}};
  for (size_t i = 0; i < counts.dropped.size(); ++i) {
    if (counts.dropped[i] != 0)
      frames.dropped[std::string(ToString(static_cast<DropCause>(i)))] = counts.dropped[i];
  }
  return frames;
}

WatchResult::Frames Tally::frames() const {
  MutexLock lock(mutex_);
  WatchResult::Frames all;
  for (const auto& stream : streams_) {
    const WatchResult::Frames mine = FramesOf(*stream);
    all.captured += mine.captured;
    all.answered += mine.answered;
    all.in_time += mine.in_time;
    for (const auto& [cause, count] : mine.dropped) all.dropped[cause] += count;
  }
  return all;
}

void Tally::Fill(WatchResult& result) const {
  const auto percent = [](const WatchResult::Frames& frames) -> std::optional<double> {
    if (frames.captured == 0) return std::nullopt;
    return 100.0 * static_cast<double>(frames.in_time) / static_cast<double>(frames.captured);
  };
  result.frames = frames();
  result.in_time_percent = percent(result.frames);
  MutexLock lock(mutex_);
  result.latency_ms = TimesOf(latency_);
  for (size_t i = 0; i < stages_.size(); ++i) {
    if (const auto times = TimesOf(stages_[i]))
      result.stages_ms[std::string(ToString(static_cast<Stage>(i)))] = *times;
  }
  for (size_t i = 0; i < streams_.size(); ++i) {
    const Counts& counts = *streams_[i];
    WatchResult::Stream& stream = result.per_stream.emplace_back();
    stream.name = EscapeBytes(options_.names[i]);
    stream.frames = FramesOf(counts);
    stream.in_time_percent = percent(stream.frames);
    stream.latency_ms = TimesOf(counts.latency);
    stream.capture_source = counts.sources;
    stream.capture_error_ms = TimesOf(counts.capture_error);
    stream.connects = counts.connects;
    for (const auto& [kind, fault] : counts.faults) stream.faults.push_back(fault);
  }
  result.objects = objects_;
  result.embeddings = embeddings_;
  result.identified = identified_;
  if (options_.lookup_delay > Duration::zero() && !latency_.empty()) {
    const double captured = static_cast<double>(std::max<int64_t>(1, result.frames.captured));
    WatchResult::StorageDelay delay{
        .delay_us = Microseconds(options_.lookup_delay),
        .lookups = lookups_,
        .p99_ms = static_cast<double>(*latency_.Quantile(0.99)) / 1e6,
        .p99_without_ms = static_cast<double>(*without_delay_.Quantile(0.99)) / 1e6,
        .in_time_percent = result.in_time_percent.value_or(0),
        .in_time_without_percent = 100.0 * static_cast<double>(in_time_without_) / captured,
        .text = {}};
    const double lost = delay.in_time_without_percent - delay.in_time_percent;
    delay.text = lost > 0.1
                     ? fmt::format("The delay costs {:.1f} % of the frames their deadline.", lost)
                     : fmt::format(
                           "The delay does not matter to a deadline of {:.0f} ms: {:.2f} ms at p99 with it, "
                           "{:.2f} ms without.",
                           Milliseconds(options_.deadline), delay.p99_ms, delay.p99_without_ms);
    result.storage_delay = std::move(delay);
  }
}

}  // namespace weir::watch
