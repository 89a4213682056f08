#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "advise/advice_files.h"
#include "advise/decision.h"
#include "advise/goal.h"
#include "advise/hardware.h"
#include "advise/run_search.h"
#include "advise/search_trials.h"
#include "base/file.h"
#include "cli/accelerators.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "launch/process/orphans.h"
#include "results/study_provenance.h"
#include "trial/places.h"
#include "trial/study_folder.h"
#include "trial/study_session.h"
#include "trial/trial_runner.h"

namespace weir::cli {
namespace {

struct Options {
  std::string source, folder, objective = "throughput", image = "localhost/weir", json;
  std::vector<std::string> targets, prices;
  AskedAccelerators accelerators;
  double rate = 0;
  bool rate_given = false, image_given = false, resume = false;
};

std::optional<int> ParseFlags(const Arguments& arguments, Options& options) {
  Flags flags(
      "advise",
      "Names the configuration that meets a target best, with the evidence, and writes the files that "
      "use it.",
      "weir advise quick --target \"p99<15ms\" --rate 400 -o advice");
  flags.Required("SOURCE", options.source,
                 "a study's folder, or a study file whose configurations are searched by new trials");
  flags.Text("-o,--output", options.folder,
             "folder for advice.json, the files and a search's journal (default: none are written)");
  flags.Switch("--resume", options.resume, "continue the search in the folder of -o");
  flags.Repeated("--target", options.targets, "a limit, as in p99<15ms, throughput>400 or memory<2GB");
  flags.Number("--rate", options.rate, 0.001, 1e9, "images/s that all instances together must answer");
  flags.Choice("--objective", options.objective, {"cost", "throughput", "memory"},
               "quantity to optimise among the configurations that meet the targets (default throughput)");
  flags.Repeated("--price", options.prices,
                 "NAME=VALUE: price per hour of an architecture or accelerator, instead of the study's");
  flags.Text("--hardware", options.accelerators.names,
             "A,B: accelerators as --predictor describes them, before the data path of the study");
  flags.Text("--predictor", options.accelerators.predictor, "file of weir fit, for --hardware");
  flags.Text("--network", options.accelerators.network,
             "name in the predictor's network table, or an ONNX file (default: the study's model)");
  flags.Texts("--set", options.accelerators.set, "further columns of the predictor: column=value", false);
  flags.Text("--image", options.image, "container image of the server (default localhost/weir)");
  flags.Text("--json", options.json, "write the result as JSON to this file; - for standard output");
  const auto status = flags.Parse(arguments);
  const auto given = flags.Given();
  options.rate_given = std::ranges::find(given, "--rate") != given.end();
  options.image_given = std::ranges::find(given, "--image") != given.end();
  return status;
}

Result<advise::Goal> ReadGoal(const Options& options, const study::Targets& study) {
  advise::Goal goal{.objective = TRY(advise::ParseObjective(options.objective)),
                    .price_per_hour = study.price_per_hour};
  for (const std::string& text : options.targets) goal.targets.push_back(TRY(advise::ParseTarget(text)));
  if (options.targets.empty() && study.p99_ms)
    goal.targets.push_back(TRY(advise::ParseTarget(fmt::format("p99<{}ms", *study.p99_ms))));
  if (options.rate_given) goal.rate = options.rate;
  for (const std::string& text : options.prices) {
    const auto [name, price] = TRY(advise::ParsePrice(text));
    goal.price_per_hour[name] = price;
  }
  return goal;
}

// The grounds of a decision, and the places of what they name.
struct Material {
  const study::StudyFile& file;
  const study::Design& design;
  const std::vector<study::PlayedTrials>& played;
  std::function<std::string(const std::string&)> find;
  std::vector<advise::PredictedEnds> ends = {};  // empty without --hardware
};

// Writes the files of the best configuration, and lists them in `advice`.
Status WriteFiles(const Options& options, const Material& material, const advise::Candidate& best,
                  results::AdviceResult& advice, std::string& text) {
  const advise::AdviceFilesInput input{.file = material.file,
                                       .design = material.design,
                                       .played = material.played,
                                       .best = best,
                                       .image = options.image_given ? options.image : "",
                                       .find = material.find,
                                       .predicted = !material.ends.empty()};
  auto files = advise::MakeAdviceFiles(input);
  if (!files) {
    text += "note: no files are written: " + files.error().message + "\n";
    return {};
  }
  files->push_back(
      {.name = "README.md", .contents = advise::AdviceReadme(advice, advise::ModelName(input), *files)});
  for (const advise::AdviceFile& one : *files) {
    TRY_STATUS(WriteFileWhole(options.folder + "/" + one.name, one.contents));
    advice.files->push_back(one.name);
  }
  return {};
}

// `complete` adds to the advice what a search or the accelerators found.
Result<int> Finish(const Options& options, const Material& material, const advise::Goal& goal,
                   const Console& console,
                   const std::function<void(const advise::Decision&, results::AdviceResult&)>& complete) {
  const advise::Decision decision = advise::Decide(material.design, material.played, goal, material.ends);
  results::AdviceResult advice = advise::MakeAdvice(decision, material.design, goal);
  complete(decision, advice);
  std::string text = advise::AdviceText(console.style(), advice) + advise::HardwareText(advice.hardware);
  if (!options.folder.empty()) {
    TRY_STATUS(MakeFolders(options.folder));
    advice.files.emplace();
    if (decision.best)
      TRY_STATUS(WriteFiles(options, material, decision.candidates[*decision.best], advice, text));
    TRY_STATUS(WriteFileWhole(options.folder + "/advice.json", DumpJsonIndented(advice.ToJson()) + "\n"));
    text += fmt::format("files: {}\n", EscapeBytes(options.folder));
  }
  console.Text(text);
  TRY_STATUS(console.Json(advice.ToJson()));
  return decision.best ? kDone : kClaimInvalid;
}

// A search is never longer than the study itself, with four repeats at least.
int64_t MostTrials(const study::StudyFile& file, const study::Design& design) {
  constexpr int kLeastRepeats = 4;
  return std::ssize(design.configurations) * std::max(kLeastRepeats, file.repeats);
}

// The study file of a search, and the means to play its trials.
struct Stage {
  study::StudyFile file;
  std::string beside;  // the folder of the study file
  trial::TrialRunner::Options runner;
  const Clock& clock;
  advise::SearchTrials trials;

