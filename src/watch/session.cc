#include "watch/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "base/count.h"
#include "base/thread.h"
#include "results/stage.h"
#include "watch/picture_input.h"

namespace weir::watch {
namespace {

constexpr Duration kLook = 100ms;       // how soon a thread notices that it is to stop
constexpr Duration kShowEvery = 500ms;  // of the page's counts
constexpr Duration kFirstPause = 500ms, kLongestPause = 10s;

std::string_view KindOf(const Error& error, bool connecting) {
  switch (error.code) {
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kInvalidArgument:
      return "refused";
    case ErrorCode::kCorrupt:
      return "damaged";
    case ErrorCode::kOverloaded:
      return "too-large";
    case ErrorCode::kDeadline:
      return connecting ? "connect-timeout" : "stalled";
    default:
      return connecting ? "connect-failed" : "disconnected";
  }
}

// One stream: connects, reads, and connects again.
class Follower {
 public:
  Follower(int index, const WatchOptions& options, Pipeline& pipeline, Tally& tally, const Clock& clock)
      : index_(index), options_(options), pipeline_(pipeline), tally_(tally), clock_(clock) {}

  void Follow(const std::stop_token& stop) {
    const StreamSpec& spec = options_.streams[static_cast<size_t>(index_)];
    SourceOptions source_options = options_.source;
    source_options.deadline = options_.deadline;
    source_options.skip_non_reference =
        options_.policy == DropPolicy::kNonReference || options_.policy == DropPolicy::kToKeyFrame;
    source_options.skip_to_key = options_.policy == DropPolicy::kToKeyFrame;
    auto source = MakeSource(spec, source_options, clock_);
    if (!source) return Refuse(source.error());
    Duration pause = kFirstPause;
    while (!stop.stop_requested()) {
      const Status connected = (*source)->Connect(clock_.Now() + options_.source.connect_timeout);
      if (connected) {
        tally_.Connected(index_);
        if (ReadUntilFault(**source, stop, pause)) break;
      } else {
        if (IsForGood(connected.error())) {
          Refuse(connected.error());
          break;
        }
        tally_.Fault(index_, KindOf(connected.error(), true), connected.error().message);
      }
      const Instant again = clock_.Now() + pause;
      pause = std::min(pause * 2, kLongestPause);
      while (!stop.stop_requested() && clock_.Now() < again)
        SleepUntil(std::min(again, clock_.Now() + kLook));
    }
    for (SourceFrame& frame : (*source)->Leave()) {
      if (!frame.dropped) frame.dropped = DropCause::kStopped;
      pipeline_.Offer(index_, std::move(frame));
    }
    produced_ = (*source)->produced();
    if (spec.kind == StreamKind::kMade) made_cpu_ = ThreadCpuTime() - decode_cpu_;
  }

  // After Follow.
  // The reason why no frame can ever come of it; nullopt if one came, or might have.
  const std::optional<Error>& refusal() const { return refusal_; }
  std::optional<int64_t> produced() const { return produced_; }
  Duration made_cpu() const { return made_cpu_; }

 private:
  StreamKind kind() const { return options_.streams[static_cast<size_t>(index_)].kind; }
  // A camera that was there may answer strangely while it starts again.
  bool IsForGood(const Error& error) const {
    if (error.code == ErrorCode::kUnsupported || kind() == StreamKind::kFile) return true;
    return !had_frame_ && (error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kNotFound);
  }
  void Refuse(const Error& error) {
    tally_.Fault(index_, KindOf(error, !had_frame_), error.message);
    if (!had_frame_) refusal_ = error;
  }
  // A file keeps its own pace, with gaps of any length.
  bool may_stall() const { return kind() != StreamKind::kFile; }

