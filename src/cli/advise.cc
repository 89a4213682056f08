#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "advise/decision.h"
#include "advise/files.h"
#include "advise/goal.h"
#include "advise/run_search.h"
#include "base/file.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "launch/process/orphans.h"
#include "trial/study_folder.h"
#include "trial/trial_runner.h"

namespace weir::cli {
namespace {

struct Options {
  std::string source, folder, objective = "throughput", image = "localhost/weir", json;
  std::vector<std::string> targets, prices;
  double rate = 0;
  bool rate_given = false;
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
             "folder for advice.json and the files (default: none are written)");
  flags.Repeated("--target", options.targets, "a limit, as in p99<15ms, throughput>400 or memory<2GB");
  flags.Number("--rate", options.rate, 0.001, 1e9, "images/s that all instances together must answer");
  flags.Choice("--objective", options.objective, {"cost", "throughput", "memory"},
               "quantity to optimise among the configurations that meet the targets (default throughput)");
  flags.Repeated("--price", options.prices,
                 "NAME=VALUE: price per hour of an architecture or accelerator, instead of the study's");
  flags.Text("--image", options.image, "container image of weir's server (default localhost/weir)");
  flags.Text("--json", options.json, "write the result as JSON to this file; - for standard output");
  const auto status = flags.Parse(arguments);
  const auto given = flags.Given();
  options.rate_given = std::ranges::find(given, "--rate") != given.end();
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

// Returns the greatest value of a metric over a configuration's trials; nullopt where it was not measured.
std::optional<double> GreatestOf(const std::vector<study::PlayedTrials>& played, size_t configuration,
                                 const Json::json_pointer& metric) {
  std::optional<double> greatest;
  for (const study::PlayedTrials& one : played) {
    const Json& metrics = one.record.metrics;
    if (one.trial.configuration != configuration || !metrics.contains(metric) || !metrics[metric].is_number())
      continue;
    greatest = std::max(greatest.value_or(0), metrics[metric].get<double>());
  }
  return greatest;
}

Result<std::vector<advise::AdviceFile>> FilesOf(const Options& options, const study::StudyFile& file,
                                                const study::Design& design,
                                                const std::vector<study::PlayedTrials>& played,
                                                const advise::Candidate& best) {
  const Json& factors = design.configurations[best.configuration].factors;
  std::string model;
  const Json& named = factors.contains("model") ? factors["model"] : Json();
  if (named.is_string()) model = named.get<std::string>();
  for (const study::FactorLevels& one : file.fixed) {
    if (model.empty() && one.factor == "model" && one.levels[0].is_string()) model = one.levels[0];
  }
  const std::filesystem::path path(model);
  return advise::MakeFiles(
      {.factors = factors,
       .model = path.extension() == ".onnx" ? path.stem().string() : path.filename().string(),
       .image = options.image,
       .replicas = best.instances.value_or(1),
       .server_cores =
           GreatestOf(played, best.configuration, Json::json_pointer("/server_resources/app_cpu/max")),
       .memory_bytes = GreatestOf(played, best.configuration,
                                  Json::json_pointer("/resources/container_memory_bytes/max"))});
}

Result<int> Finish(const Options& options, const study::StudyFile& file, const study::Design& design,
                   const std::vector<study::PlayedTrials>& played, const advise::Goal& goal,
                   const Console& console, std::optional<results::AdviceResult::Search> search) {
  const advise::Decision decision = advise::Decide(design, played, goal);
  results::AdviceResult advice = advise::MakeAdvice(decision, design, goal);
  advice.search = std::move(search);
  std::string text = advise::AdviceText(console.style(), advice);
  if (!options.folder.empty()) {
    TRY_STATUS(MakeFolders(options.folder));
    advice.files.emplace();
    if (decision.best) {
      const auto files = FilesOf(options, file, design, played, decision.candidates[*decision.best]);
      if (!files) {
        text += "note: " + files.error().message + "\n";
      } else {
        for (const advise::AdviceFile& one : *files) {
          TRY_STATUS(WriteFileWhole(options.folder + "/" + one.name, one.contents));
          advice.files->push_back(one.name);
        }
      }
    }
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

Result<int> FromFile(const Options& options, const std::stop_token& stop, Console& console) {
  const SteadyClock clock;
  const study::StudyFile file =
      TRY_CONTEXT(study::ParseStudy(TRY(ReadTextFile(options.source))), options.source);
  const study::Design design = TRY_CONTEXT(study::MakeDesign(file), options.source);
  const advise::Goal goal = TRY(ReadGoal(options, file.targets));
  if (options.folder.empty())
    return Fail(ErrorCode::kInvalidArgument, "-o DIR: a search wants a folder for its data and its advice");
  for (const std::string& line : launch::RemoveOrphans(clock)) console.Note(line);
  TRY_STATUS(MakeFolders(options.folder));
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return FailErrno("/proc/self/exe", error.value());
  const std::string absolute = std::filesystem::absolute(options.folder, error).string();
  if (error) return FailErrno(options.folder, error.value());
  trial::TrialRunner runner({.program = program,
                             .folder = absolute + "/work",
                             .image = options.image,
                             .study_folder = std::filesystem::path(options.source).parent_path().string()},
                            file, design, clock);
  const Instant begin = clock.Now();
  const advise::SearchRun run =
      TRY(advise::RunSearch({.design = design,
                             .goal = goal,
                             .play = [&](const study::Trial& trial) { return runner.Play(trial); },
                             .progress =
                                 [&](const advise::SearchProgress& progress) {
                                   console.Progress(
                                       Seconds(clock.Now() - begin), "trials", progress.trials, 0,
                                       fmt::format(", {}: {}", ToString(progress.phase), progress.label));
                                 },
                             .stop = stop,
                             .options = {.most_trials = MostTrials(file, design), .seed = file.seed}}));
  console.EndProgress();
  if (!run.answer) return kInterrupted;
  const bool confirmed = !run.confirmation.empty();
  return Finish(
      options, file, design, confirmed ? run.confirmation : run.exploration, goal, console,
      results::AdviceResult::Search{.trials = std::ssize(run.exploration) + std::ssize(run.confirmation),
                                    .exploration_trials = std::ssize(run.exploration),
                                    .confirmation_trials = std::ssize(run.confirmation),
                                    .full_factorial_trials = std::ssize(design.trials),
                                    .ending = std::string(ToString(run.answer->ending))});
}

Result<int> RunAdvise(const Options& options, const std::stop_token& stop) {
  Console console(options.json);
  TRY_STATUS(console.CheckJson());
  std::error_code error;
  if (!std::filesystem::is_directory(options.source, error)) return FromFile(options, stop, console);
  const trial::StoredStudy stored = TRY(trial::ReadStoredStudy(options.source));
  const advise::Goal goal = TRY(ReadGoal(options, stored.file.targets));
  return Finish(options, stored.file, stored.design, stored.journal.played, goal, console, std::nullopt);
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
