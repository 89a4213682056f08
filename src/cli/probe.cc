#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/count.h"
#include "base/duration.h"
#include "base/text.h"
#include "base/thread.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "probe/probe_result.h"
#include "record/provenance.h"

namespace weir::cli {
namespace {

struct StorageFlags {
  std::string phase = "train";
  int streams = 8;
  double frame_rate = 25, deadline_ms = 0;
  int64_t record_bytes = 0, block_bytes = int64_t{1} << 20;
  std::string path, profile, set, accelerators = "1", access = "pool", source = "storage", json,
                                  added = "0us";
  std::string format = "files", distribution = "log-normal";
  probe::MadeSetOptions made;
  int ring_depth = 16, shard_mb = 256;
  bool verify = false;
  int batch = 0, threads = 16, depth = 2, repeats = 3, seed = 1;
  int64_t steps = 200;
  double step_ms = 0, limit_s = 30, timeout_s = 10, least_utilisation = 0, max_rate_mb = 0;
  bool direct = false, warm = false, must_feed = false;
};

struct Bounds {
  int least = 1, most = 1;
};

// "8" or "1:64".
Result<Bounds> ParseAccelerators(const std::string& text) {
  constexpr int kMost = 4096;
  const auto number = [&](std::string_view part) -> std::optional<int> {
    int value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size() || value < 1 || value > kMost)
      return std::nullopt;
    return value;
  };
  const size_t colon = text.find(':');
  const auto least = number(std::string_view(text).substr(0, colon));
  const auto most = colon == std::string::npos ? least : number(std::string_view(text).substr(colon + 1));
  if (!least || !most || *most < *least)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("--accelerators {}: a number from 1 to {}, or two as in 1:64", Quoted(text), kMost));
  return Bounds{*least, *most};
}

