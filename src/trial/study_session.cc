#include "trial/study_session.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "base/duration.h"
#include "base/file.h"
#include "base/json.h"
#include "base/secrets.h"
#include "base/temporary_folder.h"
#include "record/provenance.h"
#include "results/study_provenance.h"
#include "study/length_check.h"
#include "study/override.h"
#include "study/result.h"
#include "trial/quiet.h"
#include "trial/server_image.h"
#include "trial/study_folder.h"
#include "trial/study_live.h"
#include "trial/study_notes.h"

namespace weir::trial {
namespace {

// Returns how long a study waits for a quiet machine; zero if it does not.
Result<Duration> WaitBudget(const StudyRequest& request) {
  if (request.wait_quiet.empty()) return Duration::zero();
  const Duration budget = TRY_CONTEXT(ParseDuration(request.wait_quiet, 7 * 24h), "--wait-quiet");
  if (budget > Duration::zero()) return budget;
  return Fail(ErrorCode::kInvalidArgument, "--wait-quiet: the time must be above 0, as in 10m");
}

// A name of the request is of the working folder, and the study's copy lies elsewhere.
Result<std::string> AbsoluteName(const std::string& name) {
  if (name.contains("://")) return name;
  std::error_code error;
  const auto absolute = std::filesystem::absolute(name, error);
  if (error) return FailErrno(name, error.value());
  return absolute.lexically_normal().string();
}

Result<TrialRunner::Options> RunnerOptions(const StudyRequest& request, const std::string& folder) {
  return MakeRunnerOptions(folder, request.image, request.file);
}

// Builds the image of weir's server if it is needed and missing. The user provides an image that the command
// names.
void BuildMissingImage(const StudyRequest& request, const study::Design& design, const Clock& clock,
                       const StudyHooks& hooks) {
  if (!request.builds_image || !NeedsServerImage(design)) return;
  const auto options = RunnerOptions(request, ".");
  if (!options) return;
  const auto build = FindImageBuild(options->program, request.image, clock);
  if (!build) return;
  hooks.note(fmt::format("building the container image {} with {} (once, about a minute)", request.image,
                         build->tool));
  const Status built = BuildImage(*build, options->program, request.image, clock);
  if (!built) hooks.note(built.error().message);
}

// Notes trials that are too short for their figures. Plays the reference once, unrecorded, which also warms
// up the machine.
void WarnOfShortTrials(const PlannedStudy& plan, TrialRunner& runner, const StudyHooks& hooks) {
  for (const std::string& warning : study::LengthWarnings(plan.file, plan.design)) hooks.note(warning);
  if (plan.file.trial.seconds || plan.design.trials.empty()) return;
  const study::Trial& first = plan.design.trials.front();
  const auto pilot = runner.Play(first);
  if (!pilot) return;  // the trial itself will report it
  const study::Configuration& configuration = plan.design.configurations[first.configuration];
  if (const auto warning = study::PilotWarning(plan.file, configuration, pilot->metrics))
    hooks.note(*warning);
}

// Writes the study file and its provenance beside the journal, unless trials are there already. A kill
// between the journal's first line and these files leaves neither, so --resume does not decide.
Status WriteStudyFiles(const StudyRequest& request, const PlannedStudy& plan, const study::Header& header,
                       const study::StudyJournal& so_far) {
  if (!so_far.played.empty()) {
    TRY_STATUS(ReadStoredStudy(request.folder));  // the report needs it in the end
    return {};
  }
  TRY_STATUS(WriteFileWhole(request.folder + "/" + kStudyFile, plan.text));
  return WriteFileWhole(request.folder + "/" + kProvenanceFile, DumpJsonIndented(header.provenance) + "\n");
}

study::Replay ReplayOf(const StudyRequest& request) {
  if (!request.replay) return study::Replay::kNever;
  return request.wait_quiet.empty() ? study::Replay::kAfterNewTrials : study::Replay::kAlways;
}

// The study lies beside its journal and in its reports, and --resume and weir report read it from there.
Status CheckNoSecrets(const PlannedStudy& plan, const std::string& file) {
  const Json study = plan.file.ToJson();
  if (WithoutSecrets(plan.text) == plan.text && DumpJson(JsonWithoutSecrets(study)) == DumpJson(study))
    return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{}: holds a password, token or signature, which would be stored with the results: "
                          "name a variable of the environment, as in command: [sh, -c, 'exec server "
                          "--token=$TOKEN']",
                          EscapeBytes(file)));
}

}  // namespace

