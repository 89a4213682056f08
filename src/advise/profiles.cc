#include "advise/profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "results/load_result.h"
#include "results/network_probe_result.h"
#include "results/probe_result.h"
#include "results/run_result.h"
#include "stats/summary.h"

namespace weir::advise {
namespace {

using results::StorageProbeResult;

constexpr const char *kInvalid = "INVALID", *kSuspect = "SUSPECT";

std::optional<Capacity> CapacityOf(const std::vector<double>& values, const std::string& file) {
  const auto summary = stats::Summarise(values);
  if (!summary || summary->mean <= 0) return std::nullopt;
  return Capacity{.value = summary->mean,
                  .low = std::max(0.0, summary->low.value_or(summary->mean)),
                  .high = summary->high.value_or(summary->mean),
                  .files = {file},
                  .once = values.size() == 1};
}

Capacity CapacityOf(const StorageProbeResult::Estimate& estimate, const std::string& file) {
  return {.value = estimate.value,
          .low = std::max(0.0, estimate.low.value_or(estimate.value)),
          .high = estimate.high.value_or(estimate.value),
          .files = {file},
          .once = !estimate.low};
}

// Keeps the larger of two capacities of the same kind: the slower run was held back by less demand.
void Keep(std::optional<Capacity>& kept, std::optional<Capacity> found) {
  if (found && (!kept || found->value > kept->value)) kept = std::move(found);
}

// Rates of the runs with the most samples/s: those of one number of accelerators.
std::vector<double> BestRates(const StorageProbeResult::Train& train) {
  std::map<int, std::vector<double>> rates;
  for (const StorageProbeResult::TrainRun& run : train.runs)
    if (run.samples_per_s) rates[run.accelerators].push_back(*run.samples_per_s);
  std::vector<double> best;
  double most = 0;
  for (const auto& [accelerators, values] : rates) {
    const double median = stats::Summarise(values)->median;
    if (median > most) best = values;
    most = std::max(most, median);
  }
  return best;
}

void AddTraining(const std::string& name, const StorageProbeResult::Train& train, Profiles& profiles) {
  const std::string file = name + ".json";
  if (train.step_ms) profiles.demands[name] = {1e3 * train.batch / *train.step_ms, train.sample_bytes};
  // The rate of a run that decodes may be that of the CPU, so it says nothing about the storage.
  if (train.decoded) {
    if (train.ceiling_samples_per_s)
      Keep(profiles.decoded_samples_per_s, CapacityOf(std::vector{*train.ceiling_samples_per_s}, file));
    return;
  }
  std::optional<Capacity> found = train.units.empty() ? CapacityOf(BestRates(train), file)
                                                      : CapacityOf(train.units[0].samples_per_s, file);
  if (train.units.size() > 1 && train.units.back().share)
    profiles.storage_share = CapacityOf(*train.units.back().share, file);
  if (!found || (profiles.storage_samples_per_s && profiles.storage_samples_per_s->value > found->value))
    return;
  profiles.storage_samples_per_s = std::move(found);
  profiles.storage_sample_bytes = train.sample_bytes;
  profiles.storage_may_give_more = train.units.empty() && train.accelerators.more_may_be_fed;
}

// A measurement that the machine disturbed is used, and the plan says so.
template <typename Causes>
void NoteDoubts(const std::string& file, const std::string& verdict, const Causes& causes,
                Profiles& profiles) {
  if (verdict != kSuspect) return;
  std::string why;
  for (const auto& cause : causes) why += fmt::format("{}{}", why.empty() ? "" : "; ", cause.evidence);
  profiles.notes.push_back(fmt::format("{} is SUSPECT: {}: measure it again", file, why));
}

void AddStorage(const std::string& name, const StorageProbeResult& result, Profiles& profiles) {
  const std::string file = name + ".json";
  if (result.verdict.verdict == kInvalid) {
    profiles.notes.push_back(file + " is INVALID and was passed over");
    return;
  }
  NoteDoubts(file, result.phases.empty() ? result.verdict.verdict : "", result.verdict.reasons, profiles);
  for (const StorageProbeResult& phase : result.phases) AddStorage(name, phase, profiles);
  if (result.train) AddTraining(name, *result.train, profiles);
  if (result.stream) {
    std::vector<double> rates;
    for (const StorageProbeResult::StreamRun& run : result.stream->runs)
      if (run.bytes_per_s) rates.push_back(*run.bytes_per_s);
    Keep(profiles.storage_bytes_per_s, CapacityOf(rates, file));
  }
  if (result.etl) {
    std::vector<double> rates;
    for (const StorageProbeResult::EtlRun& run : result.etl->runs)
      if (run.images_per_s) rates.push_back(*run.images_per_s);
    Keep(profiles.prepared_images_per_s, CapacityOf(rates, file));
    const double in = result.etl->bytes_in_per_s.value_or(0), out = result.etl->bytes_out_per_s.value_or(0);
    if (in > 0 && out > 0) profiles.prepared_bytes_written = out / in;
  }
}

using ModelRates = std::map<std::string, std::vector<std::pair<double, std::string>>>;

void AddModel(const std::string& model, double images_per_s, const std::string& file, ModelRates& rates) {
  const std::filesystem::path path(model);
  const std::string name = path.extension() == ".onnx" ? path.stem().string() : path.filename().string();
  if (images_per_s > 0) rates[name].emplace_back(images_per_s, file);
}

void AddNetwork(const std::string& file, const results::NetworkProbeResult& network, Profiles& profiles) {
  if (network.verdict == kInvalid) {
    profiles.notes.push_back(file + " is INVALID and was passed over");
    return;
  }
  NoteDoubts(file, network.verdict, network.reasons, profiles);
  Keep(profiles.link_gbit_per_s, CapacityOf(std::vector{network.throughput_gbit_per_s}, file));
}

void AddLoad(const std::string& file, const results::LoadResult& load, Profiles& profiles,
             ModelRates& rates) {
  double best = 0;
  for (const results::LoadResult::Level& level : load.levels)
    if (level.verdict.throughput != kInvalid) best = std::max(best, level.rows_per_s);
  for (const results::LoadResult::Level& level : load.levels)
    if (level.rows_per_s == best) NoteDoubts(file, level.verdict.throughput, level.reasons, profiles);
  if (best == 0) profiles.notes.push_back(file + " has no level with a valid throughput and was passed over");
  AddModel(load.model, best, file, rates);
}

Status AddOne(const std::string& name, const Json& json, Profiles& profiles, ModelRates& rates) {
  const std::string file = name + ".json";
  if (const auto storage = results::StorageProbeResult::FromJson(json)) {
    AddStorage(name, *storage, profiles);
  } else if (const auto host = results::HostProbeResult::FromJson(json)) {
    profiles.host_cores = host->cores;
  } else if (const auto network = results::NetworkProbeResult::FromJson(json)) {
    AddNetwork(file, *network, profiles);
  } else if (const auto run = results::RunResult::FromJson(json)) {
    AddModel(run->model, run->throughput_images_per_s.value_or(0), file, rates);
  } else if (const auto load = results::LoadResult::FromJson(json)) {
    AddLoad(file, *load, profiles, rates);
  } else {
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: no result of weir probe storage, probe network, probe host, run or load",
                            EscapeBytes(file)));
  }
  return {};
}

