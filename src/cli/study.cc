#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/duration.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cli/study_folder.h"
#include "cli/study_live.h"
#include "cli/verbs.h"
#include "launch/process/orphans.h"
#include "launch/ssh/ssh_server.h"
#include "record/provenance.h"
#include "study/analysis.h"
#include "study/factor.h"
#include "study/figures.h"
#include "study/length_check.h"
#include "study/result.h"
#include "study/run.h"
#include "trial/quiet.h"
#include "trial/server_image.h"
#include "trial/trial_runner.h"

namespace weir::cli {
namespace {

struct Options {
  std::string file, folder, image = "localhost/weir", json, wait_quiet, live;
  bool resume = false, dry_run = false, builds_image = true, waterfall = false, no_replay = false;
};

std::optional<int> ParseFlags(const Arguments& arguments, Options& options) {
  Flags flags("study",
              "Plays an experiment: every configuration of its factors in randomised blocks, each trial with "
              "a server and "
              "a client of its own, and reports what was found and how sure that is.",
              "weir study studies/quick.yaml -o quick");
  flags.Required("FILE", options.file, "the study, as docs/studies.md has it");
  flags.Text("-o,--output", options.folder,
             "a folder for the journal and the report: absent, or the study's to resume");
  flags.Switch("--resume", options.resume, "go on with the study in that folder");
  flags.Switch("--dry-run", options.dry_run,
               "play a few trials, show all in their order and the time they need, and keep nothing");
  flags.Switch("--waterfall", options.waterfall,
               "also play the steps from tensors in memory, in one process, to the full architecture");
  flags.Switch("--no-replay", options.no_replay, "do not play SUSPECT trials once more at the end");
  flags.Text("--wait-quiet", options.wait_quiet,
             "longest time, in all, to wait before trials until other processes are quiet, as in 10m");
  flags.Text("--live", options.live, "HOST:PORT of a page that shows the study while it runs");
  flags.Text("--image", options.image,
             "container image of weir's server (default localhost/weir, built on first use)");
  flags.Text("--json", options.json, "write the result as JSON to this file; - for standard output");
  const auto status = flags.Parse(arguments);
  const auto given = flags.Given();
  options.builds_image = std::ranges::find(given, "--image") == given.end();
  return status;
}

std::string InabilityText(const trial::TrialRunner::Inability& one, const study::Design& design) {
  return fmt::format("{} of {} cannot be played here and will be skipped: {}", Count(one.configurations),
                     Count(std::ssize(design.configurations), "configuration"), EscapeBytes(one.why));
}

Result<trial::TrialRunner::Options> LaboratoryOptions(const Options& options, const std::string& folder) {
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return FailErrno("/proc/self/exe", error.value());
  const std::string absolute = std::filesystem::absolute(folder, error).string();
  if (error) return FailErrno(folder, error.value());
  return trial::TrialRunner::Options{
      .program = program,
      .folder = absolute + "/work",
      .image = options.image,
      .study_folder = std::filesystem::path(options.file).parent_path().string()};
}

std::string DesignText(const Console& console, const study::StudyFile& file, const study::Design& design) {
  std::string text = fmt::format("{}: {} in {} blocks, {} trials\n", console.Bold(file.name),
                                 Count(std::ssize(design.configurations), "configuration"), design.blocks,
                                 Count(std::ssize(design.trials)));
  for (const study::Combination& combination : design.combinations) {
    if (!combination.dropped.empty())
      text += fmt::format("  left out: {} ({})\n", DumpJson(combination.factors), combination.dropped);
  }
  return text;
}

// An image that the user names is the user's to bring.
void MakeImage(const Options& options, const study::Design& design, const Clock& clock, Console& console) {
  if (!options.builds_image || !trial::NeedsServerImage(design)) return;
  const auto settings = LaboratoryOptions(options, ".");
  if (!settings) return;
  const auto build = trial::FindImageBuild(settings->program, options.image, clock);
  if (!build) return;
  console.Note(fmt::format("building the container image {} with {} (once, about a minute)", options.image,
                           build->tool));
  const Status built = trial::BuildImage(*build, settings->program, options.image, clock);
  if (!built) console.Note(built.error().message);
}

// Plays the reference once, unrecorded: it warms up the machine and shows whether the trials are long enough.
void WarnOfShortTrials(const StoredStudy& stored, trial::TrialRunner& laboratory, Console& console) {
  for (const std::string& warning : study::LengthWarnings(stored.file, stored.design)) console.Note(warning);
  if (stored.file.trial.seconds || stored.design.trials.empty()) return;
  const study::Trial& first = stored.design.trials.front();
  const auto pilot = laboratory.Play(first);
  if (!pilot) return;  // its trial says why
  const study::Configuration& configuration = stored.design.configurations[first.configuration];
  if (const auto warning = study::PilotWarning(stored.file, configuration, pilot->metrics))
    console.Note(*warning);
}

// Seconds that a trial of each configuration took; nothing for those that were not tried, or failed, as
// `any_failed` tells.
std::vector<std::optional<double>> Pilot(const study::Design& design, trial::TrialRunner& laboratory,
                                         const Clock& clock, const std::stop_token& stop, Console& console,
                                         bool& any_failed) {
  std::vector<std::optional<double>> seconds(design.configurations.size());
  std::set<std::string> told;  // each reason once
  for (const trial::TrialRunner::Inability& one : laboratory.FindInabilities()) {
    console.Note(InabilityText(one, design));
    told.insert(one.why);
  }
  for (const study::Trial& trial : study::PilotTrials(design)) {
    if (stop.stop_requested()) break;
    const Instant begin = clock.Now();
    const auto record = laboratory.Play(trial);
    const std::string& label = design.configurations[trial.configuration].label;
    if (record) {
      seconds[trial.configuration] = Seconds(clock.Now() - begin);
      continue;
    }
    if (told.insert(record.error().message).second)
      console.Note(fmt::format("{}: {}", label, record.error().message));
    any_failed = any_failed || record.error().code != ErrorCode::kUnsupported;  // which would be skipped
  }
  return seconds;
}

Result<int> DryRun(const Options& options, const study::StudyFile& file, const study::Design& design,
                   const Clock& clock, const std::stop_token& stop, Console& console) {
  console.Text(DesignText(console, file, design));
  const TemporaryFolder folder = TRY(TemporaryFolder::Make("weir-study"));
  trial::TrialRunner laboratory(TRY(LaboratoryOptions(options, folder.path())), file, design, clock);
  bool any_failed = false;
  const auto pilot = Pilot(design, laboratory, clock, stop, console, any_failed);
  results::StudyDesign result = study::MakeDesignResult(design);
  for (const study::Trial& trial : design.trials) {
    console.Text(fmt::format("  {:>4} {:>3} {:<17} {}\n", trial.block + 1, trial.position + 1,
                             ToString(trial.role), design.configurations[trial.configuration].label));
  }
  if (const auto needed = study::TimeNeeded(design, pilot)) {
    console.Text(fmt::format(
        "needs about {:.0f} minutes, by {} of a trial each\n", std::ceil(*needed / 60),
        Count(std::ranges::count_if(pilot, [](const auto& s) { return s.has_value(); }), "pilot run")));
    result.needed_s = *needed;
  }
  TRY_STATUS(console.Json(result.ToJson()));
  if (stop.stop_requested()) return kInterrupted;
  return any_failed ? kJobFailed : kDone;
}

// Returns the facts that must not change when a study resumes.
Result<Json> ProvenanceOf(const study::StudyFile& file, trial::TrialRunner& laboratory) {
  const results::StudyProvenance provenance{
      .common = record::CollectProvenance({.command = CommandLine(), .seed = file.seed, .libraries = {}}),
      .materials = TRY(laboratory.Materials()),
      .resolved = laboratory.ResolvedPaths()};
  return provenance.ToJson();
}

std::string ProgressText(const study::Progress& progress, const study::PlayedTrials& last,
                         const study::Design& design) {
  std::string text = fmt::format(", {}", design.configurations[last.trial.configuration].label);
  if (progress.failed > 0) text += fmt::format(", {} failed", progress.failed);
  if (progress.skipped > 0) text += fmt::format(", {} skipped", progress.skipped);
  if (progress.left_s) text += fmt::format(", {:.0f} min left", std::ceil(*progress.left_s / 60));
  return text;
}

// Says while a study is played how far it has come, and, each thing once, what goes wrong.
class Teller {
 public:
  Teller(const StoredStudy& stored, const Clock& clock, Console& console)
      : stored_(stored),
        clock_(clock),
        console_(console),
        begin_(clock.Now()),
        wanted_(study::WantedMetrics(stored.file)) {}