Result<TrialRunner::Options> MakeRunnerOptions(const std::string& folder, const std::string& image,
                                               const std::string& study_file) {
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return FailErrno("/proc/self/exe", error.value());
  const std::string absolute = std::filesystem::absolute(folder, error).string();
  if (error) return FailErrno(folder, error.value());
  return TrialRunner::Options{.program = program,
                              .folder = absolute + "/work",
                              .image = image,
                              .study_folder = std::filesystem::path(study_file).parent_path().string()};
}

Result<Json> CollectStudyProvenance(const std::vector<std::string>& command, uint64_t seed,
                                    TrialRunner& runner) {
  const results::StudyProvenance provenance{
      .common =
          record::CollectProvenance({.command = command, .seed = seed, .libraries = runner.Libraries()}),
      .materials = TRY(runner.Materials()),
      .resolved = runner.ResolvedPaths()};
  return provenance.ToJson();
}

Result<PlannedStudy> PlanStudy(const StudyRequest& request) {
  TRY_STATUS(WaitBudget(request));
  PlannedStudy plan{.text = TRY(ReadTextFile(request.file)), .file = {}, .design = {}};
  if (!request.model.empty())
    plan.text = study::WithValue(plan.text, "model", TRY(AbsoluteName(request.model)));
  if (!request.data.empty()) plan.text = study::WithValue(plan.text, "data", TRY(AbsoluteName(request.data)));
  plan.file = TRY_CONTEXT(study::ParseStudy(plan.text), request.file);
  // The copy beside the journal requests the waterfall too, so the report and --resume find the same design.
  if (request.waterfall && !plan.file.waterfall) {
    plan.text += "\nwaterfall: true\n";
    plan.file = TRY_CONTEXT(study::ParseStudy(plan.text), request.file);
  }
  TRY_STATUS(CheckNoSecrets(plan, request.file));
  plan.design = TRY_CONTEXT(study::MakeDesign(plan.file), request.file);
  std::error_code error;
  if (request.resume && !std::filesystem::is_directory(request.folder, error)) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("{}: there is no study to resume; leave out --resume to begin one",
                            EscapeBytes(request.folder)));
  }
  return plan;
}

Pilot PlayPilot(const study::Design& design, const std::vector<TrialRunner::Inability>& inabilities,
                const study::TrialFn& play, const Clock& clock, const std::stop_token& stop,
                const std::function<void(const std::string&)>& note) {
  Pilot pilot{.seconds = std::vector<std::optional<double>>(design.configurations.size())};
  std::set<std::string> noted;
  for (const TrialRunner::Inability& one : inabilities) {
    note(InabilityText(one, design));
    noted.insert(one.why);
  }
  for (const study::Trial& trial : study::PilotTrials(design)) {
    if (stop.stop_requested()) break;
    const Instant begin = clock.Now();
    const auto record = play(trial);
    if (record) {
      pilot.seconds[trial.configuration] = Seconds(clock.Now() - begin);
      continue;
    }
    if (noted.insert(record.error().message).second)
      note(fmt::format("{}: {}", design.configurations[trial.configuration].label, record.error().message));
    pilot.any_failed |= record.error().code != ErrorCode::kUnsupported;
  }
  return pilot;
}

