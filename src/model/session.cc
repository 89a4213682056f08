#include <charconv>
#include <string>
#include <utility>

#include "base/thread.h"
#include "model/model.h"

namespace weir::model {
namespace {

std::string EngineOf(const Model& model, const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  if (const auto named = model.parameters.find("engine"); named != model.parameters.end())
    return named->second;
  return model.backend.empty() ? "onnxruntime" : model.backend;
}

Result<OpenedSession> Open(const Model& model, const std::string& engine,
                           const infer::SessionOptions& options, const Clock& clock) {
  OpenedSession opened;
  opened.engine = TRY(infer::OpenEngine(engine, clock));
  if (model.path.empty() && opened.engine->name() != "emulated") {
    return Fail(ErrorCode::kInvalidArgument, engine +
                                                 " needs a model file, and this model has none: add "
                                                 "VERSION/model.onnx, or use an emulated engine");
  }
  const infer::ModelSource source{.path = model.path, .inputs = model.inputs, .outputs = model.outputs};
  opened.session = TRY(opened.engine->Load(source, options));
  return opened;
}

}  // namespace

infer::SessionOptions SessionDefaults(const Model& model) {
  infer::SessionOptions options;
  for (const auto& [key, value] : model.parameters) {
    if (key == "precision") options.precision = value;
    if (key == "threads") std::from_chars(value.data(), value.data() + value.size(), options.threads);
    if (key == "streams") std::from_chars(value.data(), value.data() + value.size(), options.streams);
  }
  return options;
}

Result<OpenedSession> OpenSession(const Model& model, const std::string& engine,
                                  const infer::SessionOptions& options, const Clock& clock) {
  Result<OpenedSession> result;
  StartThread("engine", [&](std::stop_token) {
    result = Open(model, EngineOf(model, engine), options, clock);
  }).join();
  if (!result) return Context("model " + model.name, result.error());
  return result;
}

}  // namespace weir::model
