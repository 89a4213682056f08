#include "cli/probe_storage_flags.h"

#include "cli/cluster_flags.h"
#include "cli/flags.h"

namespace weir::cli {

std::optional<int> ParseStorageFlags(const Arguments& arguments, probe::StorageRequest& flags) {
  flags.made.mean_bytes = probe::MadeSetOptions().mean_bytes;  // for the help
  Flags parser("probe storage", "Says how many accelerators a storage feeds, and the stage they wait for.",
               "weir probe storage . --samples 200 --accelerators 1:8");
  parser.Texts("PATH", flags.paths,
               "Folders on the storages, one for each. A set is written below each and removed.", true);
  parser.OneOf("--phase", flags.phase, probe::kStoragePhases,
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
  parser.OneOf("--access", flags.access, probe::kAccesses, "Blocking reads (default), io_uring or mappings.");
  parser.OneOf("--source", flags.from_memory, {{"storage", false}, {"memory", true}},
               "memory: this program without a storage.");
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
  parser.OneOf("--size-distribution", flags.made.distribution, probe::kSizeDistributions,
               "Distribution of the sizes of written samples (default log-normal).");
  parser.OneOf("--format", flags.made.format, dataset::kSetFormats,
               "Form of the written set. Shards of tar and tfrecord are read from begin to end; raw records "
               "are read in any order.");
  parser.Integer("--shard-mb", flags.made.shard_bytes, 1, 1 << 20, "MiB of a shard (default 256).", 1 << 20);
  parser.Number("--max-rate", flags.max_rate_mb, 0.001, 1e6, "MB/s at most while the set is written.");
  parser.Integer("--seed", flags.seed, 0, 2'000'000'000, "Seed of sizes, contents and order (default 1).");
  parser.OneOf("--prepare-format", flags.prepare_format, dataset::kSetFormats,
               "Form of the set that etl writes (default tar).");
  AddClusterFlags(parser, flags.join);
  parser.Text("--html", flags.html, "HTML file for the report.");
  parser.Text("--json", flags.json, "JSON file for the result; - for standard output.");
  flags.made.mean_bytes = 0;  // of the profile
  return parser.Parse(arguments);
}

}  // namespace weir::cli