Result<probe::StorageProfile> Demand(const StorageFlags& flags) {
  probe::StorageProfile profile{.name = "own", .sample_bytes = 115'000, .batch = 1, .step = 3500us};
  if (!flags.profile.empty()) profile = TRY(probe::FindStorageProfile(flags.profile));
  if (flags.batch > 0) profile.batch = flags.batch;
  if (flags.step_ms > 0) profile.step = FromSeconds(flags.step_ms / 1e3);
  if (flags.least_utilisation > 0) profile.least_utilisation = flags.least_utilisation / 100;
  return profile;
}

struct ProbedSet {
  std::optional<probe::MadeSet> made;
  std::vector<probe::StorageSample> samples;
};

// Names folders that a probe on another host, or before a restart, has left.
void NoteForeign(const Console& console, const std::string& path) {
  for (const std::string& folder : probe::RemoveOrphans(path, probe::ReadHostIdentity()).foreign)
    console.Note(
        fmt::format("{} belongs to a probe on another host, or before a restart; remove it and its "
                    ".owner file if that probe has ended",
                    EscapeBytes(folder)));
}

Result<ProbedSet> PrepareSet(const StorageFlags& flags, const probe::StorageProfile& profile,
                             const Console& console, const Clock& clock, const std::stop_token& stop) {
  ProbedSet set;
  if (!flags.set.empty()) {
    set.samples = TRY(probe::ListSamples(flags.set));
    return set;
  }
  if (!std::filesystem::is_directory(flags.path))
    return Fail(ErrorCode::kNotFound, fmt::format("{}: no such folder", EscapeBytes(flags.path)));
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
  const Seed seed(static_cast<uint64_t>(flags.seed));
  NoteForeign(console, flags.path);
  const probe::SetNeeds needs = TRY(probe::CheckSpace(flags.path, made, seed));
  console.Note(fmt::format("writes {} to {}, of {} free; removed at the end",
                           Size(static_cast<double>(needs.bytes)), EscapeBytes(flags.path),
                           Size(static_cast<double>(needs.space.free_bytes))));
  set.made.emplace(TRY(probe::MadeSet::Make(flags.path, made, seed, clock, stop)));
  set.samples = set.made->samples();
  return set;
}

// Ends the program although a thread is in a read that does not end. The set may be on the storage that
// hangs, so its removal gets a second; the next run removes what is left.
[[noreturn]] void EndDespiteHungReads(ProbedSet set, int status) {
  std::fflush(nullptr);
  std::atomic<bool> removed = false;
  std::jthread remover = StartThread("remover", [&](const std::stop_token&) {
    set.made.reset();
    removed = true;
  });
  for (int i = 0; i < 100 && !removed; ++i) ::usleep(10'000);
  std::_Exit(status);
}

probe::PhaseOptions Options(const StorageFlags& flags, const probe::StorageProfile& profile,
                            const Bounds& bounds, Duration added) {
  const probe::StorageOptions train{.profile = profile,
                                    .least_accelerators = bounds.least,
                                    .most_accelerators = bounds.most,
                                    .read = {.access = flags.source == "memory"     ? probe::Access::kMemory
                                                       : flags.access == "mmap"     ? probe::Access::kMmap
                                                       : flags.access == "io_uring" ? probe::Access::kUring
                                                                                    : probe::Access::kPool,
                                             .direct = flags.direct,
                                             .cold = !flags.warm,
                                             .verify = flags.verify,
                                             .ring_depth = flags.ring_depth,
                                             .added = added},
                                    .threads = flags.threads,
                                    .depth = flags.depth,
                                    .repeats = flags.repeats,
                                    .steps = flags.steps,
                                    .limit = FromSeconds(flags.limit_s),
                                    .timeout = FromSeconds(flags.timeout_s),
                                    .seed = static_cast<uint64_t>(flags.seed)};
  return {.train = train,
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

struct PhaseAnswer {
  results::StorageProbeResult result;
  bool hung = false, fed = true;
};

template <typename Report>
PhaseAnswer AnswerOf(const Report& report) {
  return {.result = probe::MakeResult(report), .hung = probe::AnyHung(report)};
}

Result<PhaseAnswer> PlayPhase(const std::string& phase, const probe::PhaseOptions& options,
                              const std::vector<probe::StorageSample>& samples, const probe::SetFacts& facts,
                              Console& console, const Clock& clock, const std::stop_token& stop) {
  if (phase == "infer") return AnswerOf(TRY(probe::ProbeInference(options, samples, facts, clock, stop)));
  if (phase == "stream") return AnswerOf(TRY(probe::ProbeStreaming(options, samples, facts, clock, stop)));
  if (phase == "mix") return AnswerOf(TRY(probe::ProbeMix(options, samples, facts, clock, stop)));
  const Instant begin = clock.Now();
  const auto report = TRY(probe::ProbeTraining(
      options.train, samples, facts, clock, stop, [&](int runs, const probe::TrainRun& last) {
        console.Progress(Seconds(clock.Now() - begin), "runs", runs, 0,
                         fmt::format("{} accelerators", last.accelerators));
      }));
  console.EndProgress();
  return PhaseAnswer{.result = probe::MakeResult(report),
                     .hung = !report.facts.Reads().hung.empty(),
                     .fed = report.fed.value.has_value()};
}

Status CheckFlags(const StorageFlags& flags) {
  const auto refuse = [](std::string why) { return Fail(ErrorCode::kInvalidArgument, std::move(why)); };
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
  return {};
}

Result<int> ProbeStorage(const StorageFlags& flags, Console& console) {
  const Interrupt interrupt;
  static const SteadyClock clock;  // outlives a thread in a read that hangs
  const Bounds bounds = TRY(ParseAccelerators(flags.accelerators));
  const Duration added = TRY_CONTEXT(ParseDuration(flags.added, 10s), "--add-latency");
  const probe::StorageProfile profile = TRY(Demand(flags));
  TRY_STATUS(CheckFlags(flags));
  const probe::PhaseOptions options = Options(flags, profile, bounds, added);
  ProbedSet set = TRY(PrepareSet(flags, profile, console, clock, interrupt.token()));
  probe::SetFacts facts;
  if (flags.source != "memory") {
    facts = probe::InspectSet(set.samples);
    if (!flags.warm) TRY_STATUS(probe::ForgetSet(set.samples));
  }
  PhaseAnswer answer =
      TRY(PlayPhase(flags.phase, options, set.samples, facts, console, clock, interrupt.token()));
  answer.result.provenance =
      record::CollectProvenance({.command = CommandLine(), .seed = static_cast<uint64_t>(flags.seed)})
          .ToJson();
  console.Text(probe::ProbeText(console.style(), answer.result));
  TRY_STATUS(console.Json(answer.result.ToJson()));
  const bool invalid = answer.result.verdict.verdict == ToString(results::Standing::kInvalid);
  const bool met = !invalid && (answer.fed || !flags.must_feed);
  const int status = met ? kDone : kClaimInvalid;
  if (answer.hung) EndDespiteHungReads(std::move(set), status);
  return status;
}

int Storage(const Arguments& arguments) {
  StorageFlags flags;
  Flags parser("probe storage", "Says how many accelerators a storage feeds, and the stage they wait for.",
               "weir probe storage . --samples 200 --accelerators 1:8");
  parser.Required("PATH", flags.path, "Folder on the storage. A set is written below it and removed.");
  parser.Choice(
      "--phase", flags.phase, {"train", "infer", "stream", "mix"},
      "train (default): emulated accelerators over random whole files. infer: streams of frames with "
      "deadlines. stream: large sequential reads. mix: each alone, then all at once.");
  parser.Text("--profile", flags.profile, "Demand of an MLPerf Storage workload, such as resnet50-h100.");
  parser.Text("--accelerators", flags.accelerators,
              "Number, or a range to search, such as 1:64 (default 1).");
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
  parser.Text("--add-latency", flags.added, "Time added to each read, such as 180us.");
  parser.Integer("--threads", flags.threads, 1, 1024, "Reading threads (default 16).");
  parser.Integer("--depth", flags.depth, 1, 1024, "Steps read ahead (default 2).");
  parser.Integer("--batch", flags.batch, 1, 65536, "Samples of one step of one accelerator.");
  parser.Number("--step-ms", flags.step_ms, 0.01, 1e6, "Compute time of one step.");
  parser.Integer64("--steps", flags.steps, 2, int64_t{1} << 30, "Steps of one run (default 200).");
  parser.Number("--limit-s", flags.limit_s, 0.1, 1e6, "Seconds after which no step begins (default 30).");
  parser.Number("--timeout-s", flags.timeout_s, 0.1, 1e6,
                "Seconds after which a read counts as hung (default 10).");
  parser.Integer("--repeats", flags.repeats, 1, 100, "Runs of each number of accelerators (default 3).");
  parser.Number("--least-utilisation", flags.least_utilisation, 1, 100,
                "Percent from which on accelerators count as fed (default: the profile's, or 90).");
  parser.Integer("--streams", flags.streams, 1, 1'000'000, "Streams of frames of infer (default 8).");
  parser.Number("--frame-rate", flags.frame_rate, 0.001, 1e6,
                "Frames per second of each stream (default 25).");
  parser.Number("--deadline-ms", flags.deadline_ms, 0.001, 1e6,
                "Deadline of a frame after its planned time (default: one frame's interval).");
  parser.Integer64("--record-bytes", flags.record_bytes, 1, int64_t{1} << 40,
                   "Bytes read at a random place for a frame (default: the whole file).");
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
  parser.Text("--json", flags.json, "JSON file for the result; - for standard output.");
  flags.made.mean_bytes = 0;
  if (const auto status = parser.Parse(arguments)) return *status;
  Console console(flags.json);
  if (const Status writable = console.CheckJson(); !writable) return FailWith(writable.error());
  const auto status = ProbeStorage(flags, console);
  if (status) return *status;
  FailWith(status.error());
  return status.error().code == ErrorCode::kCancelled ? kInterrupted : ExitStatus(status.error());
}

int Host(const Arguments& arguments) {
  std::string json_file;
  int threads = UsableCpus(), budget_ms = 200;
  Flags parser("probe host", "Measures this host: arithmetic, memory, clock, system call, wake-up, loopback.",
               "weir probe host --json host.json");
  parser.Integer("--threads", threads, 1, 4096,
                 "Threads of arithmetic and memory (default: the usable cores).");
  parser.Integer("--budget-ms", budget_ms, 10, 60'000, "Milliseconds of each measurement (default 200).");
  parser.Text("--json", json_file, "JSON file for the result; - for standard output.");
  if (const auto status = parser.Parse(arguments)) return *status;
  const Console console(json_file);
  if (const Status writable = console.CheckJson(); !writable) return FailWith(writable.error());
  const SteadyClock clock;
  const auto report =
      probe::MeasureHost({.budget = std::chrono::milliseconds(budget_ms), .threads = threads}, clock);
  if (!report) return FailWith(report.error());
  results::HostProbeResult result = probe::MakeResult(*report);
  result.provenance = record::CollectProvenance({.command = CommandLine()}).ToJson();
  console.Text(probe::ProbeText(console.style(), result));
  if (const Status written = console.Json(result.ToJson()); !written) return FailWith(written.error());
  return kDone;
}

}  // namespace

int ProbeVerb(const Arguments& arguments) {
  const Arguments rest(arguments.empty() ? arguments.end() : arguments.begin() + 1, arguments.end());
  if (!arguments.empty() && arguments.front() == "storage") return Storage(rest);
  if (!arguments.empty() && arguments.front() == "host") return Host(rest);
  if (!arguments.empty() && (arguments.front() == "--help" || arguments.front() == "-h")) {
    fmt::print(
        "Measures a storage and this host.\n\nUsage: weir probe SUBCOMMAND ...\n\n"
        "Subcommands:\n"
        "  storage  Accelerators that a storage feeds, frames in time, streams.\n"
        "  host     Speeds of this host.\n\n"
        "Example:\n  weir probe storage . --samples 200 --accelerators 1:8\n");
    return kDone;
  }
  return FailWith({ErrorCode::kInvalidArgument,
                   "probe wants storage or host, as in: weir probe storage . or weir probe host"});
}

}  // namespace weir::cli
