#include <algorithm>
#include <optional>

#include "advise/session.h"
#include "cli/flags.h"
#include "cli/run_verb.h"

namespace weir::cli {
namespace {

struct Wanted {
  advise::AdviseRequest request;
  std::string json;
};

std::optional<int> ParseFlags(const Arguments& arguments, Wanted& w) {
  advise::AdviseRequest& request = w.request;
  request.command = CommandLine();
  Flags flags(
      "advise",
      "Names the configuration that meets a target best, with the evidence, and writes the files that "
      "use it.",
      "weir advise quick --target \"p99<15ms\" --rate 400 -o advice");
  flags.Required("SOURCE", request.source,
                 "a study's folder, or a study file whose configurations are searched by new trials");
  flags.Text("-o,--output", request.folder,
             "folder for advice.json, the files and a search's journal (default: none are written)");
  flags.Switch("--resume", request.resume, "continue the search in the folder of -o");
  flags.Repeated("--target", request.targets, "a limit, as in p99<15ms, throughput>400 or memory<2GB");
  flags.Number("--rate", request.rate, 0.001, 1e9, "images/s that all instances together must answer");
  using enum advise::Objective;
  flags.OneOf("--objective", request.objective, {kCost, kThroughput, kMemory},
              "quantity to optimise among the configurations that meet the targets");
  flags.Repeated("--price", request.prices,
                 "NAME=VALUE: price per hour of an architecture or accelerator, instead of the study's");
  flags.Text("--hardware", request.accelerators.names,
             "A,B: accelerators as --predictor describes them, before the data path of the study");
  flags.Text("--predictor", request.accelerators.predictor, "file of weir fit, for --hardware");
  flags.Text("--network", request.accelerators.network,
             "name in the predictor's network table, or an ONNX file (default: the study's model)");
  flags.Texts("--set", request.accelerators.set, "further columns of the predictor: column=value", false);
  flags.Text("--image", request.image, "container image of the server");
  flags.Text("--json", w.json, "write the result as JSON to this file; - for standard output");
  const auto status = flags.Parse(arguments);
  const auto given = flags.Given();
  request.image_given = std::ranges::find(given, "--image") != given.end();
  return status;
}

Result<int> AdviseWith(const Wanted& w, const std::stop_token& stop) {
  Console console(w.json);
  TRY_STATUS(console.CheckJson());
  const SteadyClock clock;
  const auto hooks = HooksOf<trial::StudyHooks>(console, "trials");
  const advise::AdviseEnd end = TRY(advise::Advise(w.request, console.style(), clock, stop, hooks));
  if (end.interrupted) return kInterrupted;
  console.Text(end.text);
  TRY_STATUS(console.Json(end.advice.ToJson()));
  return end.has_best ? kDone : kClaimInvalid;
}

}  // namespace

int Advise(const Arguments& arguments) { return RunVerb<Wanted>(arguments, ParseFlags, AdviseWith); }

}  // namespace weir::cli
