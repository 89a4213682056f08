#include "cli/probe_storage.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <optional>
#include <thread>
#include <utility>

#include "advise/cards.h"
#include "base/count.h"
#include "base/file.h"
#include "base/thread.h"
#include "cli/console.h"
#include "cli/probe_hosts.h"
#include "cli/probe_storage_flags.h"
#include "prepare/prepare.h"
#include "probe/named_accelerators.h"
#include "probe/probe_result.h"
#include "probe/storage_etl.h"
#include "record/provenance.h"
#include "report/html.h"
#include "report/probe_report.h"

namespace weir::cli {
namespace {

// The sets that are read, and a folder for what the etl phase writes.
struct ProbedSets {
  std::vector<probe::MadeSet> made;
  std::optional<probe::OwnedFolder> folder;
  std::vector<probe::StorageSample> samples;
  std::vector<probe::StorageUnit> units;
  std::string work;  // the folder of the etl phase

  ~ProbedSets() {
    if (folder) folder->Remove();
  }
  ProbedSets() = default;
  ProbedSets(ProbedSets&&) = default;
  ProbedSets& operator=(ProbedSets&&) = delete;
};

// Names folders that a probe on another host, or before a restart, has left.
void NoteForeign(const Console& console, const std::string& path) {
  for (const std::string& folder : probe::RemoveOrphans(path, probe::ReadHostIdentity()).foreign)
    console.Note(
        fmt::format("{} belongs to a probe on another host, or before a restart; remove it and its "
                    ".owner file if that probe has ended",
                    EscapeBytes(folder)));
}

void NoteWrites(const Console& console, const std::string& path, const probe::SetNeeds& needs) {
  console.Note(fmt::format("writes {} to {}, of {} free; removed at the end",
                           Size(static_cast<double>(needs.bytes)), EscapeBytes(path),
                           Size(static_cast<double>(needs.space.free_bytes))));
}

// Lists the user's own files. The etl phase also gets a folder to write into.
Result<ProbedSets> OpenOwnSet(const StorageFlags& flags, const Console& console) {
  ProbedSets sets;
  sets.samples = TRY(probe::ListSamples(flags.set));
  if (flags.phase != "etl" && flags.phase != "all") return sets;
  uint64_t bytes = 0;
  for (const probe::StorageSample& sample : sets.samples) bytes += sample.bytes;
  const auto needs = TRY(probe::CheckSpaces(flags.paths, {.samples = 0}, Seed(1), bytes));
  NoteWrites(console, flags.paths.front(), needs.front());
  sets.folder.emplace(TRY(probe::OwnedFolder::Make(flags.paths.front())));
  sets.work = sets.folder->path();
  return sets;
}

Result<ProbedSets> PrepareSets(const StorageFlags& flags, const probe::StorageProfile& profile,
                               const Console& console, const Clock& clock, const std::stop_token& stop) {
  for (const std::string& path : flags.paths) NoteForeign(console, path);
  if (!flags.set.empty()) return OpenOwnSet(flags, console);
  ProbedSets sets;
  const probe::MadeSetOptions made = TRY(MadeSetOf(flags, profile));
  const Seed seed(static_cast<uint64_t>(flags.seed));
  uint64_t prepared_bytes = 0;
  if (flags.phase == "etl" || flags.phase == "all")
    for (const uint64_t size : probe::MakeSizes(made, seed)) prepared_bytes += size;
  const auto needs = TRY(probe::CheckSpaces(flags.paths, made, seed, prepared_bytes));
  for (size_t i = 0; i < needs.size(); ++i) NoteWrites(console, flags.paths[i], needs[i]);
  for (const std::string& path : flags.paths) {
    sets.made.push_back(TRY(probe::MadeSet::Make(path, made, seed, clock, stop)));
    const std::vector<probe::StorageSample>& samples = sets.made.back().samples();
    sets.samples.insert(sets.samples.end(), samples.begin(), samples.end());
    sets.units.push_back({.path = path, .samples = samples.size()});
  }
  sets.work = sets.made.front().folder();
  return sets;
}

// Ends the program although a thread is in a read that does not end. The set may be on the storage that
// hangs, so its removal gets a second; the next run removes what is left.
[[noreturn]] void EndDespiteHungReads(ProbedSets& sets, int status) {
  std::fflush(nullptr);
  std::atomic<bool> removed = false;
  std::jthread remover = StartThread("remover", [&](const std::stop_token&) {
    sets.made.clear();
    if (sets.folder) sets.folder->Remove();
    removed = true;
  });
  for (int i = 0; i < 100 && !removed; ++i) ::usleep(10'000);
  std::_Exit(status);
}

// Connects the phase etl with the module that prepares sets.
Result<probe::EtlFigures> PrepareOriginals(const StorageFlags& flags, const Clock& clock, int64_t count,
                                           const probe::ReadOriginal& read, const std::string& folder,
                                           std::stop_token stop, const std::function<void()>& moved) {
  prepare::Feed feed{.count = count};
  feed.get = [&read](int64_t index) -> prepare::FedPicture {
    auto bytes = read(index);
    const std::string name = fmt::format("{:08}", index);
    if (!bytes)
      return {.source = name,
              .encoded = std::unexpected(image::Reject{image::RejectReason::kFailed, bytes.error().message})};
    return {.source = name, .encoded = *std::move(bytes)};
  };
  feed.name = [](int64_t index) { return fmt::format("{:08}", index); };
  feed.label = [](int64_t) { return std::optional<int>(); };
  const auto format = flags.prepare_format == "tar"        ? dataset::SetFormat::kTar
                      : flags.prepare_format == "tfrecord" ? dataset::SetFormat::kTfrecord
                      : flags.prepare_format == "raw"      ? dataset::SetFormat::kRaw
                                                           : dataset::SetFormat::kFiles;
  dataset::Geometry geometry{.short_side = 256};
  if (format == dataset::SetFormat::kRaw) geometry.crop = dataset::Size{224, 224};
  const auto summary =
      TRY(prepare::PrepareSet(feed, {.folder = folder, .format = format, .geometry = geometry}, clock,
                              std::move(stop), [&](const auto&) { moved(); }));
  int64_t rejected = 0;
  for (const auto& [reason, rejects] : summary.rejected) rejected += rejects;
  return probe::EtlFigures{.images = summary.images,
                           .rejected = rejected,
                           .bytes_in = static_cast<uint64_t>(summary.bytes_in),
                           .bytes_out = static_cast<uint64_t>(summary.bytes_out),
                           .wall = FromSeconds(summary.wall_s),
                           .read = summary.times.read,
                           .decode = summary.times.decode,
                           .resize = summary.times.resize,
                           .encode = summary.times.encode,
                           .write = summary.times.write,
                           .workers = summary.workers};
}

struct PhaseAnswer {
  results::StorageProbeResult result;
  bool hung = false, fed = true;
};

template <typename Report>
PhaseAnswer AnswerOf(const Report& report) {
  return {.result = probe::MakeResult(report), .hung = probe::AnyHung(report)};
}

// One probe: its flags, its sets and its clock.
struct StorageProbe {
  const StorageFlags& flags;
  const probe::PhaseOptions& options;
  const ProbedSets& sets;
  const probe::SetFacts& facts;
  Console& console;
  const Clock& clock;
  const std::stop_token stop;
};

Result<PhaseAnswer> PlayTraining(const StorageProbe& probe) {
  const Instant begin = probe.clock.Now();
  std::vector<probe::StorageSample> samples = probe.sets.samples;
  if (probe.flags.record_bytes > 0 && probe.flags.phase == "train")
    samples = TRY(probe::DivideIntoRecords(samples, static_cast<uint64_t>(probe.flags.record_bytes)));
  const auto report =
      TRY(probe::ProbeTraining(probe.options.train, samples, probe.facts, probe.clock, probe.stop,
                               [&](int runs, const probe::TrainRun& last) {
                                 probe.console.Progress(Seconds(probe.clock.Now() - begin), "runs", runs, 0,
                                                        fmt::format("{} accelerators", last.accelerators));
                               }));
  probe.console.EndProgress();
  return PhaseAnswer{.result = probe::MakeResult(report),
                     .hung = !report.facts.Reads().hung.empty(),
                     .fed = report.fed.value.has_value()};
}

Result<PhaseAnswer> PlayEtl(const StorageProbe& probe) {
  return AnswerOf(TRY(probe::ProbeEtl(
      probe.options.train, probe.sets.samples, probe.facts, probe.sets.work,
      [&flags = probe.flags, &clock = probe.clock](int64_t count, const probe::ReadOriginal& read,
                                                   const std::string& folder, std::stop_token stop,
                                                   const std::function<void()>& moved) {
        return PrepareOriginals(flags, clock, count, read, folder, std::move(stop), moved);
      },
      probe.clock, probe.stop)));
}

Result<PhaseAnswer> PlayPhase(const std::string& phase, const StorageProbe& probe) {
  const auto& [flags, options, sets, facts, console, clock, stop] = probe;
  if (phase == "etl") return PlayEtl(probe);
  if (phase == "infer")
    return AnswerOf(TRY(probe::ProbeInference(options, sets.samples, facts, clock, stop)));
  if (phase == "stream")
    return AnswerOf(TRY(probe::ProbeStreaming(options, sets.samples, facts, clock, stop)));
  if (phase == "mix") return AnswerOf(TRY(probe::ProbeMix(options, sets.samples, facts, clock, stop)));
  if (phase == "train") return PlayTraining(probe);
  PhaseAnswer all;
  std::vector<results::StorageProbeResult> phases;
  for (const char* one : {"etl", "train", "infer"}) {
    PhaseAnswer answer = TRY(PlayPhase(one, probe));
    all.hung = all.hung || answer.hung;
    all.fed = all.fed && answer.fed;
    phases.push_back(std::move(answer.result));
    if (all.hung) break;  // the storage answers no more
  }
  all.result = probe::MakeResult(std::move(phases));
  return all;
}

// Returns the predicted step of the card, or nullopt where the demand has its published one.
Result<std::optional<probe::ModelStep>> StepOfCard(const StorageFlags& flags, const std::string& card,
                                                   const Console& console) {
  if (flags.predictor.empty()) {
    console.Note(probe::CardText(TRY(probe::FindCardProfile(flags.profile, card))));
    return std::nullopt;
  }
  const probe::AskedCard asked{.card = card, .predictor = flags.predictor, .network = flags.network};
  std::vector<std::string> notes;
  const Duration step = TRY(advise::PredictedStep(asked, flags.batch, notes));
  for (const std::string& note : notes) console.Note(note);
  return probe::ModelStep{.step = step, .low = {}, .high = {}, .batch = flags.batch, .runs = 0, .engine = {}};
}

Result<std::optional<probe::ModelStep>> MeasureModel(const StorageFlags& flags, const Console& console,
                                                     const Clock& clock) {
  if (const std::string card = TRY(probe::ParseAccelerators(flags.accelerators)).card; !card.empty())
    return StepOfCard(flags, card, console);
  if (flags.profile_from.empty()) return std::nullopt;
  probe::ModelStepOptions options{.path = flags.profile_from, .engine = flags.engine};
  if (flags.batch > 0) options.batch = flags.batch;
  const probe::ModelStep step = TRY(probe::MeasureModelStep(options, clock));
  console.Note(probe::ModelStepText(flags.profile_from, step));
  return step;
}

Status Publish(const StorageFlags& flags, const results::StorageProbeResult& result, const Console& console) {
  console.Text(probe::ProbeText(console.style(), result));
  if (!flags.html.empty())
    TRY_STATUS(WriteFileWhole(flags.html, report::ToHtml(report::ProbeDocument(result))));
  return console.Json(result.ToJson());
}

Result<PhaseAnswer> ProbeHere(const StorageFlags& flags, const probe::StorageProfile& profile,
                              Console& console, const Clock& clock, const std::stop_token& stop,
                              std::optional<ProbedSets>& sets) {
  probe::PhaseOptions options = TRY(PhaseOptionsOf(flags, profile));
  sets.emplace(TRY(PrepareSets(flags, profile, console, clock, stop)));
  options.train.units = sets->units;
  probe::SetFacts facts;
  if (flags.source != "memory") {
    facts = probe::InspectSet(sets->samples);
    if (!flags.warm) probe::ForgetSet(sets->samples);
  }
  return PlayPhase(flags.phase, {flags, options, *sets, facts, console, clock, stop});
}

Result<PhaseAnswer> ProbeThere(const Arguments& arguments, const StorageFlags& flags,
                               const probe::StorageProfile& profile, Console& console, const Clock& clock,
                               const std::stop_token& stop) {
  const auto report = TRY(ProbeStorageOnHosts(arguments, flags, profile, console, clock, stop));
  return PhaseAnswer{
      .result = probe::MakeResult(report), .hung = false, .fed = report.train.fed.value.has_value()};
}

Result<int> ProbeStorage(const Arguments& arguments, const StorageFlags& flags, Console& console) {
  const Interrupt interrupt;
  static const SteadyClock clock;  // outlives a thread in a read that hangs
  TRY_STATUS(CheckStorageFlags(flags));
  const probe::StorageProfile profile = TRY(DemandOf(flags, TRY(MeasureModel(flags, console, clock))));
  std::optional<ProbedSets> sets;
  PhaseAnswer answer =
      TRY(flags.join.any() ? ProbeThere(arguments, flags, profile, console, clock, interrupt.token())
                           : ProbeHere(flags, profile, console, clock, interrupt.token(), sets));
  answer.result.provenance =
      record::CollectProvenance({.command = CommandLine(), .seed = static_cast<uint64_t>(flags.seed)})
          .ToJson();
  TRY_STATUS(Publish(flags, answer.result, console));
  const bool invalid = answer.result.verdict.verdict == ToString(results::Standing::kInvalid);
  const bool met = !invalid && (answer.fed || !flags.must_feed);
  const int status = met ? kDone : kClaimInvalid;
  if (answer.hung) EndDespiteHungReads(*sets, status);
  return status;
}

}  // namespace

int ProbeStorageVerb(const Arguments& arguments) {
  StorageFlags flags;
  if (const auto status = ParseStorageFlags(arguments, flags)) return *status;
  Console console(flags.json);
  if (const Status writable = console.CheckJson(); !writable) return FailWith(writable.error());
  const auto status = ProbeStorage(arguments, flags, console);
  if (status) return *status;
  FailWith(status.error());
  return status.error().code == ErrorCode::kCancelled ? kInterrupted : ExitStatus(status.error());
}

}  // namespace weir::cli
