#include "cli/feed_flags.h"

#include "base/thread.h"
#include "cli/cluster_flags.h"
#include "cli/flags.h"
#include "probe/feed/cluster_feed.h"

namespace weir::cli {
namespace {

feed::FeedOptions OptionsOf(const FeedFlags& w) {
  feed::FeedOptions options;
  options.slice = {.batch = w.batch, .rank = w.rank, .world = w.world};
  options.slice.ends = w.ends;
  options.sampler = {.sampling = w.sampler, .block = w.block, .window = w.window};
  feed::AugmentOptions& augment = options.augment;
  augment.width = w.width;
  augment.height = w.height;
  augment.short_side = w.short_side;
  augment.crop = w.crop;
  augment.area_low = w.area_low;
  augment.flip = w.flip;
  augment.vertical_flip = w.vertical_flip;
  augment.rotation = w.rotation;
  augment.jitter = {
      .brightness = w.brightness, .contrast = w.contrast, .saturation = w.saturation, .hue = w.hue};
  augment.grayscale = w.grayscale;
  augment.mask_fill = w.mask_fill;
  augment.orientation = w.orientation;
  augment.type = w.type;
  augment.layout = w.layout;
  options.seed = static_cast<uint64_t>(w.seed);
  options.bad = w.bad;
  options.threads = w.threads > 0 ? w.threads : UsableCpus();
  options.prefetch = w.prefetch;
  options.reads = w.reads;
  options.decode.tolerate_damage = w.tolerate_damage;
  options.cache = {
      .bytes = static_cast<uint64_t>(w.cache_bytes), .folder = w.cache_folder, .decoded = w.cache_decoded};
  return options;
}

}  // namespace

std::optional<int> ParseFeedFlags(const std::vector<std::string>& arguments, FeedFlags& w) {
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
  flags.Text(
      "--accelerators", w.accelerators,
      "cards that share each batch, as 8xh100: the emulated trainer takes their step time, by --profile "
      "or --predictor");
  flags.Text("--profile", w.profile, "workload of --accelerators by MLPerf Storage, such as resnet50");
  flags.Text("--predictor", w.predictor, "predictor (weir fit -o FILE) of the step time of --accelerators");
  flags.Text("--network", w.network,
             "network, by its name in the predictor's table or as a model, whose step is predicted");
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
  flags.Integer("--rank", w.rank, 0, 1 << 24,
                "rank of this process (default: from srun, mpirun, an Indexed Job or RANK, else 0)");
  flags.Integer("--world", w.world, 1, 1 << 24,
                "number of processes that share each epoch (default: from the same, else 1)");
  flags.OneOf("--ends", w.ends, feed::kEnds, "end of an epoch that is no whole number of batches");
  flags.OneOf(
      "--sampler", w.sampler,
      {feed::Sampling::kGlobal, feed::Sampling::kSequential, feed::Sampling::kBlocks,
       feed::Sampling::kBalanced},
      "order: every sample once by chance (default), as stored, blocks of neighbours, or classes alike");
  flags.Integer64("--block", w.block, 1, int64_t{1} << 32,
                  "samples in a block of --sampler blocks (default 1024)");
  flags.Integer64("--window", w.window, 1, int64_t{1} << 32, "blocks that are shuffled together (default 8)");
  flags.OneOf("--crop", w.crop, feed::kCropRules,
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
  flags.OneOf("--orientation", w.orientation, dataset::kOrientations, "turn pictures upright (default exif)");
  flags.OneOf("--type", w.type, feed::kValueTypes, "type of the values (default uint8)");
  flags.OneOf("--layout", w.layout, dataset::kLayouts, "order of the dimensions (default NHWC)");
  flags.OneOf("--bad", w.bad, feed::kBadPolicies, "policy for a picture that cannot be used");
  flags.Switch("--tolerate-damage", w.tolerate_damage, "use damaged pictures as far as they can be shown");
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
  AddClusterFlags(flags, w.join);
  const std::optional<int> status = flags.Parse(arguments);
  w.given = flags.Given();
  return status;
}

std::vector<NamedPath> PathsOf(const FeedFlags& w) {
  return {{"SET", w.set}, {"--masks", w.masks}, {"--index", w.index}, {"--cache-folder", w.cache_folder}};
}

Result<feed::BenchSetup> SetupOf(const FeedFlags& w) {
  const auto refuse = [](const char* why) { return Fail(ErrorCode::kInvalidArgument, why); };
  if (!w.bench)
    return refuse(
        "weir feed measures with --bench; a training takes its batches from the Python package weir");
  if (w.epochs > 0 && w.duration_s > 0)
    return refuse("--epochs and --duration both say how long: give one of them");
  if (w.hash && w.epochs == 0) return refuse("--hash is of whole epochs: say how many with --epochs");
  if (w.accelerators.empty() && (!w.profile.empty() || !w.predictor.empty() || !w.network.empty()))
    return refuse("--profile, --predictor and --network say nothing without --accelerators 8xh100");
  if (!w.accelerators.empty() && !w.step.empty())
    return refuse("--accelerators takes the step time of a card: leave --step out");
  TRY_STATUS(cluster::CheckJoin(w.join));
  feed::BenchSetup setup{.set = w.set,
                         .masks = w.masks,
                         .source = {.index = w.index, .verify = !w.no_verify},
                         .feed = OptionsOf(w),
                         .bench = {.epochs = w.epochs, .hash = w.hash},
                         .state = {}};
  if (!w.step.empty()) setup.bench.step = TRY_CONTEXT(feed::ParseStep(w.step), "--step");
  setup.bench.duration = w.epochs > 0 ? Duration{} : FromSeconds(w.duration_s > 0 ? w.duration_s : 5);
  setup.bench.warm_up = w.epochs > 0 ? 0 : w.prefetch + 1;
  if (w.join.any()) TRY_STATUS(probe::CheckFeedHosts(setup.feed));
  return setup;
}

}  // namespace weir::cli
