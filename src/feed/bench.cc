#include "feed/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "feed/epoch_hash.h"
#include "results/stage.h"
#include "results/thresholds.h"

namespace weir::feed {

Result<Duration> ParseStep(std::string_view text) {
  const auto refuse = [&] {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("\"{}\" is no time of a step: give 0 to 3600s, as in 3.5ms, 800us or 1s", text));
  };
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return refuse();
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const double scale = unit == "s" ? 1 : unit == "ms" ? 1e-3 : unit == "us" ? 1e-6 : -1;
  if (scale < 0 || !(value >= 0) || value * scale > 3600) return refuse();
  return Duration(std::llround(value * scale * 1e9));
}

namespace {

constexpr size_t kParts = 12;  // of the time, whose rates are compared

FeedCounters Since(FeedCounters now, const FeedCounters& before) {
  now.samples -= before.samples;
  now.batches -= before.batches;
  now.rows -= before.rows;
  now.bytes -= before.bytes;
  now.read -= before.read;
  now.decode -= before.decode;
  now.augment -= before.augment;
  now.cpu -= before.cpu;
  now.threads_idle -= before.threads_idle;
  now.consumer_wait -= before.consumer_wait;
  for (const auto& [reason, count] : before.bad) now.bad[reason] -= count;
  std::erase_if(now.bad, [](const auto& bad) { return bad.second == 0; });
  return now;
}

// One run, and what it has seen so far.
class Bench {
 public:
  Bench(Feed& feed, const BenchOptions& options, const Clock& clock)
      : feed_(feed), options_(options), clock_(clock), resumed_(feed.state().position > 0) {}

  Result<BenchFigures> Run(const std::stop_token& stop,
                           const std::function<void(double, int64_t)>& progress) {
    const Instant opened = clock_.Now();
    for (int64_t i = 0; i < options_.warm_up && !stop.stop_requested(); ++i) {
      TRY_STATUS(Take());
      if (i == 0) figures_.first_batch_s = Seconds(clock_.Now() - opened);
    }
    figures_.step_s = 0;
    const FeedCounters before = feed_.counters();
    const Duration cpu = ProcessCpuTime();
    begin_ = clock_.Now();
    Instant next_progress = begin_ + 100ms;
    int64_t epochs = 0;
    while (true) {
      if (stop.stop_requested()) {
        figures_.interrupted = true;
        break;
      }
      if (!options_.meet && IsOver(epochs)) break;
      if (TRY(Take())) ++epochs;
      if (options_.meet && TRY(Meet(IsOver(epochs)))) break;
      if (options_.warm_up == 0 && figures_.first_batch_s == 0)
        figures_.first_batch_s = Seconds(clock_.Now() - opened);
      if (clock_.Now() < next_progress) continue;
      next_progress = clock_.Now() + 100ms;
      progress(Seconds(clock_.Now() - begin_), rows_);
    }
    figures_.wall_s = Seconds(clock_.Now() - begin_);
    figures_.cpu_s = Seconds(ProcessCpuTime() - cpu);
    figures_.counters = Since(feed_.counters(), before);
    FindRates();
    return std::move(figures_);
  }

 private:
  bool IsOver(int64_t epochs) const {
    return options_.duration > Duration{} ? clock_.Now() - begin_ >= options_.duration
                                          : epochs >= options_.epochs;
  }

  // Waits for the other ranks. Gives whether all end with this step.
  Result<bool> Meet(bool last) {
    const Instant arrived = clock_.Now();
    const Result<bool> over = options_.meet(step_++, last);
    figures_.meet_s += Seconds(clock_.Now() - arrived);
    if (!over && over.error().code == ErrorCode::kCancelled) {
      figures_.interrupted = true;
      return true;
    }
    return over;
  }

  // Takes a batch, and gives whether an epoch ended with it.
  Result<bool> Take() {
    std::optional<Batch> batch = TRY(feed_.Next());
    // A state may stand behind the last batch of its epoch. The end of that epoch belongs to the run before.
    if (!batch && resumed_) batch = TRY(feed_.Next());
    resumed_ = false;
    if (!batch) {
      if (options_.hash) figures_.hashes.push_back(hash_.Digest());
      hash_ = {};
      return true;
    }
    const Instant got = clock_.Now();
    if (options_.hash) AddToHash(*batch);
    if (options_.step > Duration{}) {
      SleepUntil(got + options_.step);
      figures_.step_s += Seconds(options_.step);
    }
    rows_ += batch->count;
    seen_.emplace_back(Seconds(clock_.Now() - begin_), batch->count);
    return false;
  }

  void AddToHash(const Batch& batch) {
    const FeedOptions& options = feed_.options();
    const int64_t first = batch.position + options.slice.rank * options.slice.batch;
    const size_t row_bytes = feed_.row_bytes();
    const size_t mask_bytes = batch.masks != nullptr ? options.augment.mask_bytes() : 0;
    for (int64_t i = 0; i < batch.count; ++i) {
      const auto row = static_cast<size_t>(i);
      hash_.Add(first + i, batch.labels[row], {batch.rows->data() + row * row_bytes, row_bytes},
                {batch.masks + row * mask_bytes, mask_bytes});
    }
  }

  void FindRates() {
    if (figures_.wall_s <= 0) return;
    const double part = figures_.wall_s / kParts;
    std::vector<double> rows(kParts);
    for (const auto& [at, count] : seen_) {
      if (at >= 0 && at < figures_.wall_s)
        rows[std::min(kParts - 1, static_cast<size_t>(at / part))] += static_cast<double>(count);
    }
    for (const double count : rows) figures_.rates.push_back(count / part);
  }