  // Returns whether the stream is over, or is to be left.
  bool ReadUntilFault(Source& source, const std::stop_token& stop, Duration& pause) {
    Instant last = clock_.Now();
    while (!stop.stop_requested()) {
      const Instant stalled = last + options_.source.stall_timeout;
      const Instant look = clock_.Now() + kLook;
      auto frame = source.Read(may_stall() ? std::min(look, stalled) : look);
      if (frame) {
        if (!*frame) return true;
        last = clock_.Now();
        pause = kFirstPause;
        had_frame_ = true;
        if ((*frame)->lost_before > 0) tally_.Lost(index_, (*frame)->lost_before);
        decode_cpu_ += (*frame)->decode_time;
        if (!(*frame)->fault.empty())
          tally_.Faults(index_, (*frame)->fault, (*frame)->fault_words, (*frame)->fault_count);
        pipeline_.Offer(index_, **std::move(frame));
        continue;
      }
      if (frame.error().code == ErrorCode::kDeadline) {
        if (clock_.Now() < stalled || !may_stall()) continue;
        tally_.Fault(index_, "stalled",
                     fmt::format("no frame for {:.1f} s", Seconds(options_.source.stall_timeout)));
        return false;
      }
      if (IsForGood(frame.error())) {
        Refuse(frame.error());
        return true;
      }
      tally_.Fault(index_, KindOf(frame.error(), false), frame.error().message);
      return false;
    }
    return true;
  }

  const int index_;
  const WatchOptions& options_;
  Pipeline& pipeline_;
  Tally& tally_;
  const Clock& clock_;
  bool had_frame_ = false;
  std::optional<Error> refusal_;
  std::optional<int64_t> produced_;
  Duration made_cpu_{}, decode_cpu_{};
};

// The first fault. It is the user's to mend where every stream is refused for good.
Status WhyNoFrame(const results::WatchResult& result,
                  const std::vector<std::unique_ptr<Follower>>& followers) {
  const bool refused =
      std::ranges::all_of(followers, [](const auto& follower) { return follower->refusal().has_value(); });
  for (const auto& stream : result.per_stream) {
    if (stream.faults.empty()) continue;
    const auto& fault = stream.faults.front();
    return Fail(
        refused ? ErrorCode::kInvalidArgument : ErrorCode::kIo,
        fmt::format("no stream gave a frame; stream {}: {}: {}", stream.name, fault.kind, fault.message));
  }
  return {};
}

std::string NameOf(const WatchModels& models) {
  return models.infer ? models.infer->name() : models.detect->name();
}

std::function<void(int, const results::WatchEvent&, const FrameResult&)> ShowIn(LiveView* live) {
  if (live == nullptr) return {};
  return [live](int stream, const results::WatchEvent& event, const FrameResult& result) {
    live->Show(stream, event, result.picture);
  };
}

results::WatchLive LiveOf(const Tally& tally, const WatchOptions& options, const WatchModels& models,
                          Duration elapsed, bool finished) {
  results::WatchResult counts;
  tally.Fill(counts);
  results::WatchLive live{.model = NameOf(models),
                          .deadline_ms = Milliseconds(options.deadline),
                          .elapsed_s = Seconds(elapsed),
                          .finished = finished,
                          .frames = std::move(counts.frames),
                          .in_time_percent = counts.in_time_percent,
                          .latency_ms = counts.latency_ms,
                          .stages_ms = std::move(counts.stages_ms),
                          .tiles = {}};
  for (results::WatchResult::Stream& stream : counts.per_stream)
    live.tiles.push_back({.stream = std::move(stream), .last = {}});
  return live;
}

LoadShares SharesOf(const results::WatchResult& result, const Pipeline::Busy& busy, const WatchModels& models,
                    double cpu_s) {
  LoadShares shares{.in_time_percent = result.in_time_percent.value_or(100)};
  const double whole = result.wall_s * CpuAllowance();
  if (whole <= 0) return shares;
  const double decode = Seconds(busy.decode), lookup = Seconds(busy.lookup);
  bool on_cpu = false;
  for (const WatchedModel* model : {models.detect.get(), models.infer.get()}) {
    if (model == nullptr) continue;
    on_cpu = on_cpu || model->on_cpu();
    if (!model->on_cpu() && model->streams() > 0)
      shares.infer =
          std::max(shares.infer.value_or(0), Seconds(model->busy()) / (result.wall_s * model->streams()));
  }
  shares.cpu = cpu_s / whole;
  shares.decode_cpu = decode / whole;
  shares.lookup_cpu = lookup / whole;
  const double rest = std::max(0.0, cpu_s - decode - lookup - result.made_cpu_s);
  (on_cpu ? shares.infer_cpu : shares.other_cpu) = rest / whole;
  for (const auto& [stage, times] : result.stages_ms) shares.stage_ms[stage] = times.mean;
  return shares;
}

}  // namespace

std::string_view ToString(DropPolicy policy) {
  switch (policy) {
    case DropPolicy::kLatest:
      return "latest";
    case DropPolicy::kNonReference:
      return "non-reference";
    case DropPolicy::kToKeyFrame:
      return "to-key-frame";
    case DropPolicy::kNone:
      return "none";
  }
  return "";
}

std::optional<results::Bottleneck> FindStreamBottleneck(const LoadShares& shares) {
  constexpr double kSaturated = 0.85;
  if (shares.infer && *shares.infer >= kSaturated && *shares.infer >= shares.cpu) {
    const double next = std::max(shares.cpu, 0.01);
    return results::Bottleneck{
        .stage = "infer",
        .share = std::min(1.0, *shares.infer),
        .share_of = "the engine's time",
        .gain = std::min(2.0, *shares.infer / next),
        .text = "The engine computes nearly all the time: a faster one, or a second one, raises the limit."};
  }
  if (shares.cpu >= kSaturated) {
    const std::pair<const char*, double> parts[] = {{results::stage::kDecode, shares.decode_cpu},
                                                    {results::stage::kInfer, shares.infer_cpu},
                                                    {results::stage::kIdentify, shares.lookup_cpu},
                                                    {results::stage::kOther, shares.other_cpu}};
    const auto most = std::ranges::max_element(parts, {}, &std::pair<const char*, double>::second);
    // Without that part the rest would fill the CPU later.
    const double rest = std::max(0.05, shares.cpu - most->second / 2);
    return results::Bottleneck{
        .stage = most->first,
        .share = std::clamp(most->second / shares.cpu, 0.0, 1.0),
        .share_of = "the CPU time",
        .gain = shares.cpu / rest,
        .text = fmt::format(
            "No CPU time is left, and {} takes most of it: half of its cost gives {:.2f} times the frames.",
            most->first, shares.cpu / rest)};
  }
  if (shares.in_time_percent >= 99 || shares.stage_ms.empty()) return std::nullopt;
  double sum = 0;
  for (const auto& [stage, ms] : shares.stage_ms) sum += ms;
  const auto longest =
      std::ranges::max_element(shares.stage_ms, {}, [](const auto& each) { return each.second; });
  if (sum <= 0) return std::nullopt;
  return results::Bottleneck{
      .stage = longest->first,
      .share = longest->second / sum,
      .share_of = "the latency",
      .text = fmt::format("No resource is used up; {} takes {:.1f} ms of the {:.1f} ms from capture to "
                          "answer.",
                          longest->first, longest->second, sum)};
}

Result<WatchModels> OpenModels(const WatchOptions& options, const Clock& clock) {
  WatchModels models;
  if (!options.detect.model.empty()) {
    models.detect = TRY(WatchedModel::Open(options.detect, clock));
    auto head = FindHead(models.detect->outputs());
    if (!head) return Context("model " + models.detect->name(), head.error());
    models.head = *head;
    TRY_STATUS(models.detect->WarmUp(clock));
  }
  if (!options.infer.model.empty()) {
    models.infer = TRY(WatchedModel::Open(options.infer, clock));
    if (models.infer->output().empty())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("model {} has several outputs: name one in its recipe", models.infer->name()));
    TRY_STATUS(models.infer->WarmUp(clock));
  }
  return models;
}

