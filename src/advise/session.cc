#include "advise/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <utility>

#include "advise/advice_files.h"
#include "advise/decision.h"
#include "advise/hardware.h"
#include "advise/run_search.h"
#include "advise/search_trials.h"
#include "base/count.h"
#include "base/file.h"
#include "launch/process/orphans.h"
#include "results/study_provenance.h"
#include "trial/places.h"
#include "trial/study_folder.h"
#include "trial/trial_runner.h"

namespace weir::advise {
namespace {

// The grounds of a decision, and the places of what they name.
struct Material {
  const study::StudyFile& file;
  const study::Design& design;
  const std::vector<study::PlayedTrials>& played;
  std::function<std::string(const std::string&)> find;
  std::vector<PredictedEnds> ends = {};  // empty without --hardware
};

// Writes the files of the best configuration, and lists them in `advice`.
Status WriteFiles(const AdviseRequest& request, const Material& material, const Candidate& best,
                  results::AdviceResult& advice, std::string& text) {
  const AdviceFilesInput input{.file = material.file,
                               .design = material.design,
                               .played = material.played,
                               .best = best,
                               .image = request.image_given ? request.image : "",
                               .find = material.find,
                               .data = material.find(material.file.data),
                               .predicted = !material.ends.empty()};
  auto files = MakeAdviceFiles(input);
  if (!files) {
    text += "note: no files are written: " + files.error().message + "\n";
    return {};
  }
  files->push_back({.name = "README.md", .contents = AdviceReadme(input, advice, *files)});
  for (const AdviceFile& one : *files) {
    TRY_STATUS(WriteFileWhole(request.folder + "/" + one.name, one.contents));
    advice.files->push_back(one.name);
  }
  return {};
}

using Complete = std::function<void(const Decision&, results::AdviceResult&)>;

// `complete` adds to the advice what a search or the accelerators found.
Result<AdviseEnd> Finish(const AdviseRequest& request, const Material& material, const Goal& goal,
                         const TextStyle& style, const Complete& complete) {
  const Decision decision = Decide(material.design, material.played, goal, material.ends);
  AdviseEnd end{.advice = MakeAdvice(decision, material.design, goal), .has_best = decision.best.has_value()};
  results::AdviceResult& advice = end.advice;
  complete(decision, advice);
  end.text = AdviceText(style, advice) + HardwareText(advice.hardware);
  if (request.folder.empty()) return end;
  TRY_STATUS(MakeFolders(request.folder));
  advice.files.emplace();
  if (decision.best)
    TRY_STATUS(WriteFiles(request, material, decision.candidates[*decision.best], advice, end.text));
  TRY_STATUS(WriteFileWhole(request.folder + "/advice.json", DumpJsonIndented(advice.ToJson()) + "\n"));
  end.text += fmt::format("files: {}\n", EscapeBytes(request.folder));
  return end;
}

// A search is never longer than the study itself, with four repeats at least.
int64_t MostTrials(const study::StudyFile& file, const study::Design& design) {
  constexpr int kLeastRepeats = 4;
  return std::ssize(design.configurations) * std::max(kLeastRepeats, file.repeats);
}

// A search with new trials: the study file, and the means to play it.
struct Stage {
  const AdviseRequest& request;
  study::StudyFile file;
  Goal goal;
  trial::TrialRunner::Options runner;
  const TextStyle& style;
  const Clock& clock;
  const std::stop_token& stop;
  const trial::StudyHooks& hooks;
  SearchTrials trials;

