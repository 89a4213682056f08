#include "load/session/null_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/json.h"

namespace weir::load {
namespace {

// Returns whether `name` needs no escape in a configuration, a folder's name and a URL.
bool IsPlain(std::string_view name) {
  return !name.empty() && name.front() != '.' && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '_' || c == '-' || c == ':' || c == '/';
  });
}

Result<std::string> TensorConfig(const char* field, const infer::TensorInfo& tensor, bool batches) {
  if (!IsPlain(tensor.name))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("a null server cannot have a tensor of the name {}", EscapeBytes(tensor.name)));
  std::string dims;
  for (size_t i = batches ? 1 : 0; i < tensor.shape.size(); ++i) {
    const bool is_output = std::string_view(field) == "output";
    const int64_t dim = tensor.shape[i] < 0 && is_output ? 1 : tensor.shape[i];
    dims += fmt::format("{}{}", dims.empty() ? "" : ", ", dim);
  }
  const std::string type =
      tensor.dtype == infer::DType::kBytes ? "STRING" : std::string(ToString(tensor.dtype));
  return fmt::format("{} {{ name: \"{}\" data_type: TYPE_{} dims: [ {} ] }}\n", field, tensor.name, type,
                     dims);
}

}  // namespace

Result<std::string> NullConfig(const infer::ModelInfo& model) {
  if (!IsPlain(model.name) || model.name.find('/') != std::string::npos)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("a null server cannot have a model of the name {}", EscapeBytes(model.name)));
  std::string config = fmt::format("name: \"{}\"\nbackend: \"emulated\"\nmax_batch_size: {}\n", model.name,
                                   std::max(0, model.max_batch));
  for (const infer::TensorInfo& input : model.inputs)
    config += TRY(TensorConfig("input", input, model.max_batch > 0));
  for (const infer::TensorInfo& output : model.outputs)
    config += TRY(TensorConfig("output", output, model.max_batch > 0));
  return config + "parameters { key: \"engine\" value: { string_value: \"emulated:base=0ms\" } }\n";
}

Result<NullServer> NullServer::Start(const infer::ModelInfo& model, const Clock& clock) {
  const std::string config = TRY(NullConfig(model));
  NullServer server(TRY(TemporaryFolder::Make("weir-null")));
  const std::string folder = server.repository_.path() + "/" + model.name;
  TRY_STATUS(MakeFolders(folder));
  TRY_STATUS(WriteFileWhole(folder + "/config.pbtxt", config));
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return FailErrno("/proc/self/exe", error.value());
  server.server_ = TRY(launch::StartServer(
      launch::ServerCommand{
          .command = {program, "serve", "--model-repository", "{model_repository}", "--http-port",
                      "{http_port}", "--grpc-port", "{grpc_port}", "--metrics-port", "{metrics_port}"},
          .model_repository = server.repository_.path(),
          .ready = fmt::format("http://{{address}}:{{http_port}}/v2/models/{}/ready", model.name),
          .start_timeout = 10s},
      clock));
  server.http_ = fmt::format("{}/{}", server.server_->http(), model.name);
  server.grpc_ = fmt::format("{}/{}", server.server_->grpc(), model.name);
  return server;
}

}  // namespace weir::load
