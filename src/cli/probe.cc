#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/text.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "probe/storage_profile.h"
#include "probe/storage_result.h"
#include "probe/storage_set.h"
#include "probe/storage_train.h"
#include "record/provenance.h"

namespace weir::cli {
namespace {

struct StorageFlags {
  std::string path, profile, set, accelerators = "1", access = "pool", source = "storage", json,
                                  added = "0us";
  probe::MadeSetOptions made;
  int batch = 0, threads = 16, depth = 2, repeats = 3, seed = 1;
  int64_t steps = 200;
  double step_ms = 0, limit_s = 30, timeout_s = 10, least_utilisation = 0, max_rate_mb = 0;
  bool direct = false, warm = false;
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

// "180us", "2ms".
Result<Duration> ParseDelay(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, text.data() + text.size());
  if (error == std::errc() && value >= 0 && value <= 10'000'000 && (unit == "us" || unit == "ms"))
    return Duration(value * (unit == "us" ? 1'000 : 1'000'000));
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("--add-latency {}: microseconds or milliseconds, as in 180us", Quoted(text)));
}

// The work of one probe: the set, and trainings over it.
class StorageProbe {
 public:
  StorageProbe(const StorageFlags& flags, const probe::StorageProfile& profile, Duration added,
               std::vector<probe::StorageSample> samples, const Clock& clock, std::stop_token stop)
      : flags_(flags),
        profile_(profile),
        added_(added),
        samples_(std::move(samples)),
        clock_(clock),
        stop_(std::move(stop)) {
    for (const auto& sample : samples_) {
      most_bytes_ = std::max<size_t>(most_bytes_, sample.bytes);
      set_bytes_ += sample.bytes;
      if (flags_.source == "storage") unwritten_ += probe::UnwrittenBytes(sample.path).value_or(0);
    }
  }

  Result<probe::Facts> Run(int accelerators, int repeat) const {
    probe::Facts facts;
    const bool memory = flags_.source == "memory";
    facts.train = TRY(Train(accelerators, memory, profile_.step, flags_.steps, flags_.limit_s, repeat));
    facts.set_bytes = set_bytes_;
    facts.unwritten_bytes = unwritten_;
    facts.wants_cold = !flags_.warm && !flags_.direct && !memory;
    return facts;
  }

  // Samples a second from memory without compute.
  Result<std::optional<double>> Ceiling() const {
    constexpr double kSeconds = 1;
    constexpr int64_t kSteps = int64_t{1} << 40;
    const auto train = TRY(Train(1, true, Duration{}, kSteps / std::max(1, profile_.batch), kSeconds, 0));
    return train.SamplesPerSecond();
  }

 private:
  Result<probe::TrainResult> Train(int accelerators, bool memory, Duration step, int64_t steps,
                                   double limit_s, int repeat) const {
    const probe::ReadOptions read{.access = memory                    ? probe::Access::kMemory
                                            : flags_.access == "mmap" ? probe::Access::kMmap
                                                                      : probe::Access::kPool,
                                  .direct = flags_.direct,
                                  .cold = !flags_.warm,
                                  .added = added_,
                                  .most_bytes = most_bytes_};
    const probe::TrainOptions options{.accelerators = accelerators,
                                      .batch = profile_.batch,
                                      .step = step,
                                      .threads = flags_.threads,
                                      .depth = flags_.depth,
                                      .steps = steps,
                                      .limit = FromSeconds(limit_s),
                                      .timeout = FromSeconds(flags_.timeout_s)};
    const Seed seed = Seed(static_cast<uint64_t>(flags_.seed)).Stream(static_cast<uint64_t>(repeat));
    return probe::Train(
        samples_, options, seed, [&] { return probe::SampleReader::Make(read, clock_); }, clock_, stop_);
  }

