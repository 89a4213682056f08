#include "probe/storage_phases.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/thread.h"

namespace weir::probe {
namespace {

ReadOptions ReadsOf(const PhaseOptions& options, const std::vector<StorageSample>& samples) {
  ReadOptions read = options.train.read;
  for (const StorageSample& sample : samples)
    read.most_bytes = std::max<size_t>(read.most_bytes, sample.bytes);
  return read;
}

bool WantsCold(const PhaseOptions& options) {
  const ReadOptions& read = options.train.read;
  return read.cold && !read.direct && read.access != Access::kMemory;
}

Seed SeedOf(const PhaseOptions& options, int repeat) {
  return Seed(options.train.seed).Stream(static_cast<uint64_t>(repeat));
}

// Runs `play` under the monitor.
template <typename Play>
auto Watch(const Clock& clock, MachineUse& machine, const Play& play) -> decltype(play()) {
  const auto monitor = TRY(monitor::ResourceMonitor::Start(clock, {.nvml_library = ""}));
  auto result = play();
  machine = MachineUseOf(monitor->Stop(), static_cast<int>(std::thread::hardware_concurrency()));
  if (result && result->cancelled) return Fail(ErrorCode::kCancelled, "stopped");
  return result;
}

Result<TrainResult> PlayTrain(const PhaseOptions& options, const std::vector<StorageSample>& samples,
                              const Clock& clock, const std::stop_token& stop) {
  const StorageOptions& train = options.train;
  const ReadOptions read = ReadsOf(options, samples);
  return Train(
      samples,
      {.accelerators = train.least_accelerators,
       .batch = train.profile.batch,
       .step = train.profile.step,
       .threads = ThreadsFor(train.read, train.threads),
       .depth = train.depth,
       .sequences = InSequence(samples),
       .steps = train.steps,
       .limit = train.limit,
       .timeout = train.timeout},
      SeedOf(options, 0), [read, &clock] { return SampleReader::Make(read, clock); }, clock, stop);
}

Result<InferResult> PlayInfer(const PhaseOptions& options, const std::vector<StorageSample>& samples,
                              int repeat, const Clock& clock, const std::stop_token& stop) {
  const ReadOptions read = ReadsOf(options, samples);
  return Infer(
      samples, options.infer, SeedOf(options, repeat),
      [read, &clock] { return SampleReader::Make(read, clock); }, clock, stop);
}

MachineUse Worse(const MachineUse& a, const MachineUse& b) {
  return {.cores = b.cores,
          .wall_s = std::max(a.wall_s, b.wall_s),
          .foreign_cores = std::max(a.foreign_cores, b.foreign_cores),
          .steal_percent = std::max(a.steal_percent, b.steal_percent),
          .throttled_share = std::max(a.throttled_share, b.throttled_share)};
}

template <typename Runs>
StorageVerdict JudgeRuns(const Runs& runs, const SetFacts& set, bool wants_cold) {
  ReadTally reads;
  MachineUse worst;
  for (const auto& run : runs) {
    reads.Merge(run.result.reads);
    worst = Worse(worst, run.machine);
  }
  StorageVerdict verdict;
  JudgeReads(reads, set, wants_cold, verdict);
  JudgeMachine(worst, verdict);
  return verdict;
}

template <typename Runs>
bool AnyRunHung(const Runs& runs) {
  return std::ranges::any_of(runs, [](const auto& run) { return !run.result.reads.hung.empty(); });
}

std::optional<double> Median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Json InferFigures(const InferResult& result) {
  Json json{{"planned", result.planned}, {"answered", result.answered}, {"in_time", result.in_time}};
  if (const auto share = result.InTimeShare()) json["in_time_percent"] = 100 * *share;
  json["response_us"] = MicrosecondsJson(result.response_ns);
  json["service_us"] = MicrosecondsJson(result.service_ns);
  return json;
}

Json TrainFigures(const TrainResult& result) {
  Json json = Json::object();
  if (const auto share = result.Utilisation()) json["utilisation_percent"] = 100 * *share;
  PutIfAny(json, "samples_per_s", result.SamplesPerSecond());
  return json;
}

void PutRatio(Json& json, const char* key, std::optional<double> together, std::optional<double> alone) {
  if (together && alone && *alone > 0) json[key] = *together / *alone;
}

Json SetJson(const SetFacts& set) {
  return {{"samples", set.samples},
          {"bytes", set.bytes},
          {"unwritten_bytes", set.unwritten_bytes},
          {"files_without_extents", set.unknown_files}};
}

}  // namespace

Result<InferReport> ProbeInference(const PhaseOptions& options, const std::vector<StorageSample>& samples,
                                   const SetFacts& set, const Clock& clock, const std::stop_token& stop) {
  InferReport report{.options = options.infer, .set = set, .wants_cold = WantsCold(options)};
  for (int repeat = 0; repeat < options.train.repeats && !AnyRunHung(report.runs); ++repeat) {
    InferRun run;
    run.result =
        TRY(Watch(clock, run.machine, [&] { return PlayInfer(options, samples, repeat, clock, stop); }));
    report.runs.push_back(std::move(run));
  }
  return report;
}

Result<StreamReport> ProbeStreaming(const PhaseOptions& options, const std::vector<StorageSample>& samples,
                                    const SetFacts& set, const Clock& clock, const std::stop_token& stop) {
  StreamReport report{.options = options.stream, .set = set, .wants_cold = WantsCold(options)};
  for (int repeat = 0; repeat < options.train.repeats && !AnyRunHung(report.runs); ++repeat) {
    StreamRun run;
    run.result = TRY(Watch(clock, run.machine, [&] { return Stream(samples, options.stream, clock, stop); }));
    report.runs.push_back(std::move(run));
  }
  return report;
}

Result<MixReport> ProbeMix(const PhaseOptions& options, const std::vector<StorageSample>& samples,
                           const SetFacts& set, const Clock& clock, const std::stop_token& stop) {
  MixReport report{.set = set, .wants_cold = WantsCold(options)};
  MachineUse alone[3];
  report.alone.train = TRY(Watch(clock, alone[0], [&] { return PlayTrain(options, samples, clock, stop); }));
  report.alone.infer =
      TRY(Watch(clock, alone[1], [&] { return PlayInfer(options, samples, 0, clock, stop); }));
  report.alone.stream =
      TRY(Watch(clock, alone[2], [&] { return Stream(samples, options.stream, clock, stop); }));
  if (AnyHung(report)) {
    report.machine = Worse(Worse(alone[0], alone[1]), alone[2]);
    return report;
  }
  Result<InferResult> infer;
  Result<StreamResult> stream;
  const auto train = Watch(clock, report.machine, [&]() -> Result<TrainResult> {
    const std::jthread inference = StartThread(
        "phase", [&](const std::stop_token&) { infer = PlayInfer(options, samples, 1, clock, stop); });
    const std::jthread streaming = StartThread(
        "phase", [&](const std::stop_token&) { stream = Stream(samples, options.stream, clock, stop); });
    return PlayTrain(options, samples, clock, stop);
  });
  report.together = {TRY(train), TRY(infer), TRY(stream)};
  for (const MachineUse& machine : alone) report.machine = Worse(machine, report.machine);
  return report;
}

std::string InferBottleneck(const std::vector<InferRun>& runs) {
  stats::Histogram response, service;
  ReadTally reads;
  for (const InferRun& run : runs) {
    response.Merge(run.result.response_ns);
    service.Merge(run.result.service_ns);
    reads.Merge(run.result.reads);
  }
  const std::pair<const char*, double> parts[] = {
      {"queue", response.Mean().value_or(0) - service.Mean().value_or(0)},
      {"open", reads.open_ns.Mean().value_or(0)},
      {"read", reads.read_ns.Mean().value_or(0)},
      {"close", reads.close_ns.Mean().value_or(0)}};
  return std::ranges::max_element(parts, {}, [](const auto& part) { return part.second; })->first;
}

bool AnyHung(const InferReport& report) { return AnyRunHung(report.runs); }
bool AnyHung(const StreamReport& report) { return AnyRunHung(report.runs); }
bool AnyHung(const MixReport& report) {
  for (const MixReport::Phases* phases : {&report.alone, &report.together})
    if (!phases->train.reads.hung.empty() || !phases->infer.reads.hung.empty() ||
        !phases->stream.reads.hung.empty())
      return true;
  return false;
}

Json ToJson(const InferReport& report) {
  InferResult all;
  for (const InferRun& run : report.runs) {
    all.planned += run.result.planned;
    all.answered += run.result.answered;
    all.in_time += run.result.in_time;
    all.response_ns.Merge(run.result.response_ns);
    all.service_ns.Merge(run.result.service_ns);
    all.reads.Merge(run.result.reads);
  }
  Json json{{"phase", "infer"}, {"streams", report.options.streams}};
  json["frames_per_s"] = report.options.frames_per_s;
  json["frames"] = InferFigures(all);
  PutReads(json, all.reads);
  json["bottleneck"] = {{"stage", InferBottleneck(report.runs)}};
  json["set"] = SetJson(report.set);
  PutVerdict(json, JudgeRuns(report.runs, report.set, report.wants_cold));
  json["runs"] = Json::array();
  for (const InferRun& run : report.runs) {
    Json one = InferFigures(run.result);
    PutMachine(one, run.machine);
    json["runs"].push_back(std::move(one));
  }
  return json;
}

Json ToJson(const StreamReport& report) {
  Json json{{"phase", "stream"}, {"block_bytes", report.options.block_bytes}};
  json["threads"] = report.options.threads;
  std::vector<double> rates;
  ReadTally reads;
  Json runs = Json::array();
  for (const StreamRun& run : report.runs) {
    Json one = Json::object();
    if (const auto rate = run.result.BytesPerSecond()) {
      rates.push_back(*rate);
      one["bytes_per_s"] = *rate;
    }
    one["bytes_asked"] = run.result.reads.bytes;
    PutMachine(one, run.machine);
    runs.push_back(std::move(one));
    reads.Merge(run.result.reads);
  }
  PutIfAny(json, "bytes_per_s", Median(rates));
  PutReads(json, reads);
  json["set"] = SetJson(report.set);
  PutVerdict(json, JudgeRuns(report.runs, report.set, report.wants_cold));
  json["runs"] = std::move(runs);
  return json;
}

Json ToJson(const MixReport& report) {
  const auto phases = [](const MixReport::Phases& of) {
    Json json{{"train", TrainFigures(of.train)}, {"infer", InferFigures(of.infer)}};
    json["stream"] = Json::object();
    PutIfAny(json["stream"], "bytes_per_s", of.stream.BytesPerSecond());
    return json;
  };
  Json json{{"phase", "mix"}, {"alone", phases(report.alone)}, {"together", phases(report.together)}};
  Json kept = Json::object();
  const MixReport::Phases &a = report.alone, &b = report.together;
  PutRatio(kept, "train_samples_per_s", b.train.SamplesPerSecond(), a.train.SamplesPerSecond());
  PutRatio(kept, "stream_bytes_per_s", b.stream.BytesPerSecond(), a.stream.BytesPerSecond());
  const auto p99 = [](const InferResult& infer) -> std::optional<double> {
    const auto ns = infer.response_ns.Quantile(0.99);
    return ns ? std::optional(static_cast<double>(*ns)) : std::nullopt;
  };
  PutRatio(kept, "infer_p99_response", p99(b.infer), p99(a.infer));
  json["together_over_alone"] = std::move(kept);
  ReadTally reads;
  for (const MixReport::Phases* of : {&a, &b}) {
    reads.Merge(of->train.reads);
    reads.Merge(of->infer.reads);
    reads.Merge(of->stream.reads);
  }
  PutReads(json, reads);
  json["set"] = SetJson(report.set);
  StorageVerdict verdict;
  JudgeReads(reads, report.set, report.wants_cold, verdict);
  JudgeMachine(report.machine, verdict);
  PutVerdict(json, verdict);
  return json;
}

}  // namespace weir::probe
