// A model as people name it: an .onnx file or a model folder (NAME/config.pbtxt, labels.txt, recipe.yaml, VERSION/model.onnx).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/recipe.h"
#include "infer/engine.h"

namespace weir::model {

struct Model {
  std::string name;                 // the folder's, or the file's without .onnx
  std::string version;              // of the folder in use; empty for a bare file
  std::string path;                 // the ONNX file; empty where the backend is "emulated" and none is needed
  std::string backend;              // "onnxruntime", "openvino", "emulated"; empty: not said
  std::vector<infer::TensorInfo> inputs;
  std::vector<infer::TensorInfo> outputs;
  std::optional<int> fixed_batch;   // the first dimension, where every input has it fixed to the same number
  std::string not_batchable;        // why it takes no other batch; empty where it does
  std::optional<data::Recipe> recipe;
  std::vector<std::string> labels;  // by class
  std::map<std::string, std::string> parameters;  // of the configuration: "engine", "precision", "threads", "streams"
};

struct OpenOptions {
  std::string recipe;  // a recipe file instead of the model's own
};
// Reads and checks the files; loads no engine. A model is untrusted data: external data that leaves the model's folder, links, and
// operators of custom domains are refused (kInvalidArgument) before an engine sees the file; kCorrupt for what is not ONNX.
Result<Model> OpenModel(const std::string& path, const OpenOptions& options);

// The model on an engine. `engine` empty: the one the model's parameters name, or its backend, or onnxruntime. The session is
// loaded on a thread named "engine", so that the threads its library starts can be told apart.
struct OpenedSession {
  std::unique_ptr<infer::Engine> engine;  // outlives the session
  std::shared_ptr<infer::Session> session;
};
Result<OpenedSession> OpenSession(const Model& model, const std::string& engine, const infer::SessionOptions& options, const Clock& clock);

}  // namespace weir::model
