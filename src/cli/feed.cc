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
#include "feed/bench_result.h"
#include "monitor/resources.h"
#include "record/provenance.h"

namespace weir::cli {
namespace {

struct FeedFlags {
  std::string set, step, json, state, index, masks, cache_folder;
  std::string sampler = "global", ends = "drop", crop = "random", type = "uint8", layout = "NHWC",
              bad = "replace";
  std::string orientation = "exif";
  bool bench = false, hash = false, strict = false, no_verify = false, cache_decoded = false;
  int batch = 64, threads = 0, prefetch = 4, width = 224, height = 224, short_side = 256, rank = 0, world = 1,
      reads = -1, mask_fill = 0;
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
  flags.Required(
      "SET", w.set,
      "a prepared set, a folder with a folder of pictures for each class, or an array (.npy); s3:// and "
      "http(s):// as well");
  flags.Text("--masks", w.masks, "folder or s3:// prefix with a mask for each picture, by the same path");
  flags.Integer("--mask-fill", w.mask_fill, 0, 255,
                "number of a mask's pixels outside of the picture (default 0)");
  flags.Switch("--bench", w.bench, "measure the feed; training programs use the Python package weir");
  flags.Text("--step", w.step, "time of the emulated trainer for each batch, as in 3.5ms (default: none)");
  flags.Number("--duration", w.duration_s, 0, 86400, "seconds to measure (default 5, without --epochs)");
  flags.Integer64("--epochs", w.epochs, 0, 1'000'000, "epochs to measure, instead of a time");
  flags.Switch("--hash", w.hash, "hash all rows and labels of each epoch");
  flags.Integer("-b,--batch", w.batch, 1, 65536, "samples in a batch (default 64)");
  flags.Integer64("--seed", w.seed, 0, INT64_MAX, "seed of the order and of all chances (default 0)");
  flags.Integer("--threads", w.threads, 0, 1024, "threads that read and decode (default 0: one a core)");
  flags.Integer(
      "--reads", w.reads, 0, 4096,
      "samples that are read ahead of the threads at a time; 0: each thread reads its own (default: "
      "64 from a store, otherwise 0)");
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
                  "bytes of samples that are kept once read (default 0)");
  flags.Text("--cache-folder", w.cache_folder,
             "folder that keeps them, also for later runs (default: memory)");
  flags.Switch("--cache-decoded", w.cache_decoded, "keep decoded pixels, and not encoded bytes");
  flags.Text("--state", w.state,
             "file with a state to go on from, which is replaced by the state at the end");
  flags.Switch("--strict", w.strict, "exit with 1 if any picture could not be used");
  flags.Text("--json", w.json, "write the result as JSON to this file; - for standard output");
  return flags.Parse(arguments);
}

feed::FeedOptions OptionsOf(const FeedFlags& w) {
  feed::FeedOptions options;
  options.slice = {.batch = w.batch, .rank = w.rank, .world = w.world};
  options.slice.ends = ChoiceOf(w.ends, {feed::Ends::kDrop, feed::Ends::kPad, feed::Ends::kWrap});
  options.sampler = {.sampling = ChoiceOf(w.sampler, {feed::Sampling::kGlobal, feed::Sampling::kSequential,
                                                      feed::Sampling::kBlocks, feed::Sampling::kBalanced}),
                     .block = w.block,
                     .window = w.window};
  feed::AugmentOptions& augment = options.augment;
  augment.width = w.width;
  augment.height = w.height;
  augment.short_side = w.short_side;
  augment.crop =
      ChoiceOf(w.crop, {feed::CropRule::kRandomResized, feed::CropRule::kCentre, feed::CropRule::kNone});
  augment.area_low = w.area_low;
  augment.flip = w.flip;
  augment.vertical_flip = w.vertical_flip;
  augment.rotation = w.rotation;
  augment.jitter = {
      .brightness = w.brightness, .contrast = w.contrast, .saturation = w.saturation, .hue = w.hue};
  augment.grayscale = w.grayscale;
  augment.mask_fill = w.mask_fill;
  augment.orientation =
      w.orientation == "ignore" ? dataset::Orientation::kIgnore : dataset::Orientation::kExif;
  augment.type =
      ChoiceOf(w.type, {feed::ValueType::kUint8, feed::ValueType::kFloat16, feed::ValueType::kFloat32});
  augment.layout = w.layout == "NCHW" ? dataset::Layout::kNchw : dataset::Layout::kNhwc;
  options.seed = static_cast<uint64_t>(w.seed);
  options.bad = ChoiceOf(w.bad, {feed::BadPolicy::kReplace, feed::BadPolicy::kSkip, feed::BadPolicy::kStop});
  options.threads = w.threads > 0 ? w.threads : UsableCpus();
  options.prefetch = w.prefetch;
  options.reads = w.reads;
  options.cache = {
      .bytes = static_cast<uint64_t>(w.cache_bytes), .folder = w.cache_folder, .decoded = w.cache_decoded};
  return options;
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
  const auto source = TRY(feed::OpenSource(w.set, {.index = w.index, .verify = !w.no_verify}));
  feed::FeedOptions options = OptionsOf(w);
  if (!w.masks.empty()) options.masks = TRY(feed::OpenMasks(w.masks, *source, {}));
  const auto feed = TRY(feed::Feed::Open(source, std::move(options), clock));
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
  const feed::Mixing mixing = feed::MixingOf(*feed);
  const auto monitor = TRY(monitor::ResourceMonitor::Start(clock, {}));
  const feed::BenchFigures figures =
      TRY(feed::RunBench(*feed, bench, clock, stop, [&](double elapsed_s, int64_t rows) {
        const int64_t total = w.epochs > 0 ? w.epochs * feed->BatchesPerEpoch() * w.batch : 0;
        console.Progress(elapsed_s, "feed", rows, std::max(rows, total), "");
      }));
  console.EndProgress();
  results::FeedResult result = feed::MakeResult(*feed, figures, mixing, monitor->Stop(), UsableCpus());
  result.set = EscapeBytes(w.set);
  result.provenance =
      record::CollectProvenance({.command = CommandLine(), .seed = static_cast<uint64_t>(w.seed)}).ToJson();
  result.command = record::CommandLine(CommandLine());
  const std::string state = feed::FormatState(feed->state());
  result.state = TRY(ParseJson(state));
  if (!w.state.empty()) TRY_STATUS(WriteFileWhole(w.state, state + "\n"));
  console.Text(feed::BenchText(console.style(), result));
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