Result<DryRunResult> PlayDryRun(const StudyRequest& request, const PlannedStudy& plan, const Clock& clock,
                                const std::stop_token& stop, const StudyHooks& hooks) {
  const TemporaryFolder folder = TRY(TemporaryFolder::Make("weir-study"));
  TrialRunner runner(TRY(RunnerOptions(request, folder.path())), plan.file, plan.design, clock);
  TRY(runner.Materials());  // what the study itself would refuse
  const Pilot pilot = PlayPilot(
      plan.design, runner.FindInabilities(), [&](const study::Trial& trial) { return runner.Play(trial); },
      clock, stop, hooks.note);
  DryRunResult result{.design = study::MakeDesignResult(plan.design), .any_failed = pilot.any_failed};
  result.design.needed_s = study::TimeNeeded(plan.design, pilot.seconds);
  for (const auto& seconds : pilot.seconds) result.pilots += seconds.has_value();
  return result;
}

bool StudyEnd::has_figures() const {
  for (size_t i = 0; i < result.configurations.size(); ++i) {
    if (result.FindFigures(i, result.study.metric) != nullptr) return true;
  }
  return false;
}

Result<StudyEnd> PlayStudyInFolder(const StudyRequest& request, const PlannedStudy& plan, const Clock& clock,
                                   const std::stop_token& stop, const StudyHooks& hooks) {
  TRY_STATUS(MakeFolders(request.folder));
  TrialRunner runner(TRY(RunnerOptions(request, request.folder)), plan.file, plan.design, clock);
  const study::Header header{
      .study = plan.file.ToJson(),
      .provenance = TRY(CollectStudyProvenance(request.command, plan.file.seed, runner))};
  study::Opened opened = TRY(study::OpenStudy(request.folder + "/" + kJournalFile, header,
                                              request.resume ? study::Begin::kResume : study::Begin::kNew));
  TRY_STATUS(WriteStudyFiles(request, plan, header, opened.so_far));
  const auto note = [&hooks](const std::string& text) {
    hooks.progress_ended();
    hooks.note(text);
  };
  StudyNotes notes(plan.file, plan.design, note);
  BuildMissingImage(request, plan.design, clock, hooks);
  notes.Add(runner.FindInabilities());
  if (opened.so_far.played.empty() && !stop.stop_requested()) WarnOfShortTrials(plan, runner, hooks);
  QuietWait quiet({.budget = TRY(WaitBudget(request))}, clock);
  std::unique_ptr<StudyLive> live;
  if (!request.live.empty()) {
    live = TRY(StudyLive::Start(request.live, plan.file, plan.design, clock));
    live->AddEarlier(opened.so_far.played);
    hooks.note("the study's page: " + live->url());
  }
  const Instant begin = clock.Now();
  const study::RunInputs inputs{
      .design = plan.design,
      .play = [&](const study::Trial& trial) { return runner.Play(trial); },
      .before =
          [&](const study::Trial& trial) {
            if (live) live->Begin(trial);
            if (quiet.left() == Duration{} || quiet.Wait(stop) || quiet.left() > Duration{}) return;
            note(fmt::format("the machine did not become quiet within {}: {}; the trials go on, SUSPECT",
                             request.wait_quiet, quiet.seen()));
          },
      .progress =
          [&](const study::Progress& progress, const study::PlayedTrials& last) {
            if (live) live->Add(progress, last);
            notes.Add(last);
            hooks.progress(Seconds(clock.Now() - begin), progress.done, progress.total,
                           ProgressText(progress, last, plan.design));
          },
      .stop = stop,
      .clock = clock,
      .replay = ReplayOf(request)};
  const study::Ending ending = TRY(study::PlayStudy(inputs, opened.journal, opened.so_far.played));
  hooks.progress_ended();
  const StoredStudy stored = TRY(ReadStoredStudy(request.folder));
  StudyEnd end{.result = TRY(WriteReportOf(request.folder, stored, nullptr)), .ending = ending};
  if (live) live->Finish();
  return end;
}

}  // namespace weir::trial