  Feed& feed_;
  const BenchOptions& options_;
  const Clock& clock_;
  bool resumed_;  // within an epoch, and nothing was taken yet
  Instant begin_ = Instant::max();
  BenchFigures figures_;
  EpochHash hash_;
  int64_t rows_ = 0, step_ = 0;
  std::vector<std::pair<double, int64_t>> seen_;  // batches, by the time when they were taken
};

}  // namespace

Result<BenchFigures> RunBench(Feed& feed, const BenchOptions& options, const Clock& clock,
                              const std::stop_token& stop,
                              const std::function<void(double, int64_t)>& progress) {
  return Bench(feed, options, clock).Run(stop, progress);
}

std::optional<results::Bottleneck> FindFeedBottleneck(const BenchFigures& figures, int threads) {
  const FeedCounters& c = figures.counters;
  const double busy_s = Seconds(c.read + c.decode + c.augment);
  if (figures.wall_s <= 0 || busy_s <= 0) return std::nullopt;
  const double threads_share = busy_s / (figures.wall_s * threads),
               trainer_share = figures.step_s / figures.wall_s;
  if (trainer_share > results::threshold::kBusy && trainer_share > threads_share) {
    return results::Bottleneck{
        .stage = "trainer",
        .share = trainer_share,
        .share_of = "the time",
        .gain = std::min(2.0, 1 / threads_share),
        .text = fmt::format("the trainer is busy for {:.0f} % of the time; the feed has "
                            "{:.0f} % of its threads' time to spare",
                            100 * trainer_share, 100 * (1 - threads_share))};
  }
  const results::StageTime stages[] = {{results::stage::kRead, Seconds(c.read), threads},
                                       {results::stage::kDecode, Seconds(c.decode), threads},
                                       {results::stage::kAugment, Seconds(c.augment), threads}};
  std::optional<results::Bottleneck> most = results::FindBottleneck(stages, figures.wall_s);
  if (!most) return std::nullopt;
  const double part = most->share / threads_share;
  most->share = part;
  most->share_of = "the threads' time";
  most->gain = 1 / (1 - part / 2);
  most->text = fmt::format(
      "{} takes {:.0f} % of the threads' work; twice as fast, it gives at most {:.2f} times the rate",
      most->stage, 100 * part, most->gain);
  return most;
}

results::Verdict JudgeBench(const BenchFigures& figures, const BenchEnvironment& around) {
  using results::Reason;
  using results::Standing;
  namespace threshold = results::threshold;
  results::Verdict verdict;
  const FeedCounters& c = figures.counters;
  if (c.batches < threshold::kFewestBatches) {
    verdict.Add(c.batches == 0 ? Standing::kInvalid : Standing::kSuspect,
                {Reason::kTooFewSamples,
                 fmt::format("{} batches, at least {} are needed", c.batches, threshold::kFewestBatches)});
  }
  if (figures.interrupted)
    verdict.Add(Standing::kSuspect,
                {Reason::kTooFewSamples, fmt::format("stopped after {:.3g} s", figures.wall_s)});
  int64_t bad = 0;
  for (const auto& [reason, count] : c.bad) bad += count;
  if (static_cast<double>(bad) > threshold::kErrors * static_cast<double>(c.rows + bad)) {
    verdict.Add(Standing::kSuspect,
                {Reason::kErrors, fmt::format("{} of {} samples could not be used, limit {:.3g} %", bad,
                                              c.rows + bad, 100 * threshold::kErrors)});
  }
  const size_t third = figures.rates.size() / 3;
  if (third > 0 && c.batches >= 4 * static_cast<int64_t>(figures.rates.size())) {
    double first = 0, last = 0;
    for (size_t i = 0; i < third; ++i) {
      first += figures.rates[i];
      last += figures.rates[figures.rates.size() - 1 - i];
    }
    // A third of few batches differs by one of them at most by chance of where it is cut.
    const double slack = 3.0 * 2 / static_cast<double>(c.batches);
    if (first > 0 && std::abs(last / first - 1) > threshold::kDrift + slack) {
      verdict.Add(Standing::kSuspect,
                  {Reason::kNoSteadyState,
                   fmt::format("the last third of the time has {:+.1f} % of the first's rate, "
                               "limit {:.0f} %",
                               100 * (last / first - 1), 100 * threshold::kDrift)});
    }
  }
  if (around.steal_percent && *around.steal_percent > threshold::kStealPercent) {
    verdict.Add(Standing::kSuspect,
                {Reason::kSteal, fmt::format("steal {:.2g} % of the CPU time, limit {:.2g} %",
                                             *around.steal_percent, threshold::kStealPercent)});
  }
  if (around.foreign_cpu && *around.foreign_cpu > threshold::kForeignShare * around.cpus) {
    verdict.Add(
        Standing::kSuspect,
        {Reason::kForeignCpu, fmt::format("others used {:.2g} of {} CPUs, limit {:.0f} %",
                                          *around.foreign_cpu, around.cpus, 100 * threshold::kForeignShare)});
  }
  if (around.throttled_s && *around.throttled_s > threshold::kThrottledShare * figures.wall_s) {
    verdict.Add(Standing::kSuspect,
                {Reason::kThrottling, fmt::format("held back for {:.3g} s, limit {:.0f} % of the time",
                                                  *around.throttled_s, 100 * threshold::kThrottledShare)});
  }
  return verdict;
}

}  // namespace weir::feed
