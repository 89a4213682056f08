#include "probe/storage_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/count.h"
#include "base/json.h"
#include "base/thread.h"
#include "probe/probe_result.h"
#include "probe/storage_owner.h"

namespace weir::probe {
namespace {

// Names folders that a probe on another host, or before a restart, has left.
void NoteForeign(const StorageHooks& hooks, const std::string& path) {
  for (const std::string& folder : RemoveOrphans(path, ReadHostIdentity()).foreign)
    hooks.note(ForeignText(folder));
}

void NoteWrites(const StorageHooks& hooks, const std::string& path, const SetNeeds& needs) {
  hooks.note(fmt::format("writes {} to {}, of {} free; removed at the end",
                         Size(static_cast<double>(needs.bytes)), EscapeBytes(path),
                         Size(static_cast<double>(needs.space.free_bytes))));
}

template <typename Report>
StorageAnswer AnswerOf(const Report& report) {
  return {.result = MakeResult(report), .hung = AnyHung(report)};
}

// One run with its sets and its surroundings.
struct Run {
  const StorageRequest& request;
  const PhaseOptions& options;
  const ProbedSets& sets;
  const SetFacts& facts;
  const StorageHooks& hooks;
  const Clock& clock;
  const std::stop_token& stop;
};

Result<StorageAnswer> PlayTraining(const Run& run) {
  const Instant begin = run.clock.Now();
  std::vector<StorageSample> samples = run.sets.samples();
  if (run.request.record_bytes > 0 && run.request.phase == StoragePhase::kTrain)
    samples = TRY(DivideIntoRecords(samples, static_cast<uint64_t>(run.request.record_bytes)));
  const TrainReport report = TRY(ProbeTraining(
      run.options.train, samples, run.facts, run.clock, run.stop, [&](int runs, const TrainRun& last) {
        run.hooks.progress(Seconds(run.clock.Now() - begin), runs,
                           fmt::format("{} accelerators", last.accelerators));
      }));
  run.hooks.progress_ended();
  return StorageAnswer{.result = MakeResult(report),
                       .hung = !report.facts.Reads().hung.empty(),
                       .fed = report.fed.value.has_value()};
}

Result<StorageAnswer> PlayAll(const Run& run);

Result<StorageAnswer> PlayPhase(StoragePhase phase, const Run& run) {
  const auto& [request, options, sets, facts, hooks, clock, stop] = run;
  switch (phase) {
    case StoragePhase::kEtl:
      return AnswerOf(
          TRY(ProbeEtl(options.train, sets.samples(), facts, sets.work(), hooks.prepare, clock, stop)));
    case StoragePhase::kInfer:
      return AnswerOf(TRY(ProbeInference(options, sets.samples(), facts, clock, stop)));
    case StoragePhase::kStream:
      return AnswerOf(TRY(ProbeStreaming(options, sets.samples(), facts, clock, stop)));
    case StoragePhase::kMix:
      return AnswerOf(TRY(ProbeMix(options, sets.samples(), facts, clock, stop)));
    case StoragePhase::kTrain:
      return PlayTraining(run);
    case StoragePhase::kAll:
      break;
  }
  return PlayAll(run);
}

// One after the other.
Result<StorageAnswer> PlayAll(const Run& run) {
  StorageAnswer all;
  std::vector<results::StorageProbeResult> phases;
  for (const StoragePhase one : {StoragePhase::kEtl, StoragePhase::kTrain, StoragePhase::kInfer}) {
    StorageAnswer answer = TRY(PlayPhase(one, run));
    all.hung = all.hung || answer.hung;
    all.fed = all.fed && answer.fed;
    phases.push_back(std::move(answer.result));
    if (all.hung) break;  // the storage answers no more
  }
  all.result = MakeResult(std::move(phases));
  return all;
}

// Returns the predicted step of the card, or nullopt where the demand has its published one.
Result<std::optional<ModelStep>> StepOfCard(const StorageRequest& request, const std::string& card,
                                            const StorageHooks& hooks) {
  if (request.predictor.empty()) {
    hooks.note(CardText(TRY(FindCardProfile(request.profile, card))));
    return std::nullopt;
  }
  const AskedCard asked{.card = card, .predictor = request.predictor, .network = request.network};
  std::vector<std::string> notes;
  const Duration step = TRY(hooks.predict_step(asked, request.batch, notes));
  for (const std::string& note : notes) hooks.note(note);
  return ModelStep{.step = step, .low = {}, .high = {}, .batch = request.batch, .runs = 0, .engine = {}};
}

}  // namespace

// Lists the user's own files. The phase etl also gets a folder to write into.
Status ProbedSets::ListOwn(const StorageRequest& request, const StorageHooks& hooks) {
  samples_ = TRY(ListSamples(request.set));
  if (!request.prepares()) return {};
  uint64_t bytes = 0;
  for (const StorageSample& sample : samples_) bytes += sample.bytes;
  const auto needs = TRY(CheckSpaces(request.paths, {.samples = 0}, Seed(1), bytes));
  NoteWrites(hooks, request.paths.front(), needs.front());
  folder_.emplace(TRY(OwnedFolder::Make(request.paths.front())));
  work_ = folder_->path();
  return {};
}

Status ProbedSets::Write(const StorageRequest& request, const StorageProfile& profile,
                         const StorageHooks& hooks, const Clock& clock, const std::stop_token& stop) {
  const MadeSetOptions made = TRY(MadeSetOf(request, profile, hooks.draw));
  const Seed seed(static_cast<uint64_t>(request.seed));
  uint64_t prepared_bytes = 0;
  if (request.prepares())
    for (const uint64_t size : MakeSizes(made, seed)) prepared_bytes += size;
  const auto needs = TRY(CheckSpaces(request.paths, made, seed, prepared_bytes));
  for (size_t i = 0; i < needs.size(); ++i) NoteWrites(hooks, request.paths[i], needs[i]);
  for (const std::string& path : request.paths) {
    made_.push_back(TRY(MadeSet::Make(path, made, seed, clock, stop)));
    const std::vector<StorageSample>& samples = made_.back().samples();
    samples_.insert(samples_.end(), samples.begin(), samples.end());
    units_.push_back({.path = path, .samples = samples.size()});
  }
  work_ = made_.front().folder();
  return {};
}

Result<ProbedSets> ProbedSets::Prepare(const StorageRequest& request, const StorageProfile& profile,
                                       const StorageHooks& hooks, const Clock& clock,
                                       const std::stop_token& stop) {
  for (const std::string& path : request.paths) NoteForeign(hooks, path);
  ProbedSets sets;
  TRY_STATUS(request.set.empty() ? sets.Write(request, profile, hooks, clock, stop)
                                 : sets.ListOwn(request, hooks));
  return sets;
}

void ProbedSets::Remove() {
  made_.clear();
  if (folder_) folder_->Remove();
}

Result<StorageProfile> FindDemand(const StorageRequest& request, const StorageHooks& hooks,
                                  const Clock& clock) {
  if (const std::string card = TRY(ParseAccelerators(request.accelerators)).card; !card.empty())
    return DemandOf(request, TRY(StepOfCard(request, card, hooks)));
  if (request.profile_from.empty()) return DemandOf(request, std::nullopt);
  ModelStepOptions options{.path = request.profile_from, .engine = request.engine};
  if (request.batch > 0) options.batch = request.batch;
  const ModelStep step = TRY(MeasureModelStep(options, clock));
  hooks.note(ModelStepText(request.profile_from, step));
  return DemandOf(request, step);
}

Result<StorageAnswer> RunStorageProbe(const StorageRequest& request, const StorageProfile& profile,
                                      const StorageHooks& hooks, const Clock& clock,
                                      const std::stop_token& stop, std::optional<ProbedSets>& sets) {
  PhaseOptions options = TRY(PhaseOptionsOf(request, profile));
  sets.emplace(TRY(ProbedSets::Prepare(request, profile, hooks, clock, stop)));
  options.train.units = sets->units();
  SetFacts facts;
  if (!request.from_memory) {
    facts = InspectSet(sets->samples());
    if (request.warm && !request.direct) facts.in_memory.clear();  // memory is what was asked for
    if (!request.warm) ForgetSet(sets->samples());
  }
  return PlayPhase(request.phase, {request, options, *sets, facts, hooks, clock, stop});
}

void EndDespiteHungReads(ProbedSets& sets, int status) {
  std::fflush(nullptr);
  std::atomic<bool> removed = false;
  std::jthread remover = StartThread("remover", [&](const std::stop_token&) {
    sets.Remove();
    removed = true;
  });
  for (int i = 0; i < 100 && !removed; ++i) ::usleep(10'000);
  std::_Exit(status);
}

}  // namespace weir::probe