  study::TrialFn PlayerOf(const study::StudyFile& study, const study::Design& design) const {
    auto made = std::make_shared<trial::TrialRunner>(runner, study, design, clock);
    return [made](const study::Trial& trial) { return made->Play(trial); };
  }
  std::string Find(const std::string& name) const { return trial::FindBeside(name, beside); }
};

// Opens the journal of the search in the folder of -o.
Result<advise::SearchTrials> OpenTrials(const Options& options, const study::StudyFile& file,
                                        const study::Design& design,
                                        const trial::TrialRunner::Options& runner, const Clock& clock) {
  std::error_code error;
  if (options.resume && !std::filesystem::is_directory(options.folder, error))
    return Fail(ErrorCode::kNotFound,
                fmt::format("{}: there is no search to resume; leave out --resume to begin one",
                            EscapeBytes(options.folder)));
  TRY_STATUS(MakeFolders(options.folder));
  trial::TrialRunner materials(runner, file, design, clock);
  const study::Header header{
      .study = file.ToJson(),
      .provenance = TRY(trial::CollectStudyProvenance(CommandLine(), file.seed, materials))};
  return advise::SearchTrials::Open(options.folder + "/" + advise::kSearchJournal, header,
                                    options.resume ? study::Begin::kResume : study::Begin::kNew, clock);
}

std::function<void(const advise::SearchProgress&)> ProgressOf(Console& console, const Clock& clock) {
  return [&console, &clock, begin = clock.Now()](const advise::SearchProgress& progress) {
    console.Progress(Seconds(clock.Now() - begin), "trials", progress.trials, 0,
                     fmt::format(", {}: {}", ToString(progress.phase), progress.label));
  };
}

Result<int> Search(const Options& options, Stage& stage, const study::Design& design,
                   const advise::Goal& goal, const std::stop_token& stop, Console& console) {
  const advise::SearchRun run = TRY(advise::RunSearch(
      {.design = design,
       .goal = goal,
       .play = stage.PlayerOf(stage.file, design),
       .trials = stage.trials,
       .progress = ProgressOf(console, stage.clock),
       .stop = stop,
       .options = {.most_trials = MostTrials(stage.file, design), .seed = stage.file.seed}}));
  console.EndProgress();
  if (!run.answer) return kInterrupted;
  const Material material{.file = stage.file,
                          .design = design,
                          .played = run.confirmation.empty() ? run.exploration : run.confirmation,
                          .find = [&](const std::string& name) { return stage.Find(name); }};
  return Finish(options, material, goal, console, [&](const auto&, results::AdviceResult& advice) {
    advice.search = {.trials = std::ssize(run.exploration) + std::ssize(run.confirmation),
                     .exploration_trials = std::ssize(run.exploration),
                     .confirmation_trials = std::ssize(run.confirmation),
                     .full_factorial_trials = std::ssize(design.trials),
                     .ending = std::string(ToString(run.answer->ending))};
  });
}

Result<int> CompareHardware(const Options& options, Stage& stage, const study::Design& design,
                            const advise::Goal& goal, const std::stop_token& stop, Console& console) {
  const auto accelerators = TRY(ReadAccelerators(
      options.accelerators, design, goal.price_per_hour,
      [&](const std::string& name) { return stage.Find(name); }, console));
  const advise::HardwareRun run = TRY(advise::RunHardware(
      {.file = stage.file,
       .goal = goal,
       .accelerators = accelerators,
       .player = [&](const auto& study, const auto& made) { return stage.PlayerOf(study, made); },
       .trials = stage.trials,
       .progress = ProgressOf(console, stage.clock),
       .stop = stop}));
  console.EndProgress();
  if (run.stopped) return kInterrupted;
  const Material material{.file = stage.file,
                          .design = run.design,
                          .played = run.played,
                          .find = [&](const std::string& name) { return stage.Find(name); },
                          .ends = run.ends};
  return Finish(options, material, run.goal, console,
                [&](const advise::Decision& decision, results::AdviceResult& advice) {
                  advice.hardware = advise::JudgeHardware(run, accelerators, decision);
                  advice.search = {.trials = run.search_trials + std::ssize(run.played),
                                   .exploration_trials = run.search_trials,
                                   .confirmation_trials = std::ssize(run.played),
                                   .full_factorial_trials = run.full_factorial_trials,
                                   .ending = "each accelerator"};
                });
}

Result<int> FromFile(const Options& options, const std::string& path, const std::stop_token& stop,
                     Console& console) {
  if (options.folder.empty())
    return Fail(ErrorCode::kInvalidArgument, "-o DIR: a search wants a folder for its data and its advice");
  const SteadyClock clock;
  study::StudyFile file = TRY_CONTEXT(study::ParseStudy(TRY(ReadTextFile(path))), path);
  const advise::Goal goal = TRY(ReadGoal(options, file.targets));
  file.trial.responses = std::max(file.trial.responses, advise::ResponsesFor(goal));
  const study::Design design = TRY_CONTEXT(study::MakeDesign(file), path);
  const auto runner = TRY(trial::MakeRunnerOptions(options.folder, options.image, path));
  for (const std::string& line : launch::RemoveOrphans(clock)) console.Note(line);
  advise::SearchTrials trials = TRY(OpenTrials(options, file, design, runner, clock));
  if (trials.known() > 0)
    console.Note(fmt::format("{} are in the journal already", Count(trials.known(), "trial")));
  Stage stage{.file = std::move(file),
              .beside = runner.study_folder,
              .runner = runner,
              .clock = clock,
              .trials = std::move(trials)};
  const int status =
      TRY(options.accelerators.names.empty() ? Search(options, stage, design, goal, stop, console)
                                             : CompareHardware(options, stage, design, goal, stop, console));
  if (status == kInterrupted)
    console.Note(
        fmt::format("stopped; the same command with --resume continues in {}", EscapeBytes(options.folder)));
  return status;
}

// Models and repositories lie where the study found them.
Result<int> FromStudy(const Options& options, const Console& console) {
  const trial::StoredStudy stored = TRY(trial::ReadStoredStudy(options.source));
  const advise::Goal goal = TRY(ReadGoal(options, stored.file.targets));
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
  return Finish(options, material, goal, console, [](const auto&, const auto&) {});
}

Result<int> RunAdvise(const Options& options, const std::stop_token& stop) {
  Console console(options.json);
  TRY_STATUS(console.CheckJson());
  TRY_STATUS(CheckAskedAccelerators(options.accelerators));
  std::error_code error;
  if (!std::filesystem::is_directory(options.source, error))
    return FromFile(options, options.source, stop, console);
  if (options.resume)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--resume continues a search: {} is a study, which weir study --resume continues",
                            EscapeBytes(options.source)));
  if (!options.accelerators.names.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--hardware plays new trials: give the study file, as in weir advise {}/{}",
                            options.source, trial::kStudyFile));
  return FromStudy(options, console);
}

}  // namespace

int Advise(const Arguments& arguments) {
  Options options;
  if (const auto status = ParseFlags(arguments, options)) return *status;
  const Interrupt interrupt;
  const Result<int> status = RunAdvise(options, interrupt.token());
  return status ? *status : FailWith(status.error());
}

}  // namespace weir::cli
