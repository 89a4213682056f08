#include "oip/http/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include <boost/beast/core/string.hpp>

#include "base/json.h"
#include "base/text.h"
#include "http/error_body.h"
#include "oip/http/codec.h"
#include "oip/http/control_json.h"
#include "oip/http/route.h"
#include "oip/repository_rules.h"
#include "oip/status.h"
#include "oip/triton_names.h"

namespace weir::oip {
namespace {

http::HttpResponse Reply(int status, const Json& json) {
  return {.status = status, .body = {Bytes::Copy(DumpJson(json))}};
}

http::HttpResponse ErrorResponse(int status, const Error& error) {
  http::HttpResponse reply{.status = status, .body = {Bytes::Copy(http::ErrorBody(error))}};
  if (status == 503) reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

// The libcurl that NVIDIA's C++ client is made of names a form's type for JSON, and cannot be told otherwise;
// it does so under this name, which no web page can take.
constexpr std::string_view kCppClient = "libcurl-agent/1.0";

// Whether what a POST says of its body can be true. Only types for which a browser asks the server beforehand
// (CORS) are taken; other types come from forms and scripts of any web page.
bool HasKnownType(const http::HttpRequest& request) {
  const auto type = request.Header("Content-Type");
  if (!type || type->empty()) return !request.origin || request.body.empty();
  std::string_view name = type->substr(0, type->find(';'));
  while (name.ends_with(' ')) name.remove_suffix(1);
  const auto is = [name](std::string_view known) { return boost::beast::iequals(name, known); };
  if (is("application/octet-stream") || is("application/json")) return true;
  return is("application/x-www-form-urlencoded") && !request.origin &&
         request.Header("User-Agent") == kCppClient;
}

Result<std::optional<uint64_t>> HeaderLength(const http::HttpRequest& request) {
  const auto text = request.Header(kHeaderLengthName);
  if (!text) return std::nullopt;
  uint64_t length = 0;
  const auto [end, error] = std::from_chars(text->begin(), text->end(), length);
  if (error == std::errc() && end == text->end()) return length;
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{} is {}, not a number of bytes", kHeaderLengthName, Quoted(*text)));
}

// Thread-safe: it holds nothing that changes.
class OipHttpServer : public std::enable_shared_from_this<OipHttpServer> {
 public:
  OipHttpServer(Api& api, const Clock& clock, OipHttpOptions options)
      : api_(api), clock_(clock), options_(std::move(options)) {}

  void Serve(http::HttpRequest&& request, http::HttpResponder&& responder) const;

 private:
  // An inference from its arrival to its last byte.
  struct PendingInference {
    PendingInference(std::shared_ptr<const OipHttpServer> d, http::HttpResponder r)
        : server(std::move(d)), responder(std::move(r)) {}

    std::shared_ptr<const OipHttpServer> server;
    http::HttpResponder responder;
    ResponseForm form;
    RequestTrace exchange;
  };

  http::HttpResponse Failed(const Error& error) const {
    return ErrorResponse(HttpStatus(error.code, options_.compat), error);
  }
  Status CheckRights(const HttpRoute& route, const http::HttpRequest& request) const;
  void Act(HttpRoute route, http::HttpRequest request, http::HttpResponder responder) const;
  http::HttpResponse Health(const char* key, const Status& status) const;
  http::HttpResponse ModelReady(const HttpRoute& route) const;
  Result<Json> TellOfCuda(const HttpRoute& route, std::string_view body) const;
  Result<Json> Tell(const HttpRoute& route, const http::HttpRequest& request) const;
  void LoadOrUnload(const HttpRoute& route, const http::HttpRequest& request,
                    http::HttpResponder responder) const;
  void Infer(HttpRoute route, http::HttpRequest request, http::HttpResponder responder) const;
  void ActLater(HttpRoute route, http::HttpRequest request, http::HttpResponder responder) const;
  Result<InferRequest> Parse(const HttpRoute& route, const http::HttpRequest& request) const;
  static void Answer(std::unique_ptr<PendingInference> pending, Result<infer::Response> result);
  static void Write(std::unique_ptr<PendingInference> pending, Result<infer::Response> result);
  bool HasLargeJson(const HttpRoute& route, const http::HttpRequest& request) const;
  bool HasLargeJson(const infer::Response& response, const ResponseForm& form) const;

  Api& api_;
  const Clock& clock_;
  const OipHttpOptions options_;
};

void OipHttpServer::Serve(http::HttpRequest&& request, http::HttpResponder&& responder) const {
  auto found = FindHttpRoute(request.method, request.path);
  if (const auto* none = std::get_if<NoHttpRoute>(&found)) {
    http::HttpResponse reply = ErrorResponse(none->status, {ErrorCode::kNotFound, none->message});
    if (!none->allow.empty()) reply.headers.emplace_back("Allow", none->allow);
    return responder.Send(std::move(reply));
  }
  HttpRoute& route = std::get<HttpRoute>(found);
  if (request.method == "POST" && !HasKnownType(request)) {
    return responder.Send(
        ErrorResponse(415, {ErrorCode::kInvalidArgument,
                            "the body must be application/json or application/octet-stream: "
                            "send a Content-Type that says which"}));
  }
  if (const Status may = CheckRights(route, request); !may) return responder.Send(Failed(may.error()));
  if (options_.json_pool != nullptr && HasLargeJson(route, request))
    return ActLater(std::move(route), std::move(request), std::move(responder));
  Act(std::move(route), std::move(request), std::move(responder));
}

// Checks what needs no look into the body.
Status OipHttpServer::CheckRights(const HttpRoute& route, const http::HttpRequest& request) const {
  if (route.action == HttpAction::kInfer) return {};
  if (const Status size = CheckControlSize(request.body.size()); !size)
    return Context("the body", size.error());
  switch (route.action) {
    case HttpAction::kLoad:
    case HttpAction::kUnload:
      return api_.MayControl();
    case HttpAction::kRegionStatus:
    case HttpAction::kRegionRegister:
    case HttpAction::kRegionUnregister:
      if (options_.allow_regions) return {};
      return Fail(ErrorCode::kUnsupported,
                  "shared memory of clients is off: start the server with --allow-client-shm");
    default:
      return {};
  }
}

void OipHttpServer::Act(HttpRoute route, http::HttpRequest request, http::HttpResponder responder) const {
  switch (route.action) {
    case HttpAction::kInfer:
      return Infer(std::move(route), std::move(request), std::move(responder));
    case HttpAction::kServerLive:
      return responder.Send(Health("live", api_.Live()));
    case HttpAction::kServerReady:
      return responder.Send(Health("ready", api_.Ready()));
    case HttpAction::kModelReady:
      return responder.Send(ModelReady(route));
    case HttpAction::kLoad:
    case HttpAction::kUnload:
      return LoadOrUnload(route, request, std::move(responder));
    default: {
      const Result<Json> told = Tell(route, request);
      return responder.Send(told ? Reply(200, *told) : Failed(told.error()));
    }
  }
}

// A balancer must see any reason for not being ready as one that passes.
http::HttpResponse OipHttpServer::Health(const char* key, const Status& status) const {
  if (status) return Reply(200, {{key, true}});
  const int code = options_.compat == Compat::kTriton ? 400 : 503;
  http::HttpResponse reply = ErrorResponse(code, status.error());
  reply.body = {Bytes::Copy(DumpJson({{key, false}, {"error", http::ErrorText(status.error())}}))};
  return reply;
}

http::HttpResponse OipHttpServer::ModelReady(const HttpRoute& route) const {
  const Status status = api_.ModelReady(route.model, route.version);
  if (status) return Reply(200, {{"name", EscapeBytes(route.model)}, {"ready", true}});
  const bool waits = HttpStatus(status.error().code, Compat::kNone) == 503;
  return waits && options_.compat == Compat::kTriton ? ErrorResponse(400, status.error())
                                                     : Failed(status.error());
}

Result<Json> OipHttpServer::Tell(const HttpRoute& route, const http::HttpRequest& request) const {
  switch (route.action) {
    case HttpAction::kServerMetadata:
      return ToJson(api_.Server());
    case HttpAction::kModelMetadata:
      return ToJson(TRY(api_.Metadata(route.model, route.version)));
    case HttpAction::kModelConfig: {
      Json config = TRY(api_.Config(route.model, route.version)).json;
      if (!request.Header(kLabelsHeader)) return config;
      const std::string labels = TRY(api_.Labels(route.model, route.version));
      if (!labels.empty()) config["parameters"]["labels"]["string_value"] = labels;
      return config;
    }
    case HttpAction::kStatistics:
      return ToJson(TRY(api_.Statistics(route.model, route.version)));
    default:
      break;
  }
  TRY_STATUS(CheckRepository(route.repository));
  if (route.action == HttpAction::kCudaRegionStatus || route.action == HttpAction::kCudaRegionRegister ||
      route.action == HttpAction::kCudaRegionUnregister) {
    return TellOfCuda(route, request.body.text());
  }
  if (route.action == HttpAction::kIndex) return ToJson(api_.Index(TRY(ParseIndexBody(request.body.text()))));
  switch (route.action) {
    case HttpAction::kRegionStatus:
      return ToJson(TRY(api_.Regions(route.region)));
    case HttpAction::kRegionRegister:
      TRY_STATUS(api_.RegisterRegion(TRY(ParseRegionBody(route.region, request.body.text()))));
      return Json::object();
    default:
      TRY_STATUS(api_.UnregisterRegion(route.region));
      return Json::object();
  }
}

Result<Json> OipHttpServer::TellOfCuda(const HttpRoute& route, std::string_view body) const {
  switch (route.action) {
    case HttpAction::kCudaRegionStatus:
      return ToJson(TRY(api_.CudaRegions(route.region)));
    case HttpAction::kCudaRegionRegister:
      TRY_STATUS(api_.RegisterCudaRegion(TRY(ParseCudaRegionBody(route.region, body))));
      return Json::object();
    default:
      TRY_STATUS(api_.UnregisterCudaRegion(route.region));
      return Json::object();
  }
}

void OipHttpServer::LoadOrUnload(const HttpRoute& route, const http::HttpRequest& request,
                                 http::HttpResponder responder) const {
  const auto parse = [&]() -> Result<std::string> {
    TRY_STATUS(CheckRepository(route.repository));
    if (route.action == HttpAction::kLoad) return ParseLoadBody(request.body.text());
    TRY_STATUS(ParseUnloadBody(request.body.text()));
    return std::string();
  };
  const Result<std::string> config = parse();
  if (!config) {
    const bool as_triton = route.action == HttpAction::kLoad && options_.compat == Compat::kTriton;
    return responder.Send(
        Failed(as_triton ? triton::FailedToLoad(route.model, config.error()) : config.error()));
  }
  auto done = [self = shared_from_this(), responder = std::move(responder)](Status status) mutable {
    responder.Send(status ? Reply(200, Json::object()) : self->Failed(status.error()));
  };
  if (route.action == HttpAction::kLoad) return api_.Load(route.model, *config, std::move(done));
  api_.Unload(route.model, std::move(done));
}

bool OipHttpServer::HasLargeJson(const HttpRoute& route, const http::HttpRequest& request) const {
  if (request.body.size() < options_.large_json) return false;
  if (route.action != HttpAction::kInfer) return true;
  const Result<std::optional<uint64_t>> header_length = HeaderLength(request);
  return header_length && header_length->value_or(request.body.size()) >= options_.large_json;
}

// About: an output takes more bytes in JSON than in memory.
bool OipHttpServer::HasLargeJson(const infer::Response& response, const ResponseForm& form) const {
  size_t all = 0;
  for (const infer::Tensor& output : response.outputs) all += output.data.size();
  if (all < options_.large_json) return false;
  size_t json = 0;
  for (const infer::Tensor& output : response.outputs) {
    const auto wish = std::ranges::find(form.outputs, output.name, &RequestedOutput::name);
    const bool binary =
        wish == form.outputs.end() ? form.binary_by_default : wish->binary || wish->region.has_value();
    if (!binary) json += output.data.size();
  }
  return json >= options_.large_json;
}

void OipHttpServer::ActLater(HttpRoute route, http::HttpRequest request,
                             http::HttpResponder responder) const {
  struct Job {
    std::shared_ptr<const OipHttpServer> server;
    HttpRoute route;
    http::HttpRequest request;
    http::HttpResponder responder;
  };
  const auto job =
      std::make_shared<Job>(shared_from_this(), std::move(route), std::move(request), std::move(responder));
  http::WorkPool::Work work = [job] {
    if (job->request.left.stop_requested()) {
      return job->responder.Send(job->server->Failed({ErrorCode::kCancelled, "the client left"}));
    }
    job->server->Act(std::move(job->route), std::move(job->request), std::move(job->responder));
  };
  if (options_.json_pool->Offer(work)) return;
  if (options_.on_pool_full) options_.on_pool_full();
  job->responder.Send(Failed({ErrorCode::kOverloaded, "too many large JSON bodies wait to be read"}));
}

void OipHttpServer::Infer(HttpRoute route, http::HttpRequest request, http::HttpResponder responder) const {
  auto pending = std::make_unique<PendingInference>(shared_from_this(), std::move(responder));
  Result<InferRequest> parsed = Parse(route, request);
  RequestTrace& exchange = pending->exchange;
  exchange.first_byte = request.first_byte;
  exchange.received = request.received;
  exchange.decoded = clock_.Now();
  exchange.model = route.model;
  exchange.version = route.version;
  exchange.malformed = !parsed;
  if (!parsed) return Answer(std::move(pending), std::unexpected(std::move(parsed).error()));
  parsed->request.model = std::move(route.model);
  parsed->request.version = std::move(route.version);
  parsed->request.cancelled = std::move(request.left);
  parsed->protocol = Protocol::kHttp;
  parsed->first_byte = exchange.first_byte;
  parsed->received = exchange.received;
  parsed->decoded = exchange.decoded;
  pending->form = {parsed->outputs, parsed->binary_by_default};
  api_.Infer(*std::move(parsed),
             infer::Completion([pending = std::move(pending)](Result<infer::Response> result,
                                                              const infer::Times& times) mutable {
               pending->exchange.times = times;
               Answer(std::move(pending), std::move(result));
             }));
}

Result<InferRequest> OipHttpServer::Parse(const HttpRoute& route, const http::HttpRequest& request) const {
  const std::optional<uint64_t> header_length = TRY(HeaderLength(request));
  if (header_length != 0) return ParseHttpRequest(request.body, header_length);
  const ModelMetadata model = TRY(api_.Metadata(route.model, route.version));
  if (model.inputs.size() != 1) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("a request of raw bytes is for models with one input; {} has {}",
                            Quoted(route.model), model.inputs.size()));
  }
  const ModelConfig config = TRY(api_.Config(route.model, route.version));
  const bool batched = config.json.value("max_batch_size", 0) > 0;
  return ParseRawHttpRequest(request.body, model.inputs[0], batched);
}

void OipHttpServer::Answer(std::unique_ptr<PendingInference> pending, Result<infer::Response> result) {
  const OipHttpServer& server = *pending->server;
  if (server.options_.json_pool == nullptr || !result || !server.HasLargeJson(*result, pending->form))
    return Write(std::move(pending), std::move(result));
  struct Job {
    std::unique_ptr<PendingInference> pending;
    Result<infer::Response> result;
  };
  http::WorkPool& pool = *server.options_.json_pool;
  const auto job = std::make_shared<Job>(std::move(pending), std::move(result));
  http::WorkPool::Work work = [job] { Write(std::move(job->pending), std::move(job->result)); };
  if (!pool.Offer(work)) work();
}

void OipHttpServer::Write(std::unique_ptr<PendingInference> pending, Result<infer::Response> result) {
  const OipHttpServer& server = *pending->server;
  RequestTrace& exchange = pending->exchange;
  Result<HttpBody> body = Fail(ErrorCode::kInternal, {});
  if (result) {
    exchange.model = result->model;
    exchange.version = result->version;
    exchange.executed_batch = result->executed_batch;
    body = WriteHttpResponse(*result, pending->form);
  } else {
    body = std::unexpected(std::move(result).error());
  }
  http::HttpResponse reply;
  if (!body) {
    exchange.error = body.error().code;
    reply = server.Failed(body.error());
  } else {
    reply.body = std::move(body->parts);
    if (body->header_length) {
      reply.content_type = "application/octet-stream";
      reply.headers.emplace_back(kHeaderLengthName, std::to_string(*body->header_length));
    }
  }
  exchange.encoded = server.clock_.Now();
  http::HttpResponder responder = std::move(pending->responder);
  responder.Send(std::move(reply), [pending = std::move(pending)](Instant sent) {
    pending->exchange.sent = sent;
    pending->server->api_.Observe(pending->exchange);
  });
}

}  // namespace

bool IsHealthProbe(const http::HttpRequest& request) {
  const auto found = FindHttpRoute(request.method, request.path);
  const auto* const route = std::get_if<HttpRoute>(&found);
  return route != nullptr &&
         (route->action == HttpAction::kServerLive || route->action == HttpAction::kServerReady ||
          route->action == HttpAction::kModelReady);
}

http::HttpServer::Handler MakeOipHttpHandler(Api& api, const Clock& clock, OipHttpOptions options) {
  return [server = std::make_shared<const OipHttpServer>(api, clock, std::move(options))](
             http::HttpRequest&& request, http::HttpResponder&& responder) {
    server->Serve(std::move(request), std::move(responder));
  };
}

}  // namespace weir::oip
