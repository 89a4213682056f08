#include "feed/bench_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/count.h"
#include "results/thresholds.h"

namespace weir::feed {

Mixing MixingOf(const Feed& feed) {
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < feed.source().size(); ++i) labels.push_back(feed.source().Label(i));
  if (std::ranges::all_of(labels, [](int32_t label) { return label < 0; })) labels.clear();
  return MeasureMixing(feed.sampler().MakeEpoch(feed.options().seed, 0), feed.options().slice.batch, labels);
}

// The names of classes, or where they are numbers without names, how many there are.
static int64_t ClassesOf(const Source& source) {
  if (!source.classes().empty()) return std::ssize(source.classes());
  std::set<int32_t> labels;
  for (int64_t i = 0; i < source.size(); ++i) labels.insert(source.Label(i));
  labels.erase(-1);
  return std::ssize(labels);
}

results::FeedResult MakeResult(const Feed& feed, const BenchFigures& figures, const Mixing& mixing,
                               const monitor::Resources& used, int cpus) {
  const FeedOptions& options = feed.options();
  const FeedCounters& c = figures.counters;
  results::FeedResult r;
  r.hash = feed.source().hash();
  r.images = feed.source().size();
  r.classes = ClassesOf(feed.source());
  r.batch = options.slice.batch;
  r.rank = options.slice.rank;
  r.world = options.slice.world;
  r.threads = options.threads;
  r.prefetch = options.prefetch;
  r.seed = static_cast<int64_t>(options.seed);
  r.sampler = ToString(options.sampler.sampling);
  r.ends = ToString(options.slice.ends);
  r.crop = ToString(options.augment.crop);
  r.type = ToString(options.augment.type);
  r.bad_policy = ToString(options.bad);
  r.samples = c.rows;
  r.batches = c.batches;
  r.wall_s = figures.wall_s;
  if (c.rows > 0 && figures.wall_s > 0) {
    r.samples_per_s = static_cast<double>(c.rows) / figures.wall_s;
    r.cpu_us_per_sample =
        1e6 * std::max(0.0, figures.cpu_s - used.observer_cpu * used.wall_s) / static_cast<double>(c.rows);
  }
  r.first_batch_ms = 1e3 * figures.first_batch_s;
  r.bytes_read = c.bytes;
  r.stages_ms = {Milliseconds(c.read), Milliseconds(c.decode), Milliseconds(c.augment),
                 Milliseconds(c.consumer_wait), Milliseconds(c.threads_idle)};
  if (figures.meet_s > 0) r.meet_ms = 1e3 * figures.meet_s;
  if (figures.step_s > 0 && figures.wall_s > 0 && c.batches > 0) {
    r.trainer = {1e3 * figures.step_s / static_cast<double>(c.batches),
                 std::min(100.0, 100 * figures.step_s / figures.wall_s)};
  }
  r.bottleneck = FindFeedBottleneck(figures, options.threads);
  BenchEnvironment around{.cpus = cpus, .steal_percent = used.steal_percent, .throttled_s = used.throttled_s};
  if (used.client_cpu && used.wall_s >= results::threshold::kShortestForForeign)
    around.foreign_cpu = std::max(0.0, used.client_cpu->mean - figures.cpu_s / used.wall_s);
  const results::Verdict verdict = JudgeBench(figures, around);
  r.verdict = results::ToString(verdict.standing);
  for (const results::Cause& cause : verdict.causes)
    r.reasons.push_back({std::string(results::ToString(cause.reason)), cause.evidence});
  r.rejected = c.bad;
  for (const BadSample& bad : feed.bad_samples()) {
    r.rejected_examples.push_back({EscapeBytes(feed.source().Name(bad.sample)),
                                   std::string(image::ToString(bad.reject.reason)),
                                   EscapeBytes(bad.reject.detail)});
  }
  r.mixing = {mixing.serial_correlation, mixing.class_share};
  r.epoch_hashes = figures.hashes;
  r.interrupted = figures.interrupted;
  r.resources = used;
  return r;
}

std::string BenchText(const TextStyle& style, const results::FeedResult& r) {
  std::string text = fmt::format(
      "{} {} samples/s, {} us of CPU a sample; {} samples in {} s; first batch after {} ms\n",
      style.Bold("feed"), Short(r.samples_per_s.value_or(0)), Short(r.cpu_us_per_sample.value_or(0)),
      Count(r.samples), Short(r.wall_s), Short(r.first_batch_ms));
  const auto hosts = static_cast<double>(std::max<size_t>(1, r.hosts.size()));
  const double all = r.stages_ms.read + r.stages_ms.decode + r.stages_ms.augment;
  if (all > 0) {
    text += fmt::format("  threads       read {:.1f} %, decode {:.1f} %, augment {:.1f} % of their work\n",
                        100 * r.stages_ms.read / all, 100 * r.stages_ms.decode / all,
                        100 * r.stages_ms.augment / all);
  }
  if (r.wall_s > 0) {
    text += fmt::format("  waits         trainer {:.1f} % of the time, threads {:.1f} %\n",
                        r.stages_ms.wait / 10 / r.wall_s / hosts,
                        r.stages_ms.idle / 10 / r.wall_s / hosts / static_cast<double>(r.threads));
  }
  if (r.trainer) {
    text += fmt::format("  trainer       busy {:.1f} % of the time with steps of {} ms\n",
                        r.trainer->utilisation_percent, Short(r.trainer->step_ms));
  }
  for (const results::FeedResult::Host& host : r.hosts) {
    text += fmt::format("  {:<13} {}: {} samples/s, {:.1f} % of the time for the other ranks",
                        host.rank == 0 ? "hosts" : "", host.name, Short(host.samples_per_s.value_or(0)),
                        host.wall_s > 0 ? host.meet_ms / 10 / host.wall_s : 0);
    text += host.lost ? "; lost: " + EscapeForTerminal(*host.lost) + "\n" : "\n";
  }
  if (r.bottleneck) text += fmt::format("  bottleneck    {}: {}\n", r.bottleneck->stage, r.bottleneck->text);
  if (r.mixing.serial_correlation)
    text += fmt::format("  order         serial correlation {:.3f}\n", *r.mixing.serial_correlation);
  if (r.mixing.class_share && *r.mixing.class_share < 0.5) {
    text += fmt::format(
        "                a batch has {:.0f} % of the classes that a batch by chance has: the set is sorted "
        "by class; a larger --window mixes it\n",
        100 * *r.mixing.class_share);
  }
  for (const auto& [reason, count] : r.rejected)
    text += fmt::format("  could not use {} {}\n", Count(count), reason);
  constexpr size_t kShown = 5;
  for (size_t i = 0; i < std::min(kShown, r.rejected_examples.size()); ++i)
    text +=
        fmt::format("                {}: {}\n", r.rejected_examples[i].name, r.rejected_examples[i].detail);
  for (const std::string& hash : r.epoch_hashes) text += fmt::format("  epoch hash    {}\n", hash);
  text += fmt::format("  verdict       {}\n", r.verdict);
  for (const results::FeedResult::Reason& reason : r.reasons)
    text += fmt::format("                {}: {}\n", reason.reason, reason.evidence);
  return text;
}

}  // namespace weir::feed
