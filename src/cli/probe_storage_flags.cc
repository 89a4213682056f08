#include "cli/probe_storage_flags.h"

#include <fmt/format.h>

#include "base/duration.h"
#include "cli/cluster_flags.h"
#include "cli/flags.h"
#include "cli/probe_hosts.h"
#include "probe/named_accelerators.h"
#include "synth/pictures.h"

namespace weir::cli {
namespace {

probe::ReadOptions ReadsOf(const StorageFlags& flags, Duration added) {
  return {.access = flags.source == "memory"     ? probe::Access::kMemory
                    : flags.access == "mmap"     ? probe::Access::kMmap
                    : flags.access == "io_uring" ? probe::Access::kUring
                                                 : probe::Access::kPool,
          .direct = flags.direct,
          .cold = !flags.warm,
          .verify = flags.verify,
          .ring_depth = flags.ring_depth,
          .added = added,
          .memory = nullptr};
}

Result<std::vector<std::string>> MakePictures(uint64_t seed) {
  constexpr int kPictures = 64;
  std::vector<std::string> pictures;
  for (int i = 0; i < kPictures; ++i) pictures.push_back(TRY(synth::DrawPicture(Seed(seed), i)).jpeg);
  return pictures;
}

}  // namespace

Result<probe::StorageProfile> DemandOf(const StorageFlags& flags,
                                       const std::optional<probe::ModelStep>& model) {
  probe::StorageProfile profile{.name = "own", .sample_bytes = 115'000, .batch = 1, .step = 3500us};
  const std::string card = TRY(probe::ParseAccelerators(flags.accelerators)).card;
  const bool published = !card.empty() && flags.predictor.empty();
  if (!flags.profile.empty()) {
    profile = published ? TRY(probe::FindCardProfile(flags.profile, card))
                        : TRY(probe::FindStorageProfile(flags.profile));
  }
  if (model) {
    profile.name = "model";
    profile.batch = model->batch;
    profile.step = model->step;
  }
  if (flags.batch > 0 && published) profile.step = probe::StepOf(profile, flags.batch, 1);
  if (flags.batch > 0) profile.batch = flags.batch;
  if (flags.step_ms >= 0) profile.step = FromSeconds(flags.step_ms / 1e3);
  if (flags.least_utilisation > 0) profile.least_utilisation = flags.least_utilisation / 100;
  return profile;
}

Result<probe::PhaseOptions> PhaseOptionsOf(const StorageFlags& flags, const probe::StorageProfile& profile) {
  const probe::NamedAccelerators asked = TRY(probe::ParseAccelerators(flags.accelerators));
  const Duration added = TRY_CONTEXT(ParseDuration(flags.added, 10s), "--add-latency");
  probe::StorageOptions train{.profile = profile,
                              .least_accelerators = asked.least,
                              .most_accelerators = asked.most,
                              .read = ReadsOf(flags, added),
                              .threads = flags.threads,
                              .depth = flags.depth,
                              .repeats = flags.repeats,
                              .steps = flags.steps,
                              .limit = FromSeconds(flags.limit_s),
                              .timeout = FromSeconds(flags.timeout_s),
                              .seed = static_cast<uint64_t>(flags.seed),
                              .share = {},
                              .decode = {},
                              .units = {}};
  if (flags.decode) train.decode = probe::DecodeWork{flags.decode_size, flags.decode_size};
  return probe::PhaseOptions{.train = train,
                             .infer = {.streams = flags.streams,
                                       .frames_per_s = flags.frame_rate,
                                       .deadline = FromSeconds(flags.deadline_ms / 1e3),
                                       .record_bytes = static_cast<uint64_t>(flags.record_bytes),
                                       .threads = flags.threads,
                                       .limit = train.limit,
                                       .timeout = train.timeout},
                             .stream = {.block_bytes = static_cast<uint64_t>(flags.block_bytes),
                                        .threads = flags.threads,
                                        .direct = flags.direct,
                                        .cold = !flags.warm,
                                        .limit = train.limit,
                                        .timeout = train.timeout}};
}

Result<probe::MadeSetOptions> MadeSetOf(const StorageFlags& flags, const probe::StorageProfile& profile) {
  probe::MadeSetOptions made = flags.made;
  if (made.mean_bytes <= 0) made.mean_bytes = profile.sample_bytes;
  if (made.deviation_bytes <= 0) made.deviation_bytes = profile.sample_deviation_bytes;
  made.max_bytes_per_s = flags.max_rate_mb * 1e6;
  made.format = flags.format == "tar"        ? probe::SetFormat::kTar
                : flags.format == "tfrecord" ? probe::SetFormat::kTfrecord
                : flags.format == "raw"      ? probe::SetFormat::kRaw
                                             : probe::SetFormat::kFiles;
  made.distribution = flags.distribution == "normal"    ? probe::SizeDistribution::kNormal
                      : flags.distribution == "uniform" ? probe::SizeDistribution::kUniform
                                                        : probe::SizeDistribution::kLogNormal;
  made.shard_bytes = static_cast<uint64_t>(flags.shard_mb) << 20;
  made.hashes = flags.verify;
  made.timeout = FromSeconds(flags.timeout_s);
  if (flags.NeedsPictures()) made.pictures = TRY(MakePictures(static_cast<uint64_t>(flags.seed)));
  return made;
}

Status CheckStorageFlags(const StorageFlags& flags) {
  const auto refuse = [](std::string why) { return Fail(ErrorCode::kInvalidArgument, std::move(why)); };
  TRY_STATUS(cluster::CheckJoin(flags.join));
  if (flags.join.any()) {
    TRY_STATUS(CheckHostsFlags(flags));  // the paths are those of other hosts
  } else {
    TRY_STATUS(probe::CheckPaths(flags.paths));
  }
  if (flags.direct && flags.access == "mmap")
    return refuse("--direct goes with --access pool or io_uring: a mapping has no O_DIRECT");
  if (flags.block_bytes % 4096 != 0) return refuse("--block-bytes: a multiple of 4096 is needed");
  const bool streams = flags.phase == "stream" || flags.phase == "mix";
  if (streams && (flags.access != "pool" || flags.source == "memory" || flags.added != "0us" ||
                  flags.format != "files" || flags.verify)) {
    return refuse(
        fmt::format("--phase {} reads whole files in blocks: it has --access pool and --format files, and no "
                    "--source memory, --add-latency or --verify",
                    flags.phase));
  }
  if (!flags.set.empty() && (flags.format != "files" || flags.verify))
    return refuse("--format and --verify are of a set that is written: leave --set out");
  if (flags.verify && flags.source == "memory")
    return refuse("--verify compares what was read from the storage: leave --source memory out");
  if (flags.paths.size() > 1 && !flags.set.empty())
    return refuse("--set names one folder: give one PATH, or leave --set out so that each PATH gets a set");
  if (flags.paths.size() > 1 && flags.phase != "train")
    return refuse(fmt::format("--phase {} reads one storage: give one PATH", flags.phase));
  if (flags.NeedsPictures() && (flags.format == "raw" || flags.made.deviation_bytes > 0))
    return refuse("pictures have sizes of their own: leave --format raw and --sample-deviation out");
  if (flags.NeedsPictures() && flags.record_bytes > 0 && flags.phase != "all")
    return refuse("--record-bytes reads parts of files, which are no pictures: leave it out");
  if ((flags.phase == "etl" || flags.phase == "all") && (flags.source == "memory" || flags.format != "files"))
    return refuse(
        fmt::format("--phase {} reads pictures from files: leave --source and --format out", flags.phase));
  if (flags.decode && flags.phase != "train" && flags.phase != "all")
    return refuse("--decode goes with --phase train or all");
  if (flags.decode && flags.source == "memory" && flags.set.empty() && flags.format != "files")
    return refuse("--decode from memory needs --format files");
  if (!flags.profile.empty() && !flags.profile_from.empty())
    return refuse("--profile and --profile-from both give the demand: leave one out");
  const std::string card = TRY(probe::ParseAccelerators(flags.accelerators)).card;
  TRY_STATUS(probe::CheckCard({.card = card,
                               .profile = flags.profile,
                               .predictor = flags.predictor,
                               .network = flags.network,
                               .batch = flags.batch}));
  if (!card.empty() && (!flags.profile_from.empty() || flags.step_ms >= 0))
    return refuse(
        fmt::format("--accelerators {} takes the card's step time: leave --profile-from and --step-ms out",
                    flags.accelerators));
  if (!flags.engine.empty() && flags.profile_from.empty())
    return refuse("--engine runs the model of --profile-from: name one");
  return {};
}

std::optional<int> ParseStorageFlags(const Arguments& arguments, StorageFlags& flags) {
  Flags parser("probe storage", "Says how many accelerators a storage feeds, and the stage they wait for.",
               "weir probe storage . --samples 200 --accelerators 1:8");
  parser.Texts("PATH", flags.paths,
               "Folders on the storages, one for each. A set is written below each and removed.", true);
  parser.Choice("--phase", flags.phase, {"train", "etl", "infer", "stream", "mix", "all"},
                "train (default): emulated accelerators over random samples. etl: pictures are read, decoded "
                "and written "
                "as a prepared set. infer: streams of frames with deadlines. stream: large sequential reads. "
                "mix: train, "
                "infer and stream each alone, then at once. all: etl, train and infer one after the other.");
  parser.Text("--profile", flags.profile, "Demand of an MLPerf Storage workload, such as resnet50-h100.");
  parser.Text("--profile-from", flags.profile_from,
              "Model (.onnx file or folder) whose step time is measured first and used as the demand.");
  parser.Text("--engine", flags.engine, "Engine of --profile-from (default: the model's, or onnxruntime).");
  parser.Switch(
      "--decode", flags.decode,
      "Decodes and augments each sample, as weir feed does. The written samples are JPEG pictures.");
  parser.Integer("--decode-size", flags.decode_size, 8, 4096,
                 "Width and height of decoded samples, pixels (default 224).");
  parser.Text("--accelerators", flags.accelerators,
              "Number, or a range to search, such as 1:64 (default 1). With a card, as in 1:64xh100, steps "
              "take its time: by --profile resnet50, or by --predictor.");
  parser.Text("--predictor", flags.predictor,
              "Predictor (weir fit -o FILE) that gives the step time of the card of --accelerators.");
  parser.Text("--network", flags.network,
              "Network, by its name in the predictor's table or as a model, whose step is predicted.");
  parser.Text("--set", flags.set,
              "Folder whose files are read instead of a written set. Nothing is written.");
  parser.Choice("--access", flags.access, {"pool", "io_uring", "mmap"},
                "Blocking reads (default), io_uring or mappings.");
  parser.Choice("--source", flags.source, {"storage", "memory"}, "memory: this program without a storage.");
  parser.Integer("--ring-depth", flags.ring_depth, 1, 1024,
                 "With io_uring: reads under way in each thread (default 16).");
  parser.Switch("--verify", flags.verify,
                "Compares each sample with the checksum of what was written, after its times were taken.");
  parser.Switch("--direct", flags.direct, "Reads past the page cache (O_DIRECT).");
  parser.Switch("--warm", flags.warm, "Leaves the page cache as it is.");
  parser.Text(
      "--add-latency", flags.added,
      "Time added to each read, such as 180us. With train, also the number of reads in flight from which on "
      "it does not matter.");
  parser.Integer("--threads", flags.threads, 1, 1024, "Reading threads (default 16).");
  parser.Integer("--depth", flags.depth, 1, 1024, "Steps read ahead (default 2).");
  parser.Integer("--batch", flags.batch, 1, 65536, "Samples of one step of one accelerator.");
  parser.Number("--step-ms", flags.step_ms, 0, 1e6,
                "Compute time of one step; 0 asks for samples as fast as they come.");
  parser.Integer64("--steps", flags.steps, 2, int64_t{1} << 30, "Steps of one run (default 200).");
  parser.Number("--limit-s", flags.limit_s, 0.1, 1e6, "Seconds after which no step begins (default 30).");
  parser.Number("--timeout-s", flags.timeout_s, 0.1, 1e6,
                "Seconds after which a read or a write counts as hung (default 10).");
  parser.Integer("--repeats", flags.repeats, 1, 100, "Runs of each number of accelerators (default 3).");
  parser.Number("--least-utilisation", flags.least_utilisation, 1, 100,
                "Percent from which on accelerators count as fed (default: the profile's, or 90).");
  parser.Integer("--streams", flags.streams, 1, 1'000'000, "Streams of frames of infer (default 8).");
  parser.Number("--frame-rate", flags.frame_rate, 0.001, 1e6,
                "Frames per second of each stream (default 25).");
  parser.Number("--deadline-ms", flags.deadline_ms, 0.001, 1e6,
                "Deadline of a frame after its planned time (default: one frame's interval).");
  parser.Integer64(
      "--record-bytes", flags.record_bytes, 1, int64_t{1} << 40,
      "Bytes of a record. infer reads one at a random place for a frame; train reads the files as records "
      "of this size (default: whole files).");
  parser.Integer64("--block-bytes", flags.block_bytes, 4096, int64_t{1} << 30,
                   "Bytes of one read of stream (default 1048576).");
  parser.Switch("--must-feed", flags.must_feed, "Exits with 3 if none of the numbers is fed.");
  parser.Integer64("--samples", flags.made.samples, 1, 100'000'000,
                   "Samples of the written set (default 1000).");
  parser.Number("--sample-bytes", flags.made.mean_bytes, 1, 1e12, "Mean size of a written sample.");
  parser.Number("--sample-deviation", flags.made.deviation_bytes, 1, 1e12,
                "Standard deviation of the sizes, bytes.");
  parser.Choice("--size-distribution", flags.distribution, {"log-normal", "normal", "uniform"},
                "Distribution of the sizes of written samples (default log-normal).");
  parser.Choice("--format", flags.format, {"files", "tar", "tfrecord", "raw"},
                "Form of the written set. Shards of tar and tfrecord are read from begin to end; raw records "
                "are read in any order.");
  parser.Integer("--shard-mb", flags.shard_mb, 1, 1 << 20, "MiB of a shard (default 256).");
  parser.Number("--max-rate", flags.max_rate_mb, 0.001, 1e6, "MB/s at most while the set is written.");
  parser.Integer("--seed", flags.seed, 0, 2'000'000'000, "Seed of sizes, contents and order (default 1).");
  parser.Choice("--prepare-format", flags.prepare_format, {"files", "tar", "tfrecord", "raw"},
                "Form of the set that etl writes (default tar).");
  AddClusterFlags(parser, flags.join);
  parser.Text("--html", flags.html, "HTML file for the report.");
  parser.Text("--json", flags.json, "JSON file for the result; - for standard output.");
  flags.made.mean_bytes = 0;
  return parser.Parse(arguments);
}

}  // namespace weir::cli