void Combine(const ModelRates& rates, Profiles& profiles) {
  for (const auto& [model, found] : rates) {
    std::vector<double> values;
    std::vector<std::string> files;
    for (const auto& [value, file] : found) {
      values.push_back(value);
      files.push_back(file);
    }
    if (auto capacity = CapacityOf(values, "")) {
      capacity->files = files;
      profiles.model_images_per_s[model] = *std::move(capacity);
    }
  }
}

}  // namespace

Result<Profiles> ReadProfiles(const std::string& folder) {
  constexpr uint64_t kMostBytes = uint64_t{64} << 20;
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".json") files.push_back(at->path());
  if (error) return FailErrno(EscapeBytes(folder), error.value());
  if (files.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: there is no *.json in it; write results there with --json, as in "
                            "weir probe storage /mnt/pool --json {}/storage.json",
                            EscapeBytes(folder), EscapeBytes(folder)));
  std::ranges::sort(files);
  Profiles profiles;
  ModelRates rates;
  for (const std::filesystem::path& path : files) {
    const Bytes bytes = TRY(ReadFile(path.string(), kMostBytes));
    const Json json = TRY_CONTEXT(ParseJson(bytes.text()), EscapeBytes(path.string()));
    TRY_STATUS(AddOne(path.stem().string(), json, profiles, rates));
  }
  Combine(rates, profiles);
  return profiles;
}

}  // namespace weir::advise
