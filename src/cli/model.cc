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

std::string Figure(const std::optional<int64_t>& figure, double scale, const char* unit) {
  if (!figure) return "not known";
  return fmt::format("{}{}", Short(static_cast<double>(*figure) * scale), unit);
}

std::string Whole(const std::optional<int64_t>& figure) { return figure ? Count(*figure) : "not known"; }

std::string TensorLines(const std::vector<results::Tensor>& tensors, const char* what) {
  std::string text;
  for (const auto& tensor : tensors) {
    text += fmt::format("  {:<8} {}  {} [{}]\n", what, tensor.name, tensor.datatype,
                        fmt::join(tensor.shape, ","));
  }
  return text;
}

Result<int> Show(const Arguments& arguments) {
  std::string path, json;
  Flags flags("model show", "Says what a model file says of itself; starts no engine.",
              "weir model show made/resnet50");
  flags.Required("MODEL", path, "an .onnx file or a model folder");
  flags.Text("--json", json, "write the facts as JSON to this file; - for standard output");
  if (const auto status = flags.Parse(arguments)) return *status;
  Console console(json);
  const results::ModelFacts facts = TRY(model::DescribeModel(path));
  std::string text =
      console.Bold(path) + "\n" + TensorLines(facts.inputs, "inputs") + TensorLines(facts.outputs, "outputs");
  text += fmt::format("  parameters      {}\n", Figure(facts.parameters, 1e-6, " million"));
  text +=
      fmt::format("  multiply-adds   {} an item\n", Figure(facts.multiply_adds_per_item, 1e-6, " million"));
  text += fmt::format("  activations     {} an item\n", Figure(facts.activations_per_item, 1e-6, " million"));
  text += fmt::format("  depth           {} weight layers, {} inner modules\n", Whole(facts.depth),
                      Whole(facts.inner_modules));
  text += fmt::format("  batchable       {}\n",
                      facts.not_batchable.empty() ? "yes" : "no: " + facts.not_batchable);
  text += fmt::format("  file            {}\n", Figure(facts.file_bytes, 1e-6, " MB"));
  console.Text(text);
  TRY_STATUS(console.Json(facts.ToJson()));
  return kDone;
}

Result<int> Make(const Arguments& arguments, const std::stop_token& stop) {
  synth::MakeOptions options;
  std::string json;
  int64_t seed = 1;
  Flags flags("model make",
              "Makes a network of true shape and work with synthetic weights, whose answers to made pictures "
              "are really right or wrong.",
              "weir model make resnet50 -o made");
  flags.Required("NAME", options.name,
                 "resnet18, resnet34, resnet50, resnet101, resnet152, tiny or identity");
  flags.Required("-o,--output", options.out_dir, "the folder that gets the model's folder");
  flags.Integer64("--seed", seed, 0, INT64_MAX, "of the weights");
  flags.Text("--engine", options.engine, "computes the features that the last layer is fitted to");
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
  std::string text = fmt::format("{}: {} in {:.1f} s", EscapeBytes(made->folder),
                                 Size(static_cast<double>(made->model_bytes)), Seconds(made->wall));
  if (made->classes > 0) {
    text += fmt::format("; {} classes, the last layer fitted to {} made pictures", made->classes,
                        Count(made->pictures));
  }
  if (made->expected_accuracy)
    text += fmt::format(", about {:.1f} % of fresh ones right", 100 * *made->expected_accuracy);
  console.Text(text + "\n");
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