  // Prints the parts of the study that this machine cannot do, before the first trial; trials do not repeat
  // it
  void TellInabilities(const std::vector<trial::TrialRunner::Inability>& inabilities) {
    for (const trial::TrialRunner::Inability& one : inabilities) {
      told_.insert(EscapeBytes(one.why));
      Note(InabilityText(one, stored_.design) + " (--resume plays them once that is mended)");
    }
  }

  void Tell(const study::Progress& progress, const study::PlayedTrials& last) {
    const results::Verdict& verdict = last.record.verdict;
    const std::string& label = stored_.design.configurations[last.trial.configuration].label;
    const bool is_bad =
        verdict.standing == results::Standing::kFailed || verdict.standing == results::Standing::kSkipped;
    if (is_bad && told_.insert(verdict.message).second)
      Note(fmt::format("{} {}: {}", ToString(verdict.standing), label, verdict.message));
    if (study::Counts(last)) TellMissing(last);
    console_.Progress(Seconds(clock_.Now() - begin_), "trials", progress.done, progress.total,
                      ProgressText(progress, last, stored_.design));
  }

 private:
  void Note(const std::string& text) {
    console_.EndProgress();
    console_.Note(text);
  }

  // Early, as the study would be played to its end for an answer that nobody can give: each metric is looked
  // for in the first trial that ought to have it.
  void TellMissing(const study::PlayedTrials& played) {
    const study::Configuration& configuration = stored_.design.configurations[played.trial.configuration];
    const auto due = std::ranges::stable_partition(wanted_, [&](const study::WantedMetric& one) {
      return !study::Shows(one.where, configuration.factors);
    });
    if (due.empty()) return;
    std::vector<std::string> names;
    for (const auto& [name, value] : study::Flatten(played.record.metrics).numbers) names.push_back(name);
    for (const study::MissingMetric& one : study::FindMissing(due, names)) {
      Note(fmt::format(
          "{}: the first trial that ought to have it ({}) has no metric \"{}\"{}; {} has the names of all",
          one.wanted_by, configuration.label, one.metric,
          one.nearest ? fmt::format(", did you mean {}?", *one.nearest) : "", kJournalFile));
    }
    wanted_.erase(due.begin(), due.end());
  }

