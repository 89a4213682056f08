#include "probe/storage_phases.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/thread.h"
#include "probe/mount_bytes.h"

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
auto Watch(const std::vector<StorageSample>& samples, const Clock& clock, MachineUse& machine,
           const Play& play) -> decltype(play()) {
  const MountMeter mount = MountMeter::Of(samples);
  const auto before = mount.Read();
  const auto monitor = TRY(monitor::ResourceMonitor::Start(clock, {.nvml_library = ""}));
  auto result = play();
  machine = MachineUseOf(monitor->Stop(), static_cast<int>(std::thread::hardware_concurrency()));
  machine.mount_bytes = mount.Since(before);
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

template <typename Runs>
bool AnyRunHung(const Runs& runs) {
  return std::ranges::any_of(runs, [](const auto& run) { return !run.result.reads.hung.empty(); });
}

}  // namespace

MachineUse Worse(const MachineUse& a, const MachineUse& b) {
  return {.cores = b.cores,
          .wall_s = std::max(a.wall_s, b.wall_s),
          .foreign_cores = std::max(a.foreign_cores, b.foreign_cores),
          .steal_percent = std::max(a.steal_percent, b.steal_percent),
          .throttled_share = std::max(a.throttled_share, b.throttled_share)};
}

Result<InferReport> ProbeInference(const PhaseOptions& options, const std::vector<StorageSample>& samples,
                                   const SetFacts& set, const Clock& clock, const std::stop_token& stop) {
  InferReport report{.options = options.infer, .set = set, .wants_cold = WantsCold(options)};
  for (int repeat = 0; repeat < options.train.repeats && !AnyRunHung(report.runs); ++repeat) {
    InferRun run;
    run.result = TRY(
        Watch(samples, clock, run.machine, [&] { return PlayInfer(options, samples, repeat, clock, stop); }));
    report.runs.push_back(std::move(run));
  }
  return report;
}

Result<StreamReport> ProbeStreaming(const PhaseOptions& options, const std::vector<StorageSample>& samples,
                                    const SetFacts& set, const Clock& clock, const std::stop_token& stop) {
  StreamReport report{.options = options.stream, .set = set, .wants_cold = WantsCold(options)};
  for (int repeat = 0; repeat < options.train.repeats && !AnyRunHung(report.runs); ++repeat) {
    StreamRun run;
    run.result =
        TRY(Watch(samples, clock, run.machine, [&] { return Stream(samples, options.stream, clock, stop); }));
    report.runs.push_back(std::move(run));
  }
  return report;
}

Result<MixReport> ProbeMix(const PhaseOptions& options, const std::vector<StorageSample>& samples,
                           const SetFacts& set, const Clock& clock, const std::stop_token& stop) {
  MixReport report{.set = set, .wants_cold = WantsCold(options)};
  MachineUse alone[3];
  report.alone.train =
      TRY(Watch(samples, clock, alone[0], [&] { return PlayTrain(options, samples, clock, stop); }));
  report.alone.infer =
      TRY(Watch(samples, clock, alone[1], [&] { return PlayInfer(options, samples, 0, clock, stop); }));
  report.alone.stream =
      TRY(Watch(samples, clock, alone[2], [&] { return Stream(samples, options.stream, clock, stop); }));
  if (AnyHung(report)) {
    report.machine = Worse(Worse(alone[0], alone[1]), alone[2]);
    return report;
  }
  Result<InferResult> infer;
  Result<StreamResult> stream;
  const auto train = Watch(samples, clock, report.machine, [&]() -> Result<TrainResult> {
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

}  // namespace weir::probe