  study::TrialFn PlayerOf(const study::StudyFile& study, const study::Design& design) const {
    auto made = std::make_shared<trial::TrialRunner>(runner, study, design, clock);
    return [made](const study::Trial& trial) { return made->Play(trial); };
  }
  std::string Find(const std::string& name) const { return trial::FindBeside(name, runner.study_folder); }
  std::function<void(const SearchProgress&)> Progress() const {
    return [this, begin = clock.Now()](const SearchProgress& progress) {
      hooks.progress(Seconds(clock.Now() - begin), progress.trials, 0,
                     fmt::format(", {}: {}", ToString(progress.phase), progress.label));
    };
  }
};

Result<AdviseEnd> Search(Stage& stage, const study::Design& design) {
  const SearchRun run =
      TRY(RunSearch({.design = design,
                     .goal = stage.goal,
                     .play = stage.PlayerOf(stage.file, design),
                     .trials = stage.trials,
                     .progress = stage.Progress(),
                     .stop = stage.stop,
                     .options = {.most_trials = MostTrials(stage.file, design), .seed = stage.file.seed}}));
  stage.hooks.progress_ended();
  if (!run.answer) return AdviseEnd{.interrupted = true};
  const Material material{.file = stage.file,
                          .design = design,
                          .played = run.confirmation.empty() ? run.exploration : run.confirmation,
                          .find = [&](const std::string& name) { return stage.Find(name); }};
  return Finish(stage.request, material, stage.goal, stage.style,
                [&](const auto&, results::AdviceResult& advice) {
                  advice.search = {.trials = std::ssize(run.exploration) + std::ssize(run.confirmation),
                                   .exploration_trials = std::ssize(run.exploration),
                                   .confirmation_trials = std::ssize(run.confirmation),
                                   .full_factorial_trials = std::ssize(design.trials),
                                   .ending = std::string(ToString(run.answer->ending))};
                });
}

// A price of what the study does not have would say nothing. `asked`: accelerators of --hardware, which have
// names of their own.
Status CheckPriceNames(const AdviseRequest& request, const study::Design& design,
                       const std::vector<std::string>& asked) {
  std::vector<std::string> known = asked;
  for (const study::Configuration& one : design.configurations) {
    for (const std::string& name : PricedNames(one.factors)) {
      if (std::ranges::find(known, name) == known.end()) known.push_back(name);
    }
  }
  for (const std::string& text : request.prices) {
    const std::string name = TRY(ParsePrice(text)).first;
    if (std::ranges::find(known, name) != known.end()) continue;
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--price {}: the study has no architecture or accelerator \"{}\": it has {}",
                            EscapeBytes(text), EscapeBytes(name), fmt::join(known, ", ")));
  }
  return {};
}

Result<AdviseEnd> CompareHardware(Stage& stage, const study::Design& design) {
  const auto find = [&](const std::string& name) { return stage.Find(name); };
  std::vector<std::string> notes;
  const auto accelerators =
      ReadAccelerators(stage.request.accelerators, design, stage.goal.price_per_hour, find, notes);
  for (const std::string& note : notes) stage.hooks.note(note);
  if (!accelerators) return std::unexpected(accelerators.error());
  std::vector<std::string> names = SplitAtCommas(stage.request.accelerators.names);
  for (const Accelerator& one : *accelerators) names.push_back(one.name);
  TRY_STATUS(CheckPriceNames(stage.request, design, names));
  const HardwareRun run = TRY(
      RunHardware({.file = stage.file,
                   .goal = stage.goal,
                   .accelerators = *accelerators,
                   .player = [&](const auto& study, const auto& made) { return stage.PlayerOf(study, made); },
                   .trials = stage.trials,
                   .progress = stage.Progress(),
                   .stop = stage.stop}));
  stage.hooks.progress_ended();
  if (run.stopped) return AdviseEnd{.interrupted = true};
  const Material material{
      .file = stage.file, .design = run.design, .played = run.played, .find = find, .ends = run.ends};
  return Finish(stage.request, material, run.goal, stage.style,
                [&](const Decision& decision, results::AdviceResult& advice) {
                  advice.hardware = JudgeHardware(run, *accelerators, decision);
                  advice.search = {.trials = run.search_trials + std::ssize(run.played),
                                   .exploration_trials = run.search_trials,
                                   .confirmation_trials = std::ssize(run.played),
                                   .full_factorial_trials = run.full_factorial_trials,
                                   .ending = "each accelerator"};
                });
}

// Opens the journal of the search in the request's folder.
Result<SearchTrials> OpenTrials(const AdviseRequest& request, const study::StudyFile& file,
                                const study::Design& design, const trial::TrialRunner::Options& runner,
                                const Clock& clock) {
  std::error_code error;
  if (request.resume && !std::filesystem::is_directory(request.folder, error))
    return Fail(ErrorCode::kNotFound,
                fmt::format("{}: there is no search to resume; leave out --resume to begin one",
                            EscapeBytes(request.folder)));
  TRY_STATUS(MakeFolders(request.folder));
  trial::TrialRunner materials(runner, file, design, clock);
  const study::Header header{
      .study = file.ToJson(),
      .provenance = TRY(trial::CollectStudyProvenance(request.command, file.seed, materials))};
  return SearchTrials::Open(request.folder + "/" + kSearchJournal, header,
                            request.resume ? study::Begin::kResume : study::Begin::kNew, clock);
}

