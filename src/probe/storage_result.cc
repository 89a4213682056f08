#include "probe/storage_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "results/storage_thresholds.h"

namespace weir::probe {
namespace {

namespace threshold = results::threshold;
using results::Reason;
using results::Standing;

template <typename Value>
std::optional<double> MedianOfRuns(const std::vector<TrainRun>& runs, const Value& value) {
  std::vector<double> values;
  for (const TrainRun& run : runs)
    if (const std::optional<double> one = value(run.train)) values.push_back(*one);
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

Result<FedAccelerators> FindMostFed(int least, int most, const Trial& trial) {
  FedAccelerators found;
  int low = least, high = most;
  while (low <= high) {
    const int n = low + (high - low) / 2;
    const std::vector<bool> fed = TRY(trial(n));
    const auto yes = std::ranges::count(fed, true);
    const auto all = std::ssize(fed);
    if (all > 0 && yes == all) found.low = std::max(found.low.value_or(n), n);
    if (yes > 0) found.high = std::max(found.high.value_or(n), n);
    if (2 * yes > all) {
      found.value = std::max(found.value.value_or(n), n);
      low = n + 1;
    } else {
      high = n - 1;
    }
  }
  found.more_may_be_fed = found.value == most;
  return found;
}

MachineUse MachineUseOf(const monitor::Resources& used, int cores) {
  MachineUse machine{.cores = static_cast<double>(cores), .wall_s = used.wall_s};
  if (used.server_cpu && used.app_cpu) {
    const double own =
        used.app_cpu->mean + (used.recogniser_cpu ? used.recogniser_cpu->mean : 0) + used.observer_cpu;
    machine.foreign_cores = std::max(0.0, used.server_cpu->mean - own);
  }
  machine.steal_percent = used.steal_percent;
  if (used.throttled_s && used.wall_s > 0) machine.throttled_share = *used.throttled_s / used.wall_s;
  if (used.read_bytes) machine.device_bytes = static_cast<double>(*used.read_bytes);
  return machine;
}

void StorageVerdict::Add(Standing at_best, std::string_view reason, std::string evidence) {
  standing = std::max(standing, at_best);
  causes.push_back({at_best, std::string(reason), std::move(evidence)});
}

std::optional<double> TrainFacts::MedianUtilisation() const {
  return MedianOfRuns(runs, [](const TrainResult& train) { return train.Utilisation(); });
}

std::optional<double> TrainFacts::MedianSamplesPerSecond() const {
  return MedianOfRuns(runs, [](const TrainResult& train) { return train.SamplesPerSecond(); });
}

std::optional<double> TrainFacts::MedianBytesPerSecond() const {
  return MedianOfRuns(runs, [](const TrainResult& train) { return train.BytesPerSecond(); });
}

ReadTally TrainFacts::Reads() const {
  ReadTally reads;
  for (const TrainRun& run : runs) reads.Merge(run.train.reads);
  return reads;
}

Stalls TrainFacts::AllStalls() const {
  Stalls stalls;
  for (const TrainRun& run : runs) stalls.Add(run.train.stalls);
  return stalls;
}

void JudgeReads(const ReadTally& reads, const SetFacts& set, bool wants_cold, StorageVerdict& verdict) {
  if (!reads.hung.empty())
    verdict.Add(
        Standing::kInvalid, "hung",
        fmt::format("{} reads did not end within the timeout, first {}", reads.hung.size(), reads.hung[0]));
  if (reads.errors > static_cast<int64_t>(reads.hung.size()))
    verdict.Add(Standing::kInvalid, ToString(Reason::kErrors),
                fmt::format("{} reads failed, first {}", reads.errors, reads.first_errors[0]));
  if (set.unwritten_bytes > 0)
    verdict.Add(Standing::kInvalid, "unwritten",
                fmt::format("{} of {} bytes are holes or were never written: no disk is read for them",
                            set.unwritten_bytes, set.bytes));
  if (set.unknown_files > 0)
    verdict.Add(Standing::kSuspect, "unwritten",
                fmt::format("the file system does not list the extents of {} files: they may have holes",
                            set.unknown_files));
  if (!set.in_memory.empty())
    verdict.Add(Standing::kInvalid, "memory",
                fmt::format("the set lies on {}, which is memory: name a folder on the storage to be probed",
                            set.in_memory));
  if (!wants_cold) return;
  if (const auto share = reads.CachedShare(); share && *share > threshold::kCachedShare)
    verdict.Add(Standing::kInvalid, "cached",
                fmt::format("{:.1f} % of the bytes were in the page cache before they were read, limit "
                            "{:.0f} %",
                            100 * *share, 100 * threshold::kCachedShare));
  if (reads.unknown_cache > 0)
    verdict.Add(Standing::kSuspect, "cached",
                fmt::format("the kernel does not say for {} reads how much was in the page cache "
                            "(cachestat needs Linux 6.5)",
                            reads.unknown_cache));
}

void JudgeMachine(const MachineUse& machine, StorageVerdict& verdict) {
  if (machine.steal_percent && *machine.steal_percent > threshold::kStealPercent)
    verdict.Add(Standing::kSuspect, ToString(Reason::kSteal),
                fmt::format("steal {:.1f} % of the CPU time, limit {:.0f} %", *machine.steal_percent,
                            threshold::kStealPercent));
  const double limit = threshold::kForeignShare * machine.cores;
  if (machine.wall_s > threshold::kShortestForForeign && machine.foreign_cores &&
      *machine.foreign_cores > limit)
    verdict.Add(Standing::kSuspect, ToString(Reason::kForeignCpu),
                fmt::format("other processes used {:.2f} of {:.0f} cores, limit {:.2f}",
                            *machine.foreign_cores, machine.cores, limit));
  if (machine.throttled_share && *machine.throttled_share > threshold::kThrottledShare)
    verdict.Add(Standing::kInvalid, ToString(Reason::kThrottling),
                fmt::format("a CPU quota held the process back for {:.1f} % of the time, limit {:.0f} %",
                            100 * *machine.throttled_share, 100 * threshold::kThrottledShare));
}

void JudgeDelivery(uint64_t read_bytes, const MachineUse& machine, bool wants_cold, StorageVerdict& verdict) {
  if (!wants_cold || !machine.mount_bytes) return;
  const auto read = static_cast<double>(read_bytes);
  if (*machine.mount_bytes < (1 - threshold::kCachedShare) * read)
    verdict.Add(Standing::kInvalid, "cached",
                fmt::format("the mount delivered {:.0f} of {:.0f} bytes that were read: the rest came from a "
                            "cache of this host",
                            *machine.mount_bytes, read));
}

EpochCounts CountEpochs(const std::vector<TrainRun>& runs) {
  EpochCounts counts;
  EpochReads all;  // of one whole epoch
  for (const TrainRun& run : runs) {
    if (all.samples != run.train.set_samples) {
      all = {};
      for (int64_t i = 0; i < run.train.set_samples; ++i) all.Add(i);
    }
    for (const EpochReads& epoch : run.train.order) {
      if (epoch.samples < all.samples) continue;
      ++counts.whole;
      if (epoch == all) ++counts.exact;
    }
  }
  return counts;
}

namespace {

// Storages of unequal speed: each step reads from all of them in equal parts, so the slowest sets the pace.
void JudgeUnits(const std::vector<UnitRate>& units, StorageVerdict& verdict) {
  if (!AreUnequal(units)) return;
  std::string each;
  double sum = 0;
  for (const UnitRate& unit : units) {
    sum += unit.alone->value;
    each += fmt::format("{}{} ({:.0f} samples/s)", each.empty() ? "" : ", ", EscapeBytes(unit.path),
                        unit.alone->value);
  }
  verdict.Add(Standing::kSuspect, "unequal-units",
              fmt::format("the storages are not equally fast alone: {}; together {:.0f} of {:.0f} samples/s, "
                          "as the slowest holds each step up: probe each alone, or give it the part of the "
                          "set that its speed allows",
                          each, units.back().samples_per_s.value, sum));
}

}  // namespace

StorageVerdict Judge(const TrainFacts& facts) {
  StorageVerdict verdict;
  if (const EpochCounts epochs = CountEpochs(facts.runs); epochs.exact < epochs.whole)
    verdict.Add(Standing::kInvalid, "order",
                fmt::format("{} of {} epochs read a sample twice and another not at all",
                            epochs.whole - epochs.exact, epochs.whole));
  const ReadTally reads = facts.Reads();
  JudgeReads(reads, facts.set, facts.wants_cold, verdict);
  MachineUse worst;
  int64_t fewest = facts.runs.empty() ? 0 : facts.runs.front().train.steps;
  for (const TrainRun& run : facts.runs) {
    JudgeDelivery(run.train.reads.bytes, run.machine, facts.wants_cold, verdict);
    fewest = std::min(fewest, run.train.steps);
    worst.cores = run.machine.cores;
    worst.wall_s = std::max(worst.wall_s, run.machine.wall_s);
    worst.foreign_cores = std::max(worst.foreign_cores, run.machine.foreign_cores);
    worst.steal_percent = std::max(worst.steal_percent, run.machine.steal_percent);
    worst.throttled_share = std::max(worst.throttled_share, run.machine.throttled_share);
  }
  if (fewest < threshold::kFewestSteps)
    verdict.Add(Standing::kSuspect, ToString(Reason::kTooFewSamples),
                fmt::format("{} steps in the shortest run, limit {}", fewest, threshold::kFewestSteps));
  if (const auto rate = facts.MedianSamplesPerSecond();
      !facts.from_memory && rate && facts.ceiling_samples_per_s &&
      *rate > threshold::kHarnessShare * *facts.ceiling_samples_per_s)
    verdict.Add(Standing::kSuspect, ToString(Reason::kGeneratorBusy),
                fmt::format("{:.0f} samples/s of the {:.0f} that this program reads from memory, limit "
                            "{:.0f} %",
                            *rate, *facts.ceiling_samples_per_s, 100 * threshold::kHarnessShare));
  JudgeUnits(facts.units, verdict);
  JudgeMachine(worst, verdict);
  return verdict;
}

StorageBottleneck FindBottleneck(const TrainFacts& facts) {
  constexpr double kNoStall = 0.01;
  const Stalls stalls = facts.AllStalls();
  double wall = 0;
  for (const TrainRun& run : facts.runs) wall += Seconds(run.train.wall);
  if (wall <= 0 || Seconds(stalls.Total()) < kNoStall * wall)
    return {"compute", wall > 0 ? 1 - Seconds(stalls.Total()) / wall : 1};
  const std::pair<const char*, Duration> parts[] = {
      {"queue", stalls.queue},   {"open", stalls.open},       {"read", stalls.read},  {"close", stalls.close},
      {"decode", stalls.decode}, {"augment", stalls.augment}, {"hosts", stalls.hosts}};
  const auto& most = *std::ranges::max_element(parts, {}, [](const auto& part) { return part.second; });
  const bool saturated = most.second == stalls.queue && facts.more_threads_gain.value_or(2) < kGainOfThreads;
  return {saturated ? "storage" : most.first, Seconds(most.second) / wall};
}

std::optional<double> ReadsInFlight(double samples_per_s, const ReadTally& reads) {
  const auto open = reads.open_ns.Mean(), read = reads.read_ns.Mean(), close = reads.close_ns.Mean();
  if (!open || !read || !close) return std::nullopt;
  return samples_per_s * (*open + *read + *close) / 1e9;
}

}  // namespace weir::probe
