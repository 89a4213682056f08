#include "serve/announcement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/json.h"
#include "infer/choices.h"
#include "infer/tensor.h"

namespace weir::serve {
namespace {

using results::ServeResult;

std::string InBrackets(const std::string& address) {
  return address.find(':') == std::string::npos ? address : "[" + address + "]";
}

// Returns the URL for a client on this machine. A server that listens on all addresses listens on loopback.
std::string Url(const std::string& scheme, const std::string& address, int64_t port) {
  const std::string host = address == "::" ? "::1" : address == "0.0.0.0" ? "127.0.0.1" : address;
  return fmt::format("{}://{}:{}", scheme, InBrackets(host), port);
}

std::string Listens(const ServeResult::Listener& listener) {
  return fmt::format("{}:{}", InBrackets(listener.address), listener.port);
}

bool IsLoopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

std::vector<ServeResult::Listener> Listeners(const ServeResult& result) {
  std::vector<ServeResult::Listener> listeners;
  for (const auto& listener : {result.http, result.grpc, result.metrics}) {
    if (listener) listeners.push_back(*listener);
  }
  return listeners;
}

std::vector<results::Tensor> Tensors(const std::vector<infer::TensorInfo>& infos) {
  std::vector<results::Tensor> tensors;
  for (const infer::TensorInfo& info : infos)
    tensors.push_back({.name = info.name,
                       .datatype = std::string(ToString(info.dtype)),
                       .shape = info.any_rank ? std::nullopt : std::optional(info.shape),
                       .optional = info.optional});
  return tensors;
}

std::string TensorsText(const std::vector<results::Tensor>& tensors) {
  std::string text;
  for (const results::Tensor& tensor : tensors) {
    text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", tensor.name, tensor.datatype,
                        tensor.shape ? infer::ToString(*tensor.shape) : "of any shape");
  }
  return text;
}

// Returns a command that gets an answer: an inference if its input is short enough to be written down,
// otherwise the model's metadata.
std::string CurlLine(const std::string& http, const ServeResult::Model& model) {
  constexpr int64_t kMostElements = 64;
  const std::string bytes = std::string(ToString(infer::DType::kBytes));
  const std::string truth = std::string(ToString(infer::DType::kBool));
  Json inputs = Json::array();
  for (const results::Tensor& input : model.inputs) {
    if (input.optional) continue;
    infer::Shape shape = input.shape.value_or(infer::Shape{-1});
    std::ranges::replace_if(shape, [](int64_t dim) { return dim < 0; }, 1);
    const int64_t elements = infer::ElementCount(shape).value_or(kMostElements + 1);
    if (input.datatype == bytes && model.name.ends_with(infer::SuffixOf(infer::Payload::kImage))) {
      return fmt::format(
          "curl -s {}/v2/models/{}/infer -H 'Inference-Header-Content-Length: 0' "
          "-H 'Content-Type: application/octet-stream' --data-binary @PICTURE.jpg",
          http, model.name);
    }
    if (elements > kMostElements) return fmt::format("curl -s {}/v2/models/{}", http, model.name);
    const Json zero = input.datatype == bytes ? Json("") : input.datatype == truth ? Json(false) : Json(0);
    inputs.push_back({{"name", input.name},
                      {"datatype", input.datatype},
                      {"shape", shape},
                      {"data", std::vector<Json>(static_cast<size_t>(elements), zero)}});
  }
  return fmt::format("curl -s {}/v2/models/{}/infer -H 'Content-Type: application/json' -d '{}'", http,
                     model.name, DumpJson({{"inputs", inputs}}));
}

}  // namespace

ServeResult Describe(const ServerOptions& options, Server& server) {
  const Status ready = server.Ready();
  ServeResult result{.ready = ready.has_value(), .pid = ::getpid(), .version = options.version};
  if (!ready) result.not_ready = ready.error().message;
  const Server::Ports ports = server.ports();
  const auto listener = [](const std::string& scheme, const ListenAddress& at, int port,
                           const std::string& path) -> std::optional<ServeResult::Listener> {
    if (port < 0) return std::nullopt;
    return ServeResult::Listener{
        .port = port, .url = Url(scheme, at.address, port) + path, .address = at.address};
  };
  result.http = listener("http", options.http, ports.http, "");
  result.grpc = listener("grpc", options.grpc, ports.grpc, "");
  result.metrics = listener("http", options.metrics, ports.metrics, "/metrics");
  for (const oip::IndexEntry& entry : server.Index()) {
    const std::string name = EscapeBytes(entry.name);
    result.index.push_back({name, entry.version, entry.state, EscapeBytes(entry.reason)});
    const bool known = std::ranges::any_of(
        result.models, [&](const ServeResult::Model& model) { return model.name == name; });
    if (entry.state != "READY" || known) continue;
    if (const auto metadata = server.Metadata(entry.name)) {
      result.models.push_back({name, metadata->versions, metadata->platform, Tensors(metadata->inputs),
                               Tensors(metadata->outputs)});
    }
  }
  return result;
}

std::string AnnouncementText(const TextStyle& style, const ServeResult& result) {
  std::string text = style.Bold("served\n");
  for (const ServeResult::Model& model : result.models) {
    text += fmt::format("  {:<24} version {:<6} {}: {} -> {}\n", model.name,
                        fmt::format("{}", fmt::join(model.versions, ", ")), model.platform,
                        TensorsText(model.inputs), TensorsText(model.outputs));
  }
  for (const ServeResult::Entry& entry : result.index) {
    if (entry.state == "READY" || entry.reason.empty()) continue;
    const std::string version = entry.version.empty() ? "" : fmt::format("version {:<6} ", entry.version);
    text += fmt::format("  {:<24} {}not served: {}\n", entry.name, version, entry.reason);
  }
  text += style.Bold("at\n");
  for (const ServeResult::Listener& listener : Listeners(result))
    text += fmt::format("  {:<40} listens on {}\n", listener.url, Listens(listener));
  if (!result.models.empty() && result.http) {
    const auto shortest = std::ranges::min_element(result.models, {}, [&](const ServeResult::Model& model) {
      return CurlLine(result.http->url, model).find("/infer") == std::string::npos;
    });
    text += style.Bold("try\n") + "  " + CurlLine(result.http->url, *shortest) + "\n";
  }
  return text + (result.ready ? "ready\n" : "not ready: " + EscapeBytes(result.not_ready) + "\n");
}

std::string ExposureWarning(const ServeResult& result) {
  std::vector<std::string> open;
  for (const ServeResult::Listener& listener : Listeners(result)) {
    if (!IsLoopback(listener.address)) open.push_back(Listens(listener));
  }
  if (open.empty()) return "";
  return fmt::format(
      "the server listens on {}, which is not loopback, and has neither TLS nor a token: whoever reaches it "
      "may use it. Put it behind a proxy that has them, or leave --address at 127.0.0.1.",
      fmt::join(open, ", "));
}

Status CheckServesAny(const ServerOptions& options, const ServeResult& result) {
  if (!result.models.empty()) return {};
  if (!result.index.empty())
    return Fail(ErrorCode::kNotFound, "there is no model that can be served; see the reasons above");
  return Fail(ErrorCode::kNotFound,
              fmt::format("{}: no model is in it; a model lies there as NAME/VERSION/model.onnx",
                          EscapeBytes(fmt::format("{}", fmt::join(options.repositories, ", ")))));
}

}  // namespace weir::serve
