#include "synth/synth.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/count.h"
#include "base/file.h"
#include "base/json.h"
#include "dataset/recipe.h"
#include "infer/engine.h"
#include "synth/features.h"
#include "synth/fit.h"
#include "synth/graph.h"
#include "synth/networks.h"
#include "synth/pictures.h"
#include "synth/whole_folder.h"

namespace weir::synth {
namespace {

constexpr int kOutputs = 1000;
constexpr int kMaxPicturesPerClass = 200;  // the fit works on a square matrix of all pictures

dataset::Recipe RecipeOf(const std::string& name) {
  const dataset::Size size = InputSize(name);
  dataset::Recipe recipe;
  recipe.geometry.short_side = size.height * 8 / 7;  // 256 for 224, as ResNets are tested
  recipe.geometry.crop = size;
  recipe.input = "input";
  recipe.scale = 1 / 255.0;
  recipe.mean = {0.485, 0.456, 0.406};
  recipe.std = {0.229, 0.224, 0.225};
  recipe.output = "logits";
  recipe.softmax = true;
  recipe.labels = "labels.txt";
  return recipe;
}

std::string Labels() {
  std::string text;
  for (int k = 0; k < kOutputs; ++k)
    text += k < ClassCount() ? ClassName(k) + "\n" : fmt::format("unused {}\n", k);
  return text;
}

struct Port {
  std::string name;
  std::string dims;  // without the batch
};

std::string Configuration(const std::string& name, const Port& input, const Port& output) {
  const auto port = [](const char* kind, const Port& p, const char* more) {
    return fmt::format(
        "{} [\n  {{\n    name: \"{}\"\n    data_type: TYPE_FP32\n    dims: [ {} ]\n{}  }}\n]\n", kind, p.name,
        p.dims, more);
  };
  const bool labelled = output.name == "logits";
  return fmt::format("name: \"{}\"\nbackend: \"onnxruntime\"\nmax_batch_size: 128\n", name) +
         port("input", input, "") +
         port("output", output, labelled ? "    label_filename: \"labels.txt\"\n" : "");
}

// Gives the size of the file.
Result<uint64_t> WriteModel(const pb::ModelProto& model, const std::string& path) {
  std::string bytes;
  if (!model.SerializeToString(&bytes))
    return Fail(ErrorCode::kInternal, fmt::format("{}: cannot be serialised", path));
  TRY_STATUS(WriteFileWhole(path, bytes));
  return bytes.size();
}

// The features are computed by the network's own file with them as output, which is gone when this returns.
Result<LabelledFeatures> FeaturesOf(Network& network, const MakeOptions& options, const std::string& path,
                                    const Clock& clock) {
  network.graph.Output(network.features.value, std::array<int64_t, 2>{-1, network.features.channels});
  TRY_STATUS(WriteModel(network.graph.model(), path));
  network.graph.ClearOutputs();
  const std::unique_ptr<infer::Engine> engine = TRY(infer::OpenEngine(options.engine, clock));
  const auto session = TRY(engine->Load({.path = path, .inputs = {}, .outputs = {}}, {}));
  ::unlink(path.c_str());
  return ComputeFeatures(*session, {.recipe = RecipeOf(options.name),
                                    .seed = options.seed.Stream("fitting"),
                                    .pictures = int64_t{options.pictures_per_class} * ClassCount(),
                                    .stop = options.stop,
                                    .progress = options.progress});
}

Status FillIdentity(const std::string& folder, MadeModel& made) {
  constexpr std::array<int64_t, 2> kShape{-1, -1};
  GraphWriter graph("identity", Seed(0));
  graph.Input("input", kShape);
  graph.Identity("output", {"input", 0});
  graph.Output("output", kShape);
  made.model_bytes = TRY(WriteModel(graph.model(), folder + "/1/model.onnx"));
  return WriteFileWhole(folder + "/config.pbtxt",
                        Configuration("identity", {"input", "-1"}, {"output", "-1"}));
}

Status FillNetwork(const std::string& folder, const MakeOptions& options, const Clock& clock,
                   MadeModel& made) {
  const std::string model_path = folder + "/1/model.onnx";
  Network network = BuildNetwork(options.name, options.seed);
  const LabelledFeatures pictures = TRY(FeaturesOf(network, options, model_path, clock));
  const Head head =
      TRY(FitHead(pictures.features, pictures.labels, {.classes = ClassCount(), .outputs = kOutputs}));
  network.graph.Linear("logits", network.features, head.weights, head.bias);
  network.graph.Output("logits", std::array<int64_t, 2>{-1, kOutputs});

  made.model_bytes = TRY(WriteModel(network.graph.model(), model_path));
  made.classes = ClassCount();
  made.pictures = pictures.features.rows;
  made.expected_accuracy = head.left_out_accuracy;

  const dataset::Size size = InputSize(options.name);
  const std::string dims = fmt::format("3, {}, {}", size.height, size.width);
  TRY_STATUS(WriteFileWhole(folder + "/labels.txt", Labels()));
  TRY_STATUS(WriteFileWhole(folder + "/recipe.yaml", dataset::FormatRecipe(RecipeOf(options.name))));
  return WriteFileWhole(folder + "/config.pbtxt", Configuration(options.name, {"input", dims},
                                                                {"logits", fmt::format("{}", kOutputs)}));
}

}  // namespace

std::vector<std::string> ModelNames() {
  std::vector<std::string> names = NetworkNames();
  names.emplace_back("identity");
  return names;
}

Result<MadeModel> MakeModel(const MakeOptions& options, const Clock& clock) {
  const std::vector<std::string> names = ModelNames();
  if (std::ranges::find(names, options.name) == names.end()) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("no network '{}' can be made: choose {}", options.name, fmt::join(names, ", ")));
  }
  if (options.pictures_per_class < 2 || options.pictures_per_class > kMaxPicturesPerClass) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("pictures per class must be 2 to {}, not {}",
                                                         kMaxPicturesPerClass, options.pictures_per_class));
  }
  const Instant start = clock.Now();
  MadeModel made{.folder = fmt::format("{}/{}", options.out_dir, options.name)};
  const auto if_there = options.overwrite ? WholeFolder::IfThere::kReplace : WholeFolder::IfThere::kRefuse;
  WholeFolder folder = TRY(WholeFolder::Create(made.folder, if_there));
  TRY_STATUS(MakeFolders(folder.path() + "/1"));
  TRY_STATUS(options.name == "identity" ? FillIdentity(folder.path(), made)
                                        : FillNetwork(folder.path(), options, clock, made));
  TRY_STATUS(folder.Publish());
  made.wall = clock.Now() - start;
  return made;
}

std::string MadeText(const MadeModel& made) {
  std::string text = fmt::format("{}: {} in {:.1f} s", EscapeBytes(made.folder),
                                 Size(static_cast<double>(made.model_bytes)), Seconds(made.wall));
  if (made.classes > 0) {
    text += fmt::format("; {} classes, the last layer fitted to {} made pictures", made.classes,
                        Count(made.pictures));
  }
  if (made.expected_accuracy)
    text += fmt::format(", about {:.1f} % of fresh ones right", 100 * *made.expected_accuracy);
  return text + "\n";
}

}  // namespace weir::synth
