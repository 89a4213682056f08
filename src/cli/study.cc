#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "cli/flags.h"
#include "cli/run_verb.h"
#include "launch/process/orphans.h"
#include "launch/ssh/ssh_server.h"
#include "report/study_report.h"
#include "study/factor.h"
#include "trial/study_folder.h"
#include "trial/study_notes.h"
#include "trial/study_session.h"

namespace weir::cli {
namespace {

struct Options {
  trial::StudyRequest request;
  std::string json;
  bool dry_run = false, no_replay = false;
};

std::optional<int> ParseFlags(const Arguments& arguments, Options& options) {
  trial::StudyRequest& request = options.request;
  Flags flags(
      "study",
      "Plays an experiment. Each configuration of its factors is tried in randomised blocks. Each trial "
      "has its own server and client. The report says what was found and how sure that is.",
      "weir study studies/quick.yaml -o quick");
  flags.Required("FILE", request.file, "study file (docs/studies.md)");
  flags.Text("-o,--output", request.folder, "folder for the journal and the report; new, unless --resume");
  flags.Text("--model", request.model, "MODEL in the place of the study's");
  flags.Text("--data", request.data, "files, folder or prepared set in the place of the study's data");
  flags.Switch("--resume", request.resume, "continue the study in that folder");
  flags.Switch("--dry-run", options.dry_run,
               "play a few trials, list all trials in order and the time they need; keep nothing");
  flags.Switch("--waterfall", request.waterfall,
               "also play the steps from tensors in memory, in one process, to the full architecture");
  flags.Switch("--no-replay", options.no_replay, "do not play SUSPECT trials once more at the end");
  flags.Text("--wait-quiet", request.wait_quiet,
             "longest time, in all, to wait before trials until other processes are quiet, as in 10m");
  flags.Text("--live", request.live, "HOST:PORT of a page that shows the study while it runs");
  flags.Text("--image", request.image,
             "container image of weir's server (default localhost/weir, built on first use)");
  flags.Text("--json", options.json, "write the result as JSON to this file; - for standard output");
  const auto status = flags.Parse(arguments);
  const auto given = flags.Given();
  request.builds_image = std::ranges::find(given, "--image") == given.end();
  request.replay = !options.no_replay;
  request.command = CommandLine();
  return status;
}

Result<int> DryRun(const Options& options, const trial::PlannedStudy& plan, const Clock& clock,
                   const std::stop_token& stop, const trial::StudyHooks& hooks, const Console& console) {
  const auto dry = TRY(trial::PlayDryRun(options.request, plan, clock, stop, hooks));
  console.Text(trial::TrialsText(plan.design));
  if (dry.design.needed_s)
    console.Text(fmt::format("needs about {:.0f} minutes, by {} of a trial each\n",
                             std::ceil(*dry.design.needed_s / 60), Count(dry.pilots, "pilot run")));
  TRY_STATUS(console.Json(dry.design.ToJson()));
  if (stop.stop_requested()) return kInterrupted;
  return dry.any_failed ? kJobFailed : kDone;
}

Result<int> PlayAll(const Options& options, const trial::PlannedStudy& plan, const Clock& clock,
                    const std::stop_token& stop, const trial::StudyHooks& hooks, const Console& console) {
  const trial::StudyRequest& request = options.request;
  const trial::StudyEnd end = TRY(trial::PlayStudyInFolder(request, plan, clock, stop, hooks));
  console.Text(report::AnswerText(end.result, request.folder));
  TRY_STATUS(console.Json(end.result.ToJson()));
  if (end.ending == study::Ending::kStopped) {
    console.Note(fmt::format("stopped; weir study {} -o {} --resume continues", EscapeBytes(request.file),
                             EscapeBytes(request.folder)));
    return kInterrupted;
  }
  // Disturbed trials give no answer, but they are a result.
  return end.has_figures() ? kDone : kJobFailed;
}

Result<int> RunStudy(const Options& options, const std::stop_token& stop) {
  Console console(options.json);
  TRY_STATUS(console.CheckJson());
  const SteadyClock clock;
  const auto hooks = HooksOf<trial::StudyHooks>(console, "trials");
  const trial::PlannedStudy plan = TRY(trial::PlanStudy(options.request));
  for (const std::string& line : launch::RemoveOrphans(clock)) console.Note(line);
  if (!options.dry_run && options.request.folder.empty())
    return Fail(ErrorCode::kInvalidArgument, "give -o DIR, the folder for the journal and the report");
  if (!options.dry_run && plan.file.server_host) {
    for (const std::string& line :
         TRY(launch::RemoveOrphansOn({.destination = *plan.file.server_host}, clock)))
      console.Note(line);
  }
  console.Text(trial::DesignText(console.style(), plan.file, plan.design));
  return options.dry_run ? DryRun(options, plan, clock, stop, hooks, console)
                         : PlayAll(options, plan, clock, stop, hooks, console);
}

}  // namespace

int Study(const Arguments& arguments) {
  if (arguments == Arguments{"--factors"}) {  // writes docs/reference/factors.md
    Console("").Text(study::FactorsPage());
    return kDone;
  }
  return RunVerb<Options>(arguments, ParseFlags, RunStudy);
}

}  // namespace weir::cli
