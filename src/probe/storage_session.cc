#include "probe/storage_session.h"

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "base/thread.h"

namespace weir::probe {
namespace {

// The trainings of one probe.
class Trainings {
 public:
  Trainings(const StorageOptions& options, const std::vector<StorageSample>& samples, const Clock& clock,
            std::stop_token stop)
      : options_(options), samples_(samples), clock_(clock), stop_(std::move(stop)) {
    for (const StorageSample& sample : samples_) most_bytes_ = std::max<size_t>(most_bytes_, sample.bytes);
  }

  Result<TrainRun> Run(int accelerators, int repeat) const {
    const auto monitor = TRY(monitor::ResourceMonitor::Start(clock_, {.nvml_library = ""}));
    TrainRun run{.accelerators = accelerators};
    run.train = TRY(Play(options_.read,
                         {.accelerators = accelerators,
                          .batch = options_.profile.batch,
                          .step = options_.profile.step,
                          .threads = ThreadsFor(options_.read, options_.threads),
                          .depth = options_.depth,
                          .sequences = InSequence(samples_),
                          .steps = options_.steps,
                          .limit = options_.limit,
                          .timeout = options_.timeout},
                         repeat));
    run.machine = MachineUseOf(monitor->Stop(), static_cast<int>(std::thread::hardware_concurrency()));
    if (run.train.cancelled) return Fail(ErrorCode::kCancelled, "stopped");
    return run;
  }

  // Samples a second from memory, without compute time and without added latency.
  Result<std::optional<double>> Ceiling() const {
    const int64_t endless = (int64_t{1} << 40) / std::max(1, options_.profile.batch);
    ReadOptions memory = options_.read;
    memory.access = Access::kMemory;
    memory.added = Duration{};
    const auto train = TRY(Play(memory,
                                {.batch = options_.profile.batch,
                                 .threads = ThreadsFor(memory, options_.threads),
                                 .depth = options_.depth,
                                 .steps = endless,
                                 .limit = 1s,
                                 .timeout = options_.timeout},
                                0));
    if (train.cancelled) return Fail(ErrorCode::kCancelled, "stopped");
    return train.SamplesPerSecond();
  }

 private:
  Result<TrainResult> Play(ReadOptions read, const TrainOptions& train, int repeat) const {
    read.most_bytes = most_bytes_;
    const Seed seed = Seed(options_.seed).Stream(static_cast<uint64_t>(repeat));
    return Train(
        samples_, train, seed, [this, read] { return SampleReader::Make(read, clock_); }, clock_, stop_);
  }

  const StorageOptions& options_;
  const std::vector<StorageSample>& samples_;
  const Clock& clock_;
  const std::stop_token stop_;
  size_t most_bytes_ = 0;
};

}  // namespace

int ThreadsFor(const ReadOptions& read, int threads) {
  return read.access == Access::kMemory ? std::min(threads, UsableCpus()) : threads;
}

bool InSequence(const std::vector<StorageSample>& samples) {
  return !samples.empty() && samples.front().place == StorageSample::Place::kSequence;
}

SetFacts InspectSet(const std::vector<StorageSample>& samples) {
  SetFacts facts{.samples = samples.size()};
  std::string_view last;
  for (const StorageSample& sample : samples) {
    facts.bytes += sample.bytes;
    if (std::exchange(last, sample.path) == sample.path) continue;  // a shard
    if (const auto unwritten = UnwrittenBytes(sample.path)) {
      facts.unwritten_bytes += *unwritten;
    } else {
      ++facts.unknown_files;
    }
  }
  return facts;
}

Status ForgetSet(const std::vector<StorageSample>& samples) {
  std::string_view last;
  for (const StorageSample& sample : samples)
    if (std::exchange(last, sample.path) != sample.path) TRY_STATUS(ForgetPages(sample.path));
  return {};
}

Result<TrainReport> ProbeTraining(const StorageOptions& options, const std::vector<StorageSample>& samples,
                                  const SetFacts& set, const Clock& clock, const std::stop_token& stop,
                                  const Progress& progress) {
  const Trainings trainings(options, samples, clock, stop);
  TrainReport report{.profile = options.profile};
  const auto ceiling = TRY(trainings.Ceiling());
  std::map<int, std::vector<TrainRun>> by_number;
  bool hung = false;
  const auto trial = [&](int accelerators) -> Result<std::vector<bool>> {
    std::vector<bool> fed;
    for (int repeat = 0; repeat < options.repeats && !hung; ++repeat) {
      TrainRun run = TRY(trainings.Run(accelerators, repeat));
      hung = !run.train.reads.hung.empty();
      fed.push_back(!hung && run.train.Utilisation().value_or(0) >= options.profile.least_utilisation);
      report.runs.push_back(run);
      by_number[accelerators].push_back(std::move(run));
      progress(static_cast<int>(report.runs.size()), report.runs.back());
    }
    if (fed.empty()) fed.push_back(false);
    return fed;
  };
  report.fed = TRY(FindMostFed(options.least_accelerators, options.most_accelerators, trial));
  const auto shown = report.fed.value ? by_number.find(*report.fed.value) : by_number.begin();
  CHECK(shown != by_number.end());
  report.facts = {
      .runs = shown->second,
      .ceiling_samples_per_s = ceiling,
      .set = options.read.access == Access::kMemory ? SetFacts{set.bytes, set.samples} : set,
      .from_memory = options.read.access == Access::kMemory,
      .wants_cold = options.read.cold && !options.read.direct && options.read.access != Access::kMemory};
  if (hung && report.facts.runs.back().train.reads.hung.empty())
    report.facts.runs.push_back(report.runs.back());  // the verdict names what hung
  report.demand_samples_per_s = SamplesPerSecond(options.profile) * shown->first;
  report.reads_in_flight_needed = ReadsInFlight(report.demand_samples_per_s, report.facts.Reads());
  return report;
}

}  // namespace weir::probe