  const StoredStudy& stored_;
  const Clock& clock_;
  Console& console_;
  const Instant begin_;
  std::set<std::string> told_;
  std::vector<study::WantedMetric> wanted_;  // and not yet looked for
};

// Returns how long a study waits for a quiet machine; zero without --wait-quiet.
Result<Duration> WaitBudget(const Options& options) {
  if (options.wait_quiet.empty()) return Duration::zero();
  const Duration budget = TRY_CONTEXT(ParseDuration(options.wait_quiet, 7 * 24h), "--wait-quiet");
  if (budget > Duration::zero()) return budget;
  return Fail(ErrorCode::kInvalidArgument, "--wait-quiet: no time to wait in; give one such as 10m");
}

Result<int> PlayAll(const Options& options, const std::string& text, StoredStudy& stored, const Clock& clock,
                    const std::stop_token& stop, Console& console) {
  TRY_STATUS(MakeFolders(options.folder));
  trial::TrialRunner laboratory(TRY(LaboratoryOptions(options, options.folder)), stored.file, stored.design,
                                clock);
  const study::Header header{.study = stored.file.ToJson(),
                             .provenance = TRY(ProvenanceOf(stored.file, laboratory))};
  study::Opened opened = TRY(study::OpenStudy(options.folder + "/" + kJournalFile, header,
                                              options.resume ? study::Begin::kResume : study::Begin::kNew));
  // Not by --resume: a kill between the journal's first line and these leaves a study that has neither.
  if (opened.so_far.played.empty()) {
    TRY_STATUS(WriteFileWhole(options.folder + "/" + kStudyFile, text));
    TRY_STATUS(
        WriteFileWhole(options.folder + "/" + kProvenanceFile, DumpJsonIndented(header.provenance) + "\n"));
  } else {
    TRY_STATUS(ReadStoredStudy(options.folder));  // what the report needs in the end
  }
  Teller teller(stored, clock, console);
  MakeImage(options, stored.design, clock, console);
  teller.TellInabilities(laboratory.FindInabilities());
  if (opened.so_far.played.empty() && !stop.stop_requested()) WarnOfShortTrials(stored, laboratory, console);
  const bool waits = !options.wait_quiet.empty();
  trial::QuietWait quiet({.budget = TRY(WaitBudget(options))}, clock);
  std::unique_ptr<StudyLive> live;
  if (!options.live.empty()) {
    live = TRY(StudyLive::Start(options.live, stored.file, stored.design, clock));
    live->AddEarlier(opened.so_far.played);
    console.Note("the study's page: " + live->url());
  }
  const auto before = [&](const study::Trial& trial) {
    if (live) live->Begin(trial);
    if (quiet.left() == Duration{} || quiet.Wait(stop) || quiet.left() > Duration{}) return;
    console.EndProgress();
    console.Note(fmt::format("the machine did not become quiet within {}: {}; the trials go on, SUSPECT",
                             options.wait_quiet, quiet.seen()));
  };
  const study::RunInputs inputs{.design = stored.design,
                                .play = [&](const study::Trial& trial) { return laboratory.Play(trial); },
                                .before = before,
                                .progress =
                                    [&](const study::Progress& progress, const study::PlayedTrials& last) {
                                      if (live) live->Add(progress, last);
                                      teller.Tell(progress, last);
                                    },
                                .stop = stop,
                                .clock = clock,
                                .replay = options.no_replay ? study::Replay::kNever
                                          : waits           ? study::Replay::kAlways
                                                            : study::Replay::kAfterNewTrials};
  const study::Ending ending = TRY(study::PlayStudy(inputs, opened.journal, opened.so_far.played));
  console.EndProgress();
  stored = TRY(ReadStoredStudy(options.folder));
  const results::StudyResult result = TRY(WriteReportOf(options.folder, stored, nullptr));
  console.Text(AnswerText(result, options.folder));
  TRY_STATUS(console.Json(result.ToJson()));
  if (live) live->Finish();
  if (ending == study::Ending::kStopped) {
    console.Note(fmt::format("stopped; weir study {} -o {} --resume goes on", EscapeBytes(options.file),
                             EscapeBytes(options.folder)));
    return kInterrupted;
  }
  // Trials that were disturbed give no answer, and are a result all the same.
  for (size_t i = 0; i < result.configurations.size(); ++i) {
    if (result.FindFigures(i, result.study.metric) != nullptr) return kDone;
  }
  return kJobFailed;
}

Result<int> RunStudy(const Options& options, const std::stop_token& stop) {
  Console console(options.json);
  TRY_STATUS(console.CheckJson());
  const SteadyClock clock;
  TRY_STATUS(WaitBudget(options));
  std::string text = TRY(ReadTextFile(options.file));
  // The copy beside the journal asks for it too, so the report and --resume find the same design.
  if (options.waterfall && !TRY_CONTEXT(study::ParseStudy(text), options.file).waterfall)
    text += "\nwaterfall: true\n";
  StoredStudy stored{.file = TRY_CONTEXT(study::ParseStudy(text), options.file), .design = {}, .journal = {}};
  stored.design = TRY_CONTEXT(study::MakeDesign(stored.file), options.file);
  for (const std::string& line : launch::RemoveOrphans(clock)) console.Note(line);
  if (options.dry_run) return DryRun(options, stored.file, stored.design, clock, stop, console);
  if (options.folder.empty())
    return Fail(ErrorCode::kInvalidArgument, "-o DIR: a study wants a folder for its journal and its report");
  std::error_code error;
  if (options.resume && !std::filesystem::is_directory(options.folder, error))
    return Fail(
        ErrorCode::kNotFound,
        fmt::format("{}: no study is there to go on with; without --resume one is begun", options.folder));
  if (stored.file.server_host) {
    for (const std::string& line :
         TRY(launch::RemoveOrphansOn({.destination = *stored.file.server_host}, clock)))
      console.Note(line);
  }
  console.Text(DesignText(console, stored.file, stored.design));
  return PlayAll(options, text, stored, clock, stop, console);
}

}  // namespace

int Study(const Arguments& arguments) {
  if (arguments == Arguments{"--factors"}) {  // writes docs/reference/factors.md
    Console("").Text(study::FactorsPage());
    return kDone;
  }
  Options options;
  if (const auto status = ParseFlags(arguments, options)) return *status;
  const Interrupt interrupt;
  const Result<int> status = RunStudy(options, interrupt.token());
  return status ? *status : FailWith(status.error());
}

}  // namespace weir::cli