  const StorageFlags& flags_;
  const probe::StorageProfile profile_;
  const Duration added_;
  const std::vector<probe::StorageSample> samples_;
  const Clock& clock_;
  const std::stop_token stop_;
  size_t most_bytes_ = 0;
  uint64_t set_bytes_ = 0, unwritten_ = 0;
};

// Forgets what the page cache holds of the set: what was just written, or read by others.
Status ForgetPages(const std::vector<probe::StorageSample>& samples) {
  for (const probe::StorageSample& sample : samples) TRY_STATUS(probe::ForgetPages(sample.path));
  return {};
}

Result<Json> Answer(const StorageProbe& work, const Bounds& bounds, const StorageFlags& flags,
                    double least_utilisation, probe::Facts& shown) {
  const auto ceiling = TRY(work.Ceiling());
  probe::FedAccelerators fed;
  bool fault = false;
  const auto trial = [&](int accelerators) -> Result<std::vector<bool>> {
    std::vector<bool> holds;
    for (int repeat = 0; repeat < flags.repeats && !fault; ++repeat) {
      probe::Facts facts = TRY(work.Run(accelerators, repeat));
      facts.ceiling_samples_per_s = ceiling;
      if (facts.train.cancelled) return Fail(ErrorCode::kCancelled, "stopped");
      const double utilisation = facts.train.Utilisation().value_or(0);
      fault = !facts.train.hung.empty();
      holds.push_back(!fault && utilisation >= least_utilisation);
      if (repeat == 0 || fault) shown = std::move(facts);
    }
    if (holds.empty()) holds.push_back(false);
    return holds;
  };
  fed = TRY(probe::FindMostFed(bounds.least, bounds.most, trial));
  if (bounds.most > bounds.least && fed.value && !fault) {
    shown = TRY(work.Run(*fed.value, flags.repeats));
    shown.ceiling_samples_per_s = ceiling;
  }
  Json json = probe::ToJson(shown);
  json["accelerators"] = Json::object();
  PutIfAny(json["accelerators"], "value", fed.value);
  PutIfAny(json["accelerators"], "low", fed.low);
  PutIfAny(json["accelerators"], "high", fed.high);
  json["least_utilisation_percent"] = 100 * least_utilisation;
  return json;
}

std::string Text(const Console& console, const Json& json) {
  std::string text;
  const Json& fed = json["accelerators"];
  text += fed.contains("value")
              ? fmt::format("{} {} accelerators\n", console.Bold("feeds"), fed["value"].get<int>())
              : fmt::format("{} not one number of accelerators asked for\n", console.Bold("feeds"));
  if (json.contains("utilisation_percent"))
    text += fmt::format("  utilisation  {:.2f} %, bottleneck {}\n", json["utilisation_percent"].get<double>(),
                        json["bottleneck"].get<std::string>());
  if (json.contains("samples_per_s"))
    text += fmt::format("  throughput   {} samples/s, {}/s\n", Short(json["samples_per_s"].get<double>()),
                        Size(json["bytes_per_s"].get<double>()));
  if (json.contains("ceiling_samples_per_s"))
    text += fmt::format("  ceiling      {} samples/s from memory\n",
                        Short(json["ceiling_samples_per_s"].get<double>()));
  if (json.contains("cached_share"))
    text += fmt::format("  cached       {:.2f} % of the bytes before they were read\n",
                        100 * json["cached_share"].get<double>());
  for (const char* key : {"open_us", "read_us", "close_us"}) {
    if (json[key].contains("p50"))
      text += fmt::format("  {:<12} p50 {} p99 {} max {}\n", key, Short(json[key]["p50"].get<double>()),
                          Short(json[key]["p99"].get<double>()), Short(json[key]["max"].get<double>()));
  }
  text += fmt::format("{} {}\n", console.Bold("verdict"), json["verdict"].get<std::string>());
  for (const Json& reason : json["reasons"])
    text +=
        fmt::format("  {}: {}\n", reason["reason"].get<std::string>(), reason["evidence"].get<std::string>());
  return text;
}

Result<probe::StorageProfile> Demand(const StorageFlags& flags) {
  probe::StorageProfile profile{.name = "own", .sample_bytes = 115'000, .batch = 1, .step = 3500us};
  if (!flags.profile.empty()) profile = TRY(probe::FindStorageProfile(flags.profile));
  if (flags.batch > 0) profile.batch = flags.batch;
  if (flags.step_ms > 0) profile.step = FromSeconds(flags.step_ms / 1e3);
  if (flags.least_utilisation > 0) profile.least_utilisation = flags.least_utilisation / 100;
  return profile;
}

Result<int> ProbeStorage(StorageFlags flags, const Console& console) {
  const Interrupt interrupt;
  const SteadyClock clock;
  const Bounds bounds = TRY(ParseAccelerators(flags.accelerators));
  const Duration added = TRY(ParseDelay(flags.added));
  const probe::StorageProfile profile = TRY(Demand(flags));
  if (flags.direct && flags.access == "mmap")
    return Fail(ErrorCode::kInvalidArgument, "--direct goes with --access pool: a mapping has no O_DIRECT");
  std::optional<probe::MadeSet> made;
  std::vector<probe::StorageSample> samples;
  if (!flags.set.empty()) {
    samples = TRY(probe::ListSamples(flags.set));
  } else {
    if (!std::filesystem::is_directory(flags.path))
      return Fail(ErrorCode::kNotFound, fmt::format("{}: no such folder", EscapeBytes(flags.path)));
    if (flags.made.mean_bytes <= 0) flags.made.mean_bytes = profile.sample_bytes;
    if (flags.made.deviation_bytes <= 0) flags.made.deviation_bytes = profile.sample_deviation_bytes;
    flags.made.max_bytes_per_s = flags.max_rate_mb * 1e6;
    const probe::FreeSpace space = TRY(probe::ReadFreeSpace(flags.path));
    console.Note(fmt::format("writes about {} to {}, of {} free",
                             Size(flags.made.mean_bytes * static_cast<double>(flags.made.samples)),
                             EscapeBytes(flags.path), Size(static_cast<double>(space.free_bytes))));
    made.emplace(TRY(probe::MadeSet::Make(flags.path, flags.made, Seed(static_cast<uint64_t>(flags.seed)),
                                          clock, interrupt.token())));
    samples = made->samples();
  }
  if (!flags.warm) TRY_STATUS(ForgetPages(samples));
  const StorageProbe work(flags, profile, added, std::move(samples), clock, interrupt.token());
  probe::Facts shown;
  Json json = TRY(Answer(work, bounds, flags, profile.least_utilisation, shown));
  json["profile"] = profile.name;
  json["provenance"] =
      record::CollectProvenance({.command = CommandLine(), .seed = static_cast<uint64_t>(flags.seed)})
          .ToJson();
  console.Text(Text(console, json));
  TRY_STATUS(console.Json(json));
  const int status = json["verdict"] == "INVALID" ? kClaimInvalid : kDone;
  if (!shown.train.hung.empty()) {  // a thread is in a read that does not end, and would keep the program
    made.reset();
    std::fflush(nullptr);
    std::_Exit(status);
  }
  return status;
}

int Storage(const Arguments& arguments) {
  StorageFlags flags;
  std::string phase = "train";
  Flags parser("probe storage",
               "Says how many accelerators a storage feeds, and what they wait for if it does not.",
               "weir probe storage . --samples 200 --accelerators 1:8");
  parser.Required("PATH", flags.path, "a folder on the storage; a set is written below it and removed");
  parser.Choice("--phase", phase, {"train"}, "emulated accelerators in lockstep, over random whole files");
  parser.Text("--profile", flags.profile, "demand of MLPerf Storage, as resnet50-h100");
  parser.Text("--accelerators", flags.accelerators, "a number, or a range to search, as in 1:64");
  parser.Text("--set", flags.set, "read this folder's files, and write nothing");
  parser.Choice("--access", flags.access, {"pool", "mmap"}, "blocking reads, or mappings");
  parser.Choice("--source", flags.source, {"storage", "memory"}, "memory: the harness without a storage");
  parser.Switch("--direct", flags.direct, "read past the page cache (O_DIRECT)");
  parser.Switch("--warm", flags.warm, "leave the page cache as it is");
  parser.Text("--add-latency", flags.added, "put this on top of each read, as in 180us");
  parser.Integer("--threads", flags.threads, 1, 1024, "that read");
  parser.Integer("--depth", flags.depth, 1, 1024, "steps read ahead");
  parser.Integer("--batch", flags.batch, 1, 65536, "samples of a step and accelerator");
  parser.Number("--step-ms", flags.step_ms, 0.01, 1e6, "compute time of a step");
  parser.Integer64("--steps", flags.steps, 2, int64_t{1} << 30, "of one run");
  parser.Number("--limit-s", flags.limit_s, 0.1, 1e6, "no step of a run begins after it");
  parser.Number("--timeout-s", flags.timeout_s, 0.1, 1e6, "of one step's data: then what hangs is named");
  parser.Integer("--repeats", flags.repeats, 1, 100, "of each number of accelerators");
  parser.Number("--least-utilisation", flags.least_utilisation, 1, 100, "percent at which one counts as fed");
  parser.Integer64("--samples", flags.made.samples, 1, 100'000'000, "of the set that is written");
  parser.Number("--sample-bytes", flags.made.mean_bytes, 1, 1e12, "their mean size");
  parser.Number("--sample-deviation", flags.made.deviation_bytes, 1, 1e12,
                "of their log-normal sizes, bytes");
  parser.Number("--max-rate", flags.max_rate_mb, 0.001, 1e6, "MB/s at most while the set is written");
  parser.Integer("--seed", flags.seed, 0, 2'000'000'000, "of sizes, contents and order");
  parser.Text("--json", flags.json, "write the result as JSON to this file; - for standard output");
  flags.made.mean_bytes = 0;
  if (const auto status = parser.Parse(arguments)) return *status;
  const Console console(flags.json);
  if (const Status writable = console.CheckJson(); !writable) return FailWith(writable.error());
  const auto status = ProbeStorage(flags, console);
  if (status) return *status;
  FailWith(status.error());
  return status.error().code == ErrorCode::kCancelled ? kInterrupted : ExitStatus(status.error());
}

}  // namespace

int ProbeVerb(const Arguments& arguments) {
  if (!arguments.empty() && arguments.front() == "storage")
    return Storage({arguments.begin() + 1, arguments.end()});
  const bool help = !arguments.empty() && (arguments.front() == "--help" || arguments.front() == "-h");
  if (help) {
    fmt::print("weir probe storage PATH: {}\n", "how many accelerators a storage feeds (--help tells more)");
    return kDone;
  }
  return FailWith({ErrorCode::kInvalidArgument, "probe wants what to probe, as in: weir probe storage ."});
}

}  // namespace weir::cli
