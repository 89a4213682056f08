// A model as people name it: an .onnx file or a model folder (NAME/config.pbtxt, labels.txt, recipe.yaml,
// VERSION/model.onnx).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "dataset/recipe.h"
#include "infer/choices.h"
#include "infer/engine.h"
#include "model/config.h"
#include "model/fit.h"

namespace weir::model {

struct Model {
  std::string name;     // the folder's, or the file's without .onnx
  std::string version;  // of the folder in use; empty for a bare file
  std::string
      path;  // the ONNX file, links followed; empty where the backend is "emulated" and none is needed
  std::string backend;  // "onnxruntime", "openvino", "emulated"; empty: not said
  std::vector<infer::TensorInfo> inputs;
  // A call may leave these out, and the file's own values hold. The configuration lists them.
  std::vector<infer::TensorInfo> optional_inputs;
  std::vector<infer::TensorInfo> outputs;
  std::vector<LeftOut> left_out;   // of the file's outputs
  std::optional<int> fixed_batch;  // the only batch it takes, where it is not batchable
  std::string not_batchable;       // why it takes no other batch; empty where it does
  std::optional<int> max_batch;    // the largest that the configuration allows
  std::optional<dataset::Recipe> recipe;
  std::vector<std::string> labels;  // by class
  // Where the scores' labels lie in the model folder, by index of the scores; empty: nowhere, or by class
  // only.
  std::string label_file;
  std::map<std::string, std::string>
      parameters;  // of the configuration: "engine", "device", "precision", "streams" ...
  // How it is served. The tensors as clients see them: where the configuration reshapes, not as the model has
  // them. The optional inputs are there too.
  std::vector<infer::TensorInfo> client_inputs, client_outputs;
  // Whether the shape of an input that a client sends may be another than the engine takes.
  bool reshapes_inputs = false;
  // Items in a request; 0: there is no batch dimension. From the configuration; where that says nothing of
  // tensors either, kDefaultMaxBatch if every tensor has two dimensions or more and the first is free.
  int serving_max_batch = 0;
  std::map<std::string, std::vector<std::string>> output_labels;  // by output, then by its index
  Config config;                                                  // empty where there is none
  std::string folder;                                             // links followed; empty for a bare file
  std::vector<std::string> link_roots;                            // as it was opened with
};
inline constexpr int kDefaultMaxBatch = 64;

struct OpenOptions {
  std::string recipe;   // a recipe file instead of the model's own
  std::string version;  // of a model folder; empty: the newest that the configuration allows
  std::string config;   // of a model folder, as JSON instead of its config.pbtxt; empty: its own
  // Folders that links may lead below, out of the model's own; links followed.
  std::vector<std::string> link_roots;
};
// Reads and checks the files; loads no engine. A model is untrusted data: external data and parts of a model
// folder that lie outside the folder and below none of the `link_roots`, and operators of custom domains, are
// refused (kInvalidArgument) before an engine sees the file; kCorrupt for what is not ONNX. A
// configuration or a recipe that does not fit the file is kInvalidArgument, what this program cannot do
// (fields of config.pbtxt, other backends, URLs) kUnsupported. A bare file NAME.onnx has its recipe in
// NAME.recipe.yaml beside it. Labels are those of the recipe, else of the configuration's output, else
// labels.txt of the folder.
Result<Model> OpenModel(const std::string& path, const OpenOptions& options);

// The model's own view of an input that clients send; null for another name.
const infer::TensorInfo* FindInput(const Model& model, const std::string& name);

// `folders` with their links followed, for OpenOptions::link_roots. kNotFound names one that is no folder.
Result<std::vector<std::string>> LinkRoots(const std::vector<std::string>& folders);

// The output that the model's labels are of: the recipe's, or the only one; empty where that is open.
std::string ScoresOf(const Model& model);

// The versions of a model folder that its configuration wants served, rising; "1" for a bare file, and for an
// emulated model that has no version. Not all need be there: OpenModel tells.
Result<std::vector<std::string>> ServedVersions(const std::string& path, const OpenOptions& options);

// The bytes of a file in the model folder's "warmup". Errors as OpenModel's for parts that lie outside.
Result<Bytes> ReadWarmUpFile(const Model& model, const std::string& name, uint64_t max_bytes);

// The settings of the configuration's parameters, for the caller to override. Where it says nothing of
// streams, one a thread: batches side by side lose nothing to waiting for one another.
infer::SessionOptions SessionDefaults(const Model& model);

// The same with pixels normalised on the GPU, where `wanted` or else the parameter "preprocess" is "gpu".
// kInvalidArgument without a CUDA device, kUnsupported for a model whose input is not of pictures in FP32.
Result<infer::SessionOptions> WithPreprocess(const Model& model, std::optional<infer::Preprocess> wanted,
                                             infer::SessionOptions options);

// The engine that OpenSession opens for it.
std::string EngineOf(const Model& model, const std::string& engine);

// Keeps this thread, and what it starts from now on, to the CPUs of the parameter "cpus", where there is one:
// OpenSession and the threads that call the session belong under it. kInvalidArgument where this process may
// not use them all.
Status KeepToCpusOf(const Model& model);

// The model on an engine. `engine` empty: the one the model's parameters name, or its backend, or
// onnxruntime. The session is loaded on a thread with the recogniser's role, which the threads of its library
// inherit. kUnsupported where the parameter "cpus" is not in force.
struct OpenedSession {
  std::unique_ptr<infer::Engine> engine;  // outlives the session
  std::shared_ptr<infer::Session> session;
};
Result<OpenedSession> OpenSession(const Model& model, const std::string& engine,
                                  const infer::SessionOptions& options, const Clock& clock);

}  // namespace weir::model