// A target on a percentile asks each trial for the response times that it needs.
Result<AdviseEnd> FromFile(const AdviseRequest& request, const TextStyle& style, const Clock& clock,
                           const std::stop_token& stop, const trial::StudyHooks& hooks) {
  if (request.folder.empty())
    return Fail(ErrorCode::kInvalidArgument, "-o DIR: a search wants a folder for its data and its advice");
  const std::string& path = request.source;
  study::StudyFile file = TRY_CONTEXT(study::ParseStudy(TRY(ReadTextFile(path))), path);
  Goal goal = TRY(GoalOf(request, file.targets));
  file.trial.responses = std::max(file.trial.responses, ResponsesFor(goal));
  const study::Design design = TRY_CONTEXT(study::MakeDesign(file), path);
  if (request.accelerators.names.empty()) TRY_STATUS(CheckPriceNames(request, design, {}));
  const auto runner = TRY(trial::MakeRunnerOptions(request.folder, request.image, path));
  for (const std::string& line : launch::RemoveOrphans(clock)) hooks.note(line);
  SearchTrials trials = TRY(OpenTrials(request, file, design, runner, clock));
  if (trials.known() > 0)
    hooks.note(fmt::format("{} are in the journal already", Count(trials.known(), "trial")));
  Stage stage{.request = request,
              .file = std::move(file),
              .goal = std::move(goal),
              .runner = runner,
              .style = style,
              .clock = clock,
              .stop = stop,
              .hooks = hooks,
              .trials = std::move(trials)};
  AdviseEnd end =
      TRY(request.accelerators.names.empty() ? Search(stage, design) : CompareHardware(stage, design));
  if (end.interrupted)
    hooks.note(
        fmt::format("stopped; the same command with --resume continues in {}", EscapeBytes(request.folder)));
  return end;
}

// Models and repositories lie where the study found them.
Result<AdviseEnd> FromStudy(const AdviseRequest& request, const TextStyle& style) {
  const trial::StoredStudy stored = TRY(trial::ReadStoredStudy(request.source));
  const Goal goal = TRY(GoalOf(request, stored.file.targets));
  TRY_STATUS(CheckPriceNames(request, stored.design, {}));
  results::StudyProvenance::Paths paths;
  if (auto provenance = results::StudyProvenance::FromJson(stored.journal.header.provenance))
    paths = std::move(provenance->resolved);
  const auto find = [&paths](const std::string& name) {
    for (const auto* known : {&paths.models, &paths.repositories}) {
      if (const auto found = known->find(EscapeBytes(name)); found != known->end()) return found->second;
    }
    return name;
  };
  const Material material{
      .file = stored.file, .design = stored.design, .played = stored.journal.played, .find = find};
  return Finish(request, material, goal, style, [](const auto&, const auto&) {});
}

}  // namespace

Result<Goal> GoalOf(const AdviseRequest& request, const study::Targets& study) {
  Goal goal{.rate = request.rate, .objective = request.objective, .price_per_hour = study.price_per_hour};
  for (const std::string& text : request.targets) goal.targets.push_back(TRY(ParseTarget(text)));
  if (request.targets.empty() && study.p99_ms)
    goal.targets.push_back(TRY(ParseTarget(fmt::format("p99<{}ms", *study.p99_ms))));
  for (const std::string& text : request.prices) {
    const auto [name, price] = TRY(ParsePrice(text));
    goal.price_per_hour[name] = price;
  }
  return goal;
}

Result<AdviseEnd> Advise(const AdviseRequest& request, const TextStyle& style, const Clock& clock,
                         const std::stop_token& stop, const trial::StudyHooks& hooks) {
  TRY_STATUS(CheckAskedAccelerators(request.accelerators));
  std::error_code error;
  if (!std::filesystem::is_directory(request.source, error))
    return FromFile(request, style, clock, stop, hooks);
  if (request.resume)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--resume continues a search: {} is a study, which weir study --resume continues",
                            EscapeBytes(request.source)));
  if (!request.accelerators.names.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--hardware plays new trials: give the study file, as in weir advise {}/{}",
                            request.source, trial::kStudyFile));
  return FromStudy(request, style);
}

}  // namespace weir::advise
