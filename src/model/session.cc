#include <fmt/format.h>
#include <sched.h>

#include <cerrno>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "dataset/preparer.h"
#include "model/model.h"
#include "onnx/reduced.h"

namespace weir::model {
namespace {

cpu_set_t CpuSet(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) {
    if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  }
  return set;
}

// Whether this thread, and so what it starts, is kept to the CPUs that the model's configuration wants.
Status CheckCpus(const Model& model) {
  const auto wanted = model.parameters.find("cpus");
  if (wanted == model.parameters.end()) return {};
  cpu_set_t now;
  CPU_ZERO(&now);
  ::sched_getaffinity(0, sizeof now, &now);
  const cpu_set_t set = CpuSet(TRY(ParseCpus(wanted->second)));
  if (CPU_EQUAL(&now, &set) != 0) return {};
  return Fail(
      ErrorCode::kUnsupported,
      fmt::format("its configuration keeps it to the CPUs {}, which weir serve does: leave the parameter "
                  "\"cpus\" out, or use taskset -c {}",
                  wanted->second, wanted->second));
}

Result<OpenedSession> Open(const Model& model, const std::string& engine,
                           const infer::SessionOptions& options, const Clock& clock) {
  OpenedSession opened;
  opened.engine = TRY(infer::OpenEngine(engine, clock, options.devices));
  if (model.path.empty() && opened.engine->name() != "emulated") {
    return Fail(ErrorCode::kInvalidArgument, engine +
                                                 " needs a model file, and this model has none: add "
                                                 "VERSION/model.onnx, or use an emulated engine");
  }
  infer::ModelSource source{.path = model.path, .onnx = {}, .inputs = model.inputs, .outputs = model.outputs};
  source.inputs.insert(source.inputs.end(), model.optional_inputs.begin(), model.optional_inputs.end());
  const bool is_cuda = !options.devices.empty() && options.devices.front().kind == infer::Device::Kind::kCuda;
  if (is_cuda && (options.precision == "f16" || options.precision == "bf16"))
    source.onnx = TRY(onnx::ReducePrecision(
        model.path, options.precision == "f16" ? onnx::ReducedFloat::kFp16 : onnx::ReducedFloat::kBf16));
  opened.session = TRY(opened.engine->Load(source, options));
  return opened;
}

}  // namespace

std::string EngineOf(const Model& model, const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  if (const auto named = model.parameters.find("engine"); named != model.parameters.end())
    return named->second;
  return model.backend.empty() ? "onnxruntime" : model.backend;
}

Status KeepToCpusOf(const Model& model) {
  const auto wanted = model.parameters.find("cpus");
  if (wanted == model.parameters.end()) return {};
  const cpu_set_t set = CpuSet(TRY(ParseCpus(wanted->second)));
  if (::sched_setaffinity(0, sizeof set, &set) != 0)
    return FailErrno(fmt::format("model {}: the CPUs {}", model.name, wanted->second), errno);
  cpu_set_t got;
  ::sched_getaffinity(0, sizeof got, &got);
  if (CPU_EQUAL(&got, &set) != 0) return {};
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("model {}: not all of the CPUs {} are there for this process", model.name, wanted->second));
}

Result<infer::PixelInput> PixelInputOf(const Model& model) {
  const auto refuse = [&](const char* why) {
    return Fail(ErrorCode::kUnsupported,
                fmt::format("model {}: --preprocess gpu: {}: leave it out", model.name, why));
  };
  if (!model.recipe) return refuse("it has no recipe that says how pixels become its input");
  const dataset::Recipe& recipe = *model.recipe;
  const auto size = recipe.geometry.OutputSize();
  if (!size || model.inputs.size() != 1 || model.inputs.front().shape.size() != 4)
    return refuse("its input is not one of pictures of one size");
  if (recipe.datatype != dataset::ElementType::kFp32 || model.inputs.front().dtype != infer::DType::kFp32)
    return refuse("its input is not FP32, so there is nothing to normalise");
  return infer::PixelInput{.input = model.inputs.front().name,
                           .width = size->width,
                           .height = size->height,
                           .channels = recipe.geometry.channel_count(),
                           .planar = recipe.layout == dataset::Layout::kNchw,
                           .table = dataset::LevelValues(recipe)};
}

Result<infer::SessionOptions> WithPreprocess(const Model& model, std::optional<infer::Preprocess> wanted,
                                             infer::SessionOptions options) {
  const auto own = model.parameters.find("preprocess");
  if (!wanted && own != model.parameters.end()) wanted = FindChoice(infer::kPreprocess, own->second);
  if (wanted != infer::Preprocess::kGpu) return options;
  const bool is_cuda = !options.devices.empty() && options.devices.front().kind == infer::Device::Kind::kCuda;
  if (!is_cuda)
    return Fail(
        ErrorCode::kInvalidArgument,
        "--preprocess gpu: pixels are normalised on CUDA devices only: give --device cuda:0, or leave "
        "it out");
  options.pixels = TRY(PixelInputOf(model));
  return options;
}

infer::SessionOptions SessionDefaults(const Model& model) {
  infer::SessionOptions options;
  options.streams = 0;
  for (const auto& [key, value] : model.parameters) {
    if (key == "precision") options.precision = value;
    if (key == "device") options.devices = infer::ParseDevices(value).value_or(std::vector<infer::Device>{});
    if (key == "cuda_graph") options.cuda_graph = FindChoice(infer::kOffOn, value).value_or(false);
    if (key == "gpu_memory_mb") {
      std::from_chars(value.data(), value.data() + value.size(), options.gpu_memory_bytes);
      options.gpu_memory_bytes <<= 20;
    }
    if (key == "threads") std::from_chars(value.data(), value.data() + value.size(), options.threads);
    if (key == "streams") std::from_chars(value.data(), value.data() + value.size(), options.streams);
  }
  return options;
}

Result<OpenedSession> OpenSession(const Model& model, const std::string& engine,
                                  const infer::SessionOptions& options, const Clock& clock) {
  if (const Status kept = CheckCpus(model); !kept) return Context("model " + model.name, kept.error());
  Result<OpenedSession> result;
  StartThread(ThreadRole::kRecogniser, "load", [&](std::stop_token) {
    result = Open(model, EngineOf(model, engine), options, clock);
  }).join();
  if (!result) return Context("model " + model.name, result.error());
  return result;
}

}  // namespace weir::model