Result<results::WatchResult> WatchStreams(const WatchOptions& given, const WatchModels& models,
                                          const WatchHooks& hooks, const Clock& clock,
                                          const std::stop_token& stop) {
  WatchOptions options = given;
  if (!models.detect) {
    options.source.shrink_for = [&](int width, int height) {
      return ShrinkFor(models.infer->recipe(), width, height);
    };
  }
  const int streams = static_cast<int>(options.streams.size());
  std::vector<std::string> names;
  for (const StreamSpec& spec : options.streams) names.push_back(spec.name);
  const WatchedModel* classes =
      options.task == Pipeline::Task::kClassify ? models.infer.get() : models.detect.get();
  const ClockReading reading = ReadClocks(clock);
  Tally tally({.names = std::move(names),
               .deadline = options.deadline,
               .labels = classes != nullptr ? &classes->labels() : nullptr,
               .on_frame = hooks.on_frame,
               .on_event = hooks.on_event,
               .on_shown = ShowIn(hooks.live),
               .lookup_delay = options.lookup_delay,
               .wall_offset = reading.wall - reading.steady.time_since_epoch()});
  results::WatchResult result;
  Pipeline pipeline(
      {.detect = models.detect.get(), .infer = models.infer.get(), .lookup = hooks.lookup, .sink = &tally},
      {.deadline = options.deadline,
       .streams = streams,
       .workers = options.workers > 0 ? options.workers : UsableCpus(),
       .latest_only = options.policy != DropPolicy::kNone,
       .task = options.task,
       .head = models.head,
       .detection = options.detection,
       .tracking = options.tracking,
       .max_pixels = options.source.max_pixels,
       .lookup_delay = options.lookup_delay},
      clock);
  std::vector<std::unique_ptr<Follower>> followers;
  for (int i = 0; i < streams; ++i)
    followers.push_back(std::make_unique<Follower>(i, options, pipeline, tally, clock));
  for (WatchedModel* model : {models.infer.get(), models.detect.get()}) {
    if (model != nullptr) model->ResetBusy();
  }
  if (hooks.live != nullptr) hooks.live->Begin(streams);
  const Duration cpu_before = ProcessCpuTime();
  const Instant begin = clock.Now();
  bool interrupted = false;
  {
    std::atomic<int> running = streams;
    std::vector<std::jthread> threads;
    for (int i = 0; i < streams; ++i) {
      threads.push_back(StartThread(fmt::format("stream-{}", i), [&, i](const std::stop_token& end) {
        followers[static_cast<size_t>(i)]->Follow(end);
        --running;
      }));
    }
    Instant told = begin, shown = begin;
    while (running > 0) {
      const Instant now = clock.Now();
      if (stop.stop_requested()) interrupted = true;
      if (interrupted || (options.duration > Duration::zero() && now - begin >= options.duration)) break;
      if (hooks.progress && now - told >= 200ms) {
        told = now;
        hooks.progress(Seconds(now - begin), tally.frames());
      }
      if (hooks.note) std::ranges::for_each(tally.TakeNews(), hooks.note);
      if (hooks.live != nullptr && now - shown >= kShowEvery) {
        shown = now;
        hooks.live->Update(LiveOf(tally, options, models, now - begin, false));
      }
      SleepUntil(now + 20ms);
    }
    for (std::jthread& thread : threads) thread.request_stop();
  }
  if (interrupted) {
    pipeline.Stop();
  } else {
    pipeline.Drain();
  }
  if (hooks.live != nullptr) hooks.live->Update(LiveOf(tally, options, models, clock.Now() - begin, true));
  result.wall_s = Seconds(clock.Now() - begin);
  const double cpu_s = Seconds(ProcessCpuTime() - cpu_before);
  result.interrupted = interrupted;
  result.model = NameOf(models);
  if (models.detect) result.detector = models.detect->name();
  result.engine = models.infer ? models.infer->engine() : models.detect->engine();
  result.deadline_ms = Milliseconds(options.deadline);
  result.policy = ToString(options.policy);
  result.streams = streams;
  tally.Fill(result);
  for (int i = 0; i < streams; ++i) {
    results::WatchResult::Stream& stream = result.per_stream[static_cast<size_t>(i)];
    stream.produced = followers[static_cast<size_t>(i)]->produced();
    stream.tracks = pipeline.TracksOf(i);
    result.made_cpu_s += Seconds(followers[static_cast<size_t>(i)]->made_cpu());
  }
  const ClockOffset::Report clocks = pipeline.clock_report();
  result.clock = {clocks.offset_change_ms, clocks.drift_ppm, clocks.steps, clocks.largest_step_ms};
  const Pipeline::Busy busy = pipeline.busy();
  const LoadShares shares = SharesOf(result, busy, models, cpu_s);
  result.busy = {.cpu = shares.cpu,
                 .decode = shares.decode_cpu,
                 .identify = shares.lookup_cpu,
                 .infer = shares.infer.value_or(shares.infer_cpu)};
  if (result.frames.captured > 0)
    result.cpu_ms_per_frame = 1e3 * (cpu_s - result.made_cpu_s) / static_cast<double>(result.frames.captured);
  result.bottleneck = FindStreamBottleneck(shares);
  if (result.frames.captured == 0 && !interrupted) TRY_STATUS(WhyNoFrame(result, followers));
  return result;
}

}  // namespace weir::watch
