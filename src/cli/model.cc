#include <fmt/format.h>

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "model/show.h"
#include "record/provenance.h"
#include "synth/synth.h"

namespace weir::cli {
namespace {

Result<int> Show(const Arguments& arguments) {
  std::string path, json;
  std::vector<std::string> allow_links;
  Flags flags("model show", "Shows inputs, outputs and size of a model file. Starts no engine.",
              "weir model show made/resnet50");
  flags.Required("MODEL", path, ".onnx file or model folder");
  flags.Repeated("--allow-link", allow_links,
                 "Folder that links in the model's folder may lead below. May be given again.");
  flags.Text("--json", json, "write the facts as JSON to this file; - for standard output");
  if (const auto status = flags.Parse(arguments)) return *status;
  Console console(json);
  const results::ModelFacts facts =
      TRY(model::DescribeModelWith(path, {.link_roots = TRY(model::LinkRoots(allow_links))}));
  console.Text(model::FactsText(console.style(), path, facts));
  TRY_STATUS(console.Json(facts.ToJson()));
  return kDone;
}

Result<int> Make(const Arguments& arguments, const std::stop_token& stop) {
  synth::MakeOptions options;
  std::string json;
  int64_t seed = 1;
  Flags flags("model make",
              "Makes a network of real shape and cost with synthetic weights. Its answers to made pictures "
              "are really right or wrong.",
              "weir model make resnet50 -o made");
  flags.Required("NAME", options.name,
                 "network: resnet18, resnet34, resnet50, resnet101, resnet152, tiny or identity");
  flags.Required("-o,--output", options.out_dir, "folder in which the model's folder is made");
  flags.Integer64("--seed", seed, 0, INT64_MAX, "seed of the weights");
  flags.Text("--engine", options.engine, "engine that computes the features for the fit of the last layer");
  flags.Switch("--overwrite", options.overwrite, "replace a model of that name");
  flags.Text("--json", json, "write the result as JSON to this file; - for standard output");
  if (const auto status = flags.Parse(arguments)) return *status;
  Console console(json);
  TRY_STATUS(console.CheckJson());
  const SteadyClock clock;
  options.seed = Seed(static_cast<uint64_t>(seed));
  options.stop = stop;
  const Instant begin = clock.Now();
  options.progress = [&](int64_t done, int64_t total) {
    console.Progress(Seconds(clock.Now() - begin), "fit", done, total, " pictures");
  };
  const auto made = synth::MakeModel(options, clock);
  console.EndProgress();
  if (!made) return std::unexpected(made.error());
  console.Text(synth::MadeText(*made));
  const results::ModelMakeResult result{.folder = EscapeBytes(made->folder),
                                        .model_bytes = made->model_bytes,
                                        .classes = made->classes,
                                        .pictures = made->pictures,
                                        .expected_accuracy = made->expected_accuracy,
                                        .wall_s = Seconds(made->wall),
                                        .seed = seed,
                                        .command = record::CommandLine(CommandLine())};
  TRY_STATUS(console.Json(result.ToJson()));
  return kDone;
}

}  // namespace

int ModelVerb(const Arguments& arguments) {
  const std::string which = arguments.empty() ? "" : arguments.front();
  if (which != "make" && which != "show") {
    const bool help = which == "--help" || which == "-h";
    fmt::print(help ? stdout : stderr,
               "weir model make NAME -o DIR   makes a network with a fitted last layer\n"
               "weir model show MODEL         says what a model file says of itself\n"
               "Example:\n  weir model make tiny -o made && weir model show made/tiny\n");
    return help ? kDone : kBadInput;
  }
  const Arguments rest(arguments.begin() + 1, arguments.end());
  const Interrupt interrupt;
  const Result<int> status = which == "make" ? Make(rest, interrupt.token()) : Show(rest);
  return status ? *status : FailWith(status.error());
}

}  // namespace weir::cli
