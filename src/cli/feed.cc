#include "feed/feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <stop_token>

#include "base/file.h"
#include "base/json.h"
#include "base/thread.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "feed/bench.h"
#include "monitor/resources.h"
#include "record/provenance.h"
#include "results/feed_result.h"
#include "results/thresholds.h"

namespace weir::cli {
namespace {

struct FeedFlags {
  std::string set, step, json, state, index;
  std::string sampler = "global", ends = "drop", crop = "random", type = "uint8", layout = "NHWC",
              bad = "replace";
  std::string orientation = "exif";
  bool bench = false, hash = false, strict = false, no_verify = false;
  int batch = 64, threads = 0, prefetch = 4, width = 224, height = 224, short_side = 256, rank = 0, world = 1;
  int64_t seed = 0, epochs = 0, block = 1024, window = 8, cache_bytes = 0;
  double duration_s = 0, flip = 0.5, vertical_flip = 0, rotation = 0, grayscale = 0;
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;
  double area_low = 0.08;
};

std::optional<int> ParseFlags(const Arguments& arguments, FeedFlags& w) {
  Flags flags("feed",
              "Feeds a training: batches of a set in a new order each epoch, cropped, flipped and coloured "
              "by chance. "
              "With --bench it measures the feed without a trainer.",
              "weir feed made/pictures --bench --batch 32 --step 3.5ms");
  flags.Required("SET", w.set, "a prepared set, or a folder with a folder of pictures for each class");
  flags.Switch("--bench", w.bench, "measure the feed; training programs use the Python package weir");
  flags.Text("--step", w.step, "time of the emulated trainer for each batch, as in 3.5ms (default: none)");
  flags.Number("--duration", w.duration_s, 0, 86400, "seconds to measure (default 5, without --epochs)");
  flags.Integer64("--epochs", w.epochs, 0, 1'000'000, "epochs to measure, instead of a time");
  flags.Switch("--hash", w.hash, "hash all rows and labels of each epoch");
  flags.Integer("-b,--batch", w.batch, 1, 65536, "samples in a batch (default 64)");
  flags.Integer64("--seed", w.seed, 0, INT64_MAX, "seed of the order and of all chances (default 0)");
  flags.Integer("--threads", w.threads, 0, 1024, "threads that read and decode (default 0: one a core)");
  flags.Integer("--prefetch", w.prefetch, 1, 4096, "batches made ahead of the trainer (default 4)");
  flags.Integer("--rank", w.rank, 0, 1 << 24, "rank of this process (default 0)");
  flags.Integer("--world", w.world, 1, 1 << 24, "number of processes that share each epoch (default 1)");
  flags.Choice("--ends", w.ends, {"drop", "pad", "wrap"},
               "end of an epoch that is no whole number of batches");
  flags.Choice(
      "--sampler", w.sampler, {"global", "sequential", "blocks", "balanced"},
      "order: every sample once by chance (default), as stored, blocks of neighbours, or classes alike");
  flags.Integer64("--block", w.block, 1, int64_t{1} << 32,
                  "samples in a block of --sampler blocks (default 1024)");
  flags.Integer64("--window", w.window, 1, int64_t{1} << 32, "blocks that are shuffled together (default 8)");
  flags.Choice("--crop", w.crop, {"random", "centre", "none"},
               "random resized crop (default), short side and centre, or none");
  flags.Integer("--width", w.width, 1, 16384, "width of a sample in pixels (default 224)");
  flags.Integer("--height", w.height, 1, 16384, "height of a sample in pixels (default 224)");
  flags.Integer("--short-side", w.short_side, 1, 16384, "short side before the centre crop (default 256)");
  flags.Number("--min-area", w.area_low, 1e-9, 1,
               "smallest share of the picture in a random crop (default 0.08)");
  flags.Number("--flip", w.flip, 0, 1, "probability of a horizontal flip (default 0.5)");
  flags.Number("--vertical-flip", w.vertical_flip, 0, 1, "probability of a vertical flip (default 0)");
  flags.Number("--rotation", w.rotation, 0, 180, "largest rotation in degrees, either way (default 0)");
  flags.Number("--brightness", w.brightness, 0, 100, "range of the brightness factor around 1 (default 0)");
  flags.Number("--contrast", w.contrast, 0, 100, "range of the contrast factor around 1 (default 0)");
  flags.Number("--saturation", w.saturation, 0, 100, "range of the saturation factor around 1 (default 0)");
  flags.Number("--hue", w.hue, 0, 0.5, "range of the hue shift, a share of the circle (default 0)");
  flags.Number("--grayscale", w.grayscale, 0, 1, "probability of a grey picture (default 0)");
  flags.Choice("--orientation", w.orientation, {"exif", "ignore"}, "turn pictures upright (default exif)");
  flags.Choice("--type", w.type, {"uint8", "float16", "float32"}, "type of the values (default uint8)");
  flags.Choice("--layout", w.layout, {"NHWC", "NCHW"}, "order of the dimensions (default NHWC)");
  flags.Choice("--bad", w.bad, {"replace", "skip", "stop"}, "policy for a picture that cannot be used");
  flags.Switch("--no-verify", w.no_verify, "do not compare samples with the hashes of their set");
  flags.Text("--index", w.index, "file that keeps the list of a folder's files; made if it is missing");
  flags.Integer64("--cache-bytes", w.cache_bytes, 0, int64_t{1} << 50,
                  "bytes of encoded samples that are kept in memory once read (default 0)");
  flags.Text("--state", w.state,
             "file with a state to go on from, which is replaced by the state at the end");
  flags.Switch("--strict", w.strict, "exit with 1 if any picture could not be used");
  flags.Text("--json", w.json, "write the result as JSON to this file; - for standard output");
  return flags.Parse(arguments);
}

feed::Sampling SamplingOf(const std::string& name) {
  if (name == "sequential") return feed::Sampling::kSequential;
  if (name == "blocks") return feed::Sampling::kBlocks;
  return name == "balanced" ? feed::Sampling::kBalanced : feed::Sampling::kGlobal;
}

feed::FeedOptions OptionsOf(const FeedFlags& w) {
  feed::FeedOptions options;
  options.slice = {.batch = w.batch, .rank = w.rank, .world = w.world};
  options.slice.ends = w.ends == "pad"    ? feed::Ends::kPad
                       : w.ends == "wrap" ? feed::Ends::kWrap
                                          : feed::Ends::kDrop;
  options.sampler = {.sampling = SamplingOf(w.sampler), .block = w.block, .window = w.window};
  feed::AugmentOptions& augment = options.augment;
  augment.width = w.width;
  augment.height = w.height;
  augment.short_side = w.short_side;
  augment.crop = w.crop == "centre" ? feed::CropRule::kCentre
                 : w.crop == "none" ? feed::CropRule::kNone
                                    : feed::CropRule::kRandomResized;
  augment.area_low = w.area_low;
  augment.flip = w.flip;
  augment.vertical_flip = w.vertical_flip;
  augment.rotation = w.rotation;
  augment.jitter = {
      .brightness = w.brightness, .contrast = w.contrast, .saturation = w.saturation, .hue = w.hue};
  augment.grayscale = w.grayscale;
  augment.orientation =
      w.orientation == "ignore" ? dataset::Orientation::kIgnore : dataset::Orientation::kExif;
  augment.type = w.type == "float32"   ? feed::ValueType::kFloat32
                 : w.type == "float16" ? feed::ValueType::kFloat16
                                       : feed::ValueType::kUint8;
  augment.layout = w.layout == "NCHW" ? dataset::Layout::kNchw : dataset::Layout::kNhwc;
  options.seed = static_cast<uint64_t>(w.seed);
  options.bad = w.bad == "skip"   ? feed::BadPolicy::kSkip
                : w.bad == "stop" ? feed::BadPolicy::kStop
                                  : feed::BadPolicy::kReplace;
  options.threads = w.threads > 0 ? w.threads : UsableCpus();
  options.prefetch = w.prefetch;
  return options;
}

results::FeedResult MakeResult(const FeedFlags& w, const feed::Feed& feed, const feed::BenchFigures& figures,
                               const feed::Mixing& mixing, const monitor::Resources& used) {
  const feed::FeedCounters& c = figures.counters;
  results::FeedResult r;
  r.set = EscapeBytes(w.set);
  r.hash = feed.source().hash();
  r.images = feed.source().size();
  r.classes = std::ssize(feed.source().classes());
  r.batch = w.batch;
  r.rank = w.rank;
  r.world = w.world;
  r.threads = feed.options().threads;
  r.prefetch = w.prefetch;
  r.seed = w.seed;
  r.sampler = w.sampler;
  r.ends = w.ends;
  r.crop = w.crop;
  r.type = w.type;
  r.bad_policy = w.bad;
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
  if (figures.step_s > 0 && figures.wall_s > 0 && c.batches > 0) {
    r.trainer = {1e3 * figures.step_s / static_cast<double>(c.batches),
                 std::min(100.0, 100 * figures.step_s / figures.wall_s)};
  }
  r.bottleneck = feed::FindFeedBottleneck(figures, feed.options().threads);
  feed::BenchEnvironment around{
      .cpus = UsableCpus(), .steal_percent = used.steal_percent, .throttled_s = used.throttled_s};
  if (used.client_cpu && used.wall_s >= results::threshold::kShortestForForeign)
    around.foreign_cpu = std::max(0.0, used.client_cpu->mean - figures.cpu_s / used.wall_s);
  const results::Verdict verdict = feed::JudgeBench(figures, around);
  r.verdict = results::ToString(verdict.standing);
  for (const results::Cause& cause : verdict.causes)
    r.reasons.push_back({std::string(results::ToString(cause.reason)), cause.evidence});
  r.rejected = c.bad;
  for (const feed::BadSample& bad : feed.bad_samples()) {
    r.rejected_examples.push_back({EscapeBytes(feed.source().Name(bad.sample)),
                                   std::string(image::ToString(bad.reject.reason)),
                                   EscapeBytes(bad.reject.detail)});
  }
  r.mixing = {mixing.serial_correlation, mixing.class_share};
  r.epoch_hashes = figures.hashes;
  r.interrupted = figures.interrupted;
  r.resources = used;
  r.provenance =
      record::CollectProvenance({.command = CommandLine(), .seed = static_cast<uint64_t>(w.seed)}).ToJson();
  r.command = record::CommandLine(CommandLine());
  return r;
}

std::string ResultText(const Console& console, const results::FeedResult& r) {
  std::string text = fmt::format(
      "{} {} samples/s, {} us of CPU a sample; {} samples in {} s; first batch after {} ms\n",
      console.Bold("feed"), Short(r.samples_per_s.value_or(0)), Short(r.cpu_us_per_sample.value_or(0)),
      Count(r.samples), Short(r.wall_s), Short(r.first_batch_ms));
  const double all = r.stages_ms.read + r.stages_ms.decode + r.stages_ms.augment;
  if (all > 0) {
    text += fmt::format("  threads       read {:.1f} %, decode {:.1f} %, augment {:.1f} % of their work\n",
                        100 * r.stages_ms.read / all, 100 * r.stages_ms.decode / all,
                        100 * r.stages_ms.augment / all);
  }
  if (r.wall_s > 0) {
    text += fmt::format("  waits         trainer {:.1f} % of the time, threads {:.1f} %\n",
                        r.stages_ms.wait / 10 / r.wall_s,
                        r.stages_ms.idle / 10 / r.wall_s / static_cast<double>(r.threads));
  }
  if (r.trainer) {
    text += fmt::format("  trainer       busy {:.1f} % of the time with steps of {} ms\n",
                        r.trainer->utilisation_percent, Short(r.trainer->step_ms));
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

feed::Mixing MixingOf(const feed::Feed& feed, const FeedFlags& w) {
  std::vector<int32_t> labels;
  if (!feed.source().classes().empty()) {
    for (int64_t i = 0; i < feed.source().size(); ++i) labels.push_back(feed.source().Label(i));
  }
  return feed::MeasureMixing(feed.sampler().MakeEpoch(static_cast<uint64_t>(w.seed), 0), w.batch, labels);
}

Result<int> BenchFeed(const FeedFlags& w, const std::stop_token& stop) {
  Console console(w.json);
  TRY_STATUS(console.CheckJson());
  if (!w.bench) {
    return Fail(ErrorCode::kInvalidArgument,
                "weir feed measures with --bench; a training takes its batches from the Python package weir");
  }
  if (w.epochs > 0 && w.duration_s > 0)
    return Fail(ErrorCode::kInvalidArgument, "--epochs and --duration both say how long: give one of them");
  if (w.hash && w.epochs == 0)
    return Fail(ErrorCode::kInvalidArgument, "--hash is of whole epochs: say how many with --epochs");
  feed::BenchOptions bench{.epochs = w.epochs, .hash = w.hash};
  if (!w.step.empty()) bench.step = TRY_CONTEXT(feed::ParseStep(w.step), "--step");
  bench.duration = w.epochs > 0 ? Duration{} : FromSeconds(w.duration_s > 0 ? w.duration_s : 5);
  bench.warm_up = w.epochs > 0 ? 0 : w.prefetch + 1;
  const SteadyClock clock;
  const auto source = TRY(feed::OpenSource(
      w.set,
      {.index = w.index, .verify = !w.no_verify, .cache_bytes = static_cast<uint64_t>(w.cache_bytes)}));
  const auto feed = TRY(feed::Feed::Open(source, OptionsOf(w), clock));
  if (!w.state.empty()) {
    TRY_STATUS(CheckOutput("--state", w.state));
    const Result<std::string> text = ReadTextFile(w.state);
    if (text) {
      const feed::FeedState state = TRY_CONTEXT(feed::ParseState(*text), w.state);
      TRY_STATUS(feed->SetState(state));
    } else if (text.error().code != ErrorCode::kNotFound) {
      return std::unexpected(text.error());
    }
  }
  const feed::Mixing mixing = MixingOf(*feed, w);
  const auto monitor = TRY(monitor::ResourceMonitor::Start(clock, {}));
  const feed::BenchFigures figures =
      TRY(feed::RunBench(*feed, bench, clock, stop, [&](double elapsed_s, int64_t rows) {
        const int64_t total = w.epochs > 0 ? w.epochs * feed->BatchesPerEpoch() * w.batch : 0;
        console.Progress(elapsed_s, "feed", rows, std::max(rows, total), "");
      }));
  console.EndProgress();
  results::FeedResult result = MakeResult(w, *feed, figures, mixing, monitor->Stop());
  const std::string state = feed::FormatState(feed->state());
  result.state = TRY(ParseJson(state));
  if (!w.state.empty()) TRY_STATUS(WriteFileWhole(w.state, state + "\n"));
  console.Text(ResultText(console, result));
  TRY_STATUS(console.Json(result.ToJson()));
  if (figures.interrupted) return kInterrupted;
  return w.strict && !result.rejected.empty() ? kJobFailed : kDone;
}

}  // namespace

int FeedVerb(const Arguments& arguments) {
  FeedFlags w;
  if (const auto status = ParseFlags(arguments, w)) return *status;
  const Interrupt interrupt;
  const Result<int> done = BenchFeed(w, interrupt.token());
  return done ? *done : FailWith(done.error());
}

}  // namespace weir::cli
