#include "probe/storage_session.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <thread>
#include <utility>

#include "base/thread.h"
#include "probe/mount_bytes.h"
#include "probe/storage_originals.h"

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
    const MountMeter mount = MountMeter::Of(samples_);
    const auto before = mount.Read();
    const auto monitor = TRY(monitor::ResourceMonitor::Start(clock_, {.nvml_library = ""}));
    TrainRun run{.accelerators = accelerators};
    run.train = TRY(Play(options_.read, OptionsOf(accelerators), repeat, samples_));
    run.machine = MachineUseOf(monitor->Stop(), static_cast<int>(std::thread::hardware_concurrency()));
    run.machine.mount_bytes = mount.Since(before);
    return run;
  }

  // Samples a second from memory, without compute time and without added latency.
  Result<std::optional<double>> Ceiling() const {
    ReadOptions memory = options_.read;
    memory.access = Access::kMemory;
    memory.added = Duration{};
    if (options_.decode) memory.memory = TRY(SomeInMemory());
    const auto train = TRY(Play(memory, AsFast(ThreadsFor(memory, options_.threads), 1s), 0, samples_));
    return train.SamplesPerSecond();
  }

  // Rates of the storages, each alone and then together, as fast as they give samples.
  Result<std::vector<UnitRate>> Units() const {
    std::vector<std::string> paths;
    for (const StorageUnit& unit : options_.units) paths.push_back(unit.path);
    return MeasureStorages(
        paths, options_.repeats, [&](const std::vector<size_t>& units, int round) -> Result<double> {
          const int threads = options_.threads * static_cast<int>(units.size());
          const auto train = TRY(Play(options_.read, AsFast(threads, std::min<Duration>(options_.limit, 3s)),
                                      round, SamplesOf(units)));
          return train.SamplesPerSecond().value_or(0);
        });
  }

  // Returns the rate of twice the threads over that of the threads.
  Result<std::optional<double>> GainOfThreads() const {
    double rates[2] = {};
    for (const int factor : {1, 2}) {
      const int threads = ThreadsFor(options_.read, options_.threads) * factor;
      const auto train =
          TRY(Play(options_.read, AsFast(threads, std::min<Duration>(options_.limit, 2s)), factor, samples_));
      rates[factor - 1] = train.SamplesPerSecond().value_or(0);
    }
    return rates[0] > 0 ? std::optional(rates[1] / rates[0]) : std::nullopt;
  }

  // Rates of the demand with and without the added latency, by the number of reads in flight.
  Result<LatencyAnswer> Latency(int accelerators) const {
    constexpr int kMost = 256;
    std::vector<int> levels;
    for (int level = 1; level <= kMost; level *= 2) levels.push_back(level);
    const auto trial = [&](int in_flight, bool delayed, int round) -> Result<double> {
      ReadOptions read = options_.read;
      if (!delayed) read.added = Duration{};
      read.ring_depth = in_flight;
      TrainOptions train = OptionsOf(accelerators);
      train.threads = read.access == Access::kUring ? 1 : in_flight;
      train.limit = std::min<Duration>(options_.limit, 1s);
      train.steps = Endless();
      const auto result = TRY(Play(read, train, round, samples_));
      return result.SamplesPerSecond().value_or(0);
    };
    return MeasureLatency(options_.read.added, accelerators * SamplesPerSecond(options_.profile), levels,
                          options_.repeats, trial);
  }

 private:
  std::vector<StorageSample> SamplesOf(const std::vector<size_t>& units) const {
    std::vector<StorageSample> some;
    size_t begin = 0;
    for (size_t i = 0; i < options_.units.size(); ++i) {
      const auto from = samples_.begin() + static_cast<std::ptrdiff_t>(begin);
      const size_t count = options_.units[i].samples;
      if (std::ranges::find(units, i) != units.end())
        some.insert(some.end(), from, from + static_cast<std::ptrdiff_t>(count));
      begin += count;
    }
    return some;
  }

  int64_t Endless() const { return (int64_t{1} << 40) / std::max(1, options_.profile.batch); }

  TrainOptions OptionsOf(int accelerators) const {
    return {.accelerators = accelerators,
            .batch = options_.profile.batch,
            .step = options_.profile.step,
            .threads = ThreadsFor(options_.read, options_.threads),
            .depth = options_.depth,
            .sequences = InSequence(samples_),
            .steps = options_.steps,
            .limit = options_.limit,
            .timeout = options_.timeout,
            .share = options_.share};
  }

  // Options of a run without compute time.
  TrainOptions AsFast(int threads, Duration limit) const {
    TrainOptions train = OptionsOf(1);
    train.step = Duration{};
    train.threads = threads;
    train.steps = Endless();
    train.limit = limit;
    train.share = {};
    return train;
  }

  // Reads some samples, so that the ceiling decodes what the run decodes. Those that fail or hang are left
  // out.
  Result<std::shared_ptr<const std::vector<Bytes>>> SomeInMemory() const {
    constexpr size_t kMost = 64;
    ReadOptions read = options_.read;
    read.most_bytes = most_bytes_;
    read.access = Access::kPool;
    read.added = Duration{};
    std::vector<StorageSample> samples;
    const size_t every = std::max<size_t>(1, samples_.size() / kMost);
    for (size_t i = 0; i < samples_.size() && samples.size() < kMost; i += every)
      samples.push_back(samples_[i]);
    const auto originals = std::make_shared<Originals>(samples, read, options_.timeout, clock_);
    TRY_STATUS(originals->Start(1));
    auto some = std::make_shared<std::vector<Bytes>>();
    for (int64_t i = 0; i < std::ssize(samples); ++i)
      if (auto bytes = originals->Read(i)) some->push_back(*std::move(bytes));
    originals->Finish();
    return some;
  }

  Result<TrainResult> Play(ReadOptions read, const TrainOptions& train, int repeat,
                           const std::vector<StorageSample>& samples) const {
    read.most_bytes = most_bytes_;
    const Seed seed = Seed(options_.seed).Stream(static_cast<uint64_t>(repeat));
    auto result = TRY(Train(
        samples, train, seed,
        [read, work = options_.decode, &clock = clock_] {
          return MakeWorkingReader(read, work ? &*work : nullptr, clock);
        },
        clock_, stop_));
    if (result.cancelled && !train.share.barrier) return Fail(ErrorCode::kCancelled, "stopped");
    return result;
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

namespace {

// The kind of file system that keeps `path` in memory alone; empty for others.
std::string MemoryFileSystem(const std::string& path) {
  struct statfs facts{};
  if (::statfs(path.c_str(), &facts) != 0) return "";
  if (facts.f_type == TMPFS_MAGIC) return "tmpfs";
  if (facts.f_type == RAMFS_MAGIC) return "ramfs";
  return "";
}

}  // namespace

SetFacts InspectSet(const std::vector<StorageSample>& samples) {
  SetFacts facts{.samples = samples.size()};
  std::string_view last;
  for (const StorageSample& sample : samples) {
    facts.bytes += sample.bytes;
    if (std::exchange(last, sample.path) == sample.path) continue;  // a shard
    if (facts.in_memory.empty()) facts.in_memory = MemoryFileSystem(sample.path);
    if (const auto unwritten = UnwrittenBytes(sample.path)) {
      facts.unwritten_bytes += *unwritten;
    } else {
      ++facts.unknown_files;
    }
  }
  return facts;
}

void ForgetSet(const std::vector<StorageSample>& samples) {
  std::string_view last;
  for (const StorageSample& sample : samples)
    if (std::exchange(last, sample.path) != sample.path) static_cast<void>(ForgetPages(sample.path));
}

Result<TrainRun> PlayTraining(const StorageOptions& options, int accelerators, int repeat,
                              const std::vector<StorageSample>& samples, const Clock& clock,
                              const std::stop_token& stop) {
  return Trainings(options, samples, clock, stop).Run(accelerators, repeat);
}

Result<std::optional<double>> MeasureCeiling(const StorageOptions& options,
                                             const std::vector<StorageSample>& samples, const Clock& clock,
                                             const std::stop_token& stop) {
  return Trainings(options, samples, clock, stop).Ceiling();
}

Result<TrainReport> ProbeTraining(const StorageOptions& options, const std::vector<StorageSample>& samples,
                                  const SetFacts& set, const Clock& clock, const std::stop_token& stop,
                                  const Progress& progress) {
  const Trainings trainings(options, samples, clock, stop);
  TrainReport report{.profile = options.profile};
  const auto ceiling = TRY(trainings.Ceiling());
  if (options.units.size() > 1) report.units = TRY(trainings.Units());
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
      .decoded = options.decode.has_value(),
      .wants_cold = options.read.cold && !options.read.direct && options.read.access != Access::kMemory};
  if (hung && report.facts.runs.back().train.reads.hung.empty())
    report.facts.runs.push_back(report.runs.back());  // the verdict names what hung
  if (!hung && !report.facts.from_memory && FindBottleneck(report.facts).stage == std::string("queue"))
    report.facts.more_threads_gain = TRY(trainings.GainOfThreads());
  report.facts.units = report.units;
  if (options.read.added > Duration{} && !hung) report.latency = TRY(trainings.Latency(shown->first));
  report.demand_samples_per_s = SamplesPerSecond(options.profile) * shown->first;
  if (report.demand_samples_per_s > 0)
    report.reads_in_flight_needed = ReadsInFlight(report.demand_samples_per_s, report.facts.Reads());
  return report;
}

}  // namespace weir::probe
