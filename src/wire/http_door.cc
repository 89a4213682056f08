#include "wire/http_door.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include <boost/beast/core/string.hpp>

#include "wire/error_body.h"
#include "base/json.h"
#include "base/text.h"
#include "wire/http_codec.h"
#include "wire/http_json.h"
#include "wire/http_route.h"
#include "wire/repository_rules.h"
#include "wire/status.h"
#include "wire/triton_words.h"

namespace weir::wire {
namespace {

constexpr size_t kMostControlBytes = 1 << 20;  // of a body that is no inference

HttpReply Reply(int status, const Json& json) {
  return {.status = status, .body = {Bytes::Copy(DumpJson(json))}};
}

HttpReply ErrorReply(int status, const Error& error) {
  HttpReply reply{.status = status, .body = {Bytes::Copy(ErrorBody(error))}};
  if (status == 503) reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

// The libcurl that NVIDIA's C++ client is made of names a form's type for JSON, and cannot be told otherwise;
// it does so under this name, which no web page can take.
constexpr std::string_view kCppClient = "libcurl-agent/1.0";

// Whether what a POST says of its body can be true. Only types for which a browser asks the server beforehand
// (CORS) are taken; other types come from forms and scripts of any web page.
bool HasKnownType(const HttpRequest& request) {
  const auto type = request.Header("Content-Type");
  if (!type || type->empty()) return !request.origin || request.body.empty();
  std::string_view name = type->substr(0, type->find(';'));
  while (name.ends_with(' ')) name.remove_suffix(1);
  const auto is = [name](std::string_view known) { return boost::beast::iequals(name, known); };
  if (is("application/octet-stream") || is("application/json")) return true;
  return is("application/x-www-form-urlencoded") && !request.origin &&
         request.Header("User-Agent") == kCppClient;
}

Result<std::optional<uint64_t>> HeaderLength(const HttpRequest& request) {
  const auto text = request.Header(kHeaderLengthName);
  if (!text) return std::nullopt;
  uint64_t length = 0;
  const auto [end, error] = std::from_chars(text->begin(), text->end(), length);
  if (error == std::errc() && end == text->end()) return length;
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{} is {}, not a number of bytes", kHeaderLengthName, Quoted(*text)));
}

// Thread-safe: it holds nothing that changes.
class Door : public std::enable_shared_from_this<Door> {
 public:
  Door(Api& api, const Clock& clock, HttpDoorOptions options)
      : api_(api), clock_(clock), options_(std::move(options)) {}

  void Serve(HttpRequest&& request, HttpResponder&& responder) const;

 private:
  // An inference from its arrival to its last byte.
  struct Flight {
    Flight(std::shared_ptr<const Door> d, HttpResponder r) : door(std::move(d)), responder(std::move(r)) {}

    std::shared_ptr<const Door> door;
    HttpResponder responder;
    ResponseForm form;
    Exchange exchange;
  };

  HttpReply Failed(const Error& error) const {
    return ErrorReply(HttpStatus(error.code, options_.compat), error);
  }
  HttpReply Health(const char* key, const Status& status) const;
  HttpReply ModelReady(const HttpRoute& route) const;
  Result<Json> TellOfCuda(const HttpRoute& route) const;
  Result<Json> Tell(const HttpRoute& route, const HttpRequest& request) const;
  void LoadOrUnload(const HttpRoute& route, const HttpRequest& request, HttpResponder responder) const;
  void Infer(HttpRoute route, HttpRequest request, HttpResponder responder) const;
  void InferLater(HttpRoute route, HttpRequest request, HttpResponder responder) const;
  Result<InferRequest> Parse(const HttpRoute& route, const HttpRequest& request) const;
  static void Answer(std::unique_ptr<Flight> flight, Result<infer::Response> result);
  static void Write(std::unique_ptr<Flight> flight, Result<infer::Response> result);
  bool HasLargeJson(const HttpRequest& request) const;
  bool HasLargeJson(const infer::Response& response, const ResponseForm& form) const;

  Api& api_;
  const Clock& clock_;
  const HttpDoorOptions options_;
};

void Door::Serve(HttpRequest&& request, HttpResponder&& responder) const {
  auto found = FindHttpRoute(request.method, request.path);
  if (const auto* none = std::get_if<NoHttpRoute>(&found)) {
    HttpReply reply = ErrorReply(none->status, {ErrorCode::kNotFound, none->message});
    if (!none->allow.empty()) reply.headers.emplace_back("Allow", none->allow);
    return responder.Send(std::move(reply));
  }
  HttpRoute& route = std::get<HttpRoute>(found);
  if (request.method == "POST" && !HasKnownType(request)) {
    return responder.Send(ErrorReply(415, {ErrorCode::kInvalidArgument,
                                           "the body must be application/json or application/octet-stream: "
                                           "send a Content-Type that says which"}));
  }
  switch (route.action) {
    case HttpAction::kInfer:
      if (options_.json_pool != nullptr && HasLargeJson(request))
        return InferLater(std::move(route), std::move(request), std::move(responder));
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
HttpReply Door::Health(const char* key, const Status& status) const {
  if (status) return Reply(200, {{key, true}});
  const int code = options_.compat == Compat::kTriton ? 400 : 503;
  HttpReply reply = ErrorReply(code, status.error());
  reply.body = {Bytes::Copy(DumpJson({{key, false}, {"error", ErrorText(status.error())}}))};
  return reply;
}

HttpReply Door::ModelReady(const HttpRoute& route) const {
  const Status status = api_.ModelReady(route.model, route.version);
  if (status) return Reply(200, {{"name", EscapeBytes(route.model)}, {"ready", true}});
  const bool waits = HttpStatus(status.error().code, Compat::kNone) == 503;
  return waits && options_.compat == Compat::kTriton ? ErrorReply(400, status.error())
                                                     : Failed(status.error());
}

// Of a request that changes or lists what is served.
Status CheckControl(const HttpRoute& route, const HttpRequest& request) {
  if (request.body.size() > kMostControlBytes) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the body is larger than {} bytes", kMostControlBytes));
  }
  return CheckRepository(route.repository);
}

Result<Json> Door::Tell(const HttpRoute& route, const HttpRequest& request) const {
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
  TRY_STATUS(CheckControl(route, request));
  if (route.action == HttpAction::kCudaRegionStatus || route.action == HttpAction::kCudaRegionRegister ||
      route.action == HttpAction::kCudaRegionUnregister) {
    return TellOfCuda(route);
  }
  if (route.action == HttpAction::kIndex) return ToJson(api_.Index(TRY(ParseIndexBody(request.body.text()))));
  if (!options_.allow_regions) {
    return Fail(ErrorCode::kUnsupported,
                "shared memory of clients is off: start the server with --allow-client-shm");
  }
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

Result<Json> Door::TellOfCuda(const HttpRoute& route) const {
  switch (route.action) {
    case HttpAction::kCudaRegionStatus:
      TRY_STATUS(CheckCudaStatus(route.region, options_.compat));
      return Json::array();
    case HttpAction::kCudaRegionRegister:
      return std::unexpected(RefuseCudaRegion(route.region, options_.compat));
    default:
      return Json::object();  // none is registered, so each is unregistered
  }
}

void Door::LoadOrUnload(const HttpRoute& route, const HttpRequest& request, HttpResponder responder) const {
  const auto parse = [&]() -> Result<std::string> {
    TRY_STATUS(CheckControl(route, request));
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

bool Door::HasLargeJson(const HttpRequest& request) const {
  if (request.body.size() < options_.large_json) return false;
  const Result<std::optional<uint64_t>> header_length = HeaderLength(request);
  return header_length && header_length->value_or(request.body.size()) >= options_.large_json;
}

// About: an output takes more bytes in JSON than in memory.
bool Door::HasLargeJson(const infer::Response& response, const ResponseForm& form) const {
  size_t all = 0;
  for (const infer::Tensor& output : response.outputs) all += output.data.size();
  if (all < options_.large_json) return false;
  size_t json = 0;
  for (const infer::Tensor& output : response.outputs) {
    const auto wish = std::ranges::find(form.outputs, output.name, &OutputWish::name);
    const bool binary =
        wish == form.outputs.end() ? form.binary_by_default : wish->binary || wish->region.has_value();
    if (!binary) json += output.data.size();
  }
  return json >= options_.large_json;
}

void Door::InferLater(HttpRoute route, HttpRequest request, HttpResponder responder) const {
  struct Job {
    std::shared_ptr<const Door> door;
    HttpRoute route;
    HttpRequest request;
    HttpResponder responder;
  };
  const auto job =
      std::make_shared<Job>(shared_from_this(), std::move(route), std::move(request), std::move(responder));
  WorkPool::Work work = [job] {
    if (job->request.left.stop_requested()) {
      return job->responder.Send(job->door->Failed({ErrorCode::kCancelled, "the client left"}));
    }
    job->door->Infer(std::move(job->route), std::move(job->request), std::move(job->responder));
  };
  if (options_.json_pool->Offer(work)) return;
  if (options_.on_pool_full) options_.on_pool_full();
  job->responder.Send(Failed({ErrorCode::kOverloaded, "too many large JSON bodies wait to be read"}));
}

void Door::Infer(HttpRoute route, HttpRequest request, HttpResponder responder) const {
  auto flight = std::make_unique<Flight>(shared_from_this(), std::move(responder));
  Result<InferRequest> parsed = Parse(route, request);
  Exchange& exchange = flight->exchange;
  exchange.first_byte = request.first_byte;
  exchange.received = request.received;
  exchange.decoded = clock_.Now();
  exchange.model = route.model;
  exchange.version = route.version;
  if (!parsed) return Answer(std::move(flight), std::unexpected(std::move(parsed).error()));
  parsed->request.model = std::move(route.model);
  parsed->request.version = std::move(route.version);
  parsed->request.cancelled = std::move(request.left);
  parsed->protocol = Protocol::kHttp;
  parsed->first_byte = exchange.first_byte;
  parsed->received = exchange.received;
  parsed->decoded = exchange.decoded;
  flight->form = {parsed->outputs, parsed->binary_by_default};
  api_.Infer(*std::move(parsed),
             infer::Completion([flight = std::move(flight)](Result<infer::Response> result,
                                                            const infer::Times& times) mutable {
               flight->exchange.times = times;
               Answer(std::move(flight), std::move(result));
             }));
}

Result<InferRequest> Door::Parse(const HttpRoute& route, const HttpRequest& request) const {
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

void Door::Answer(std::unique_ptr<Flight> flight, Result<infer::Response> result) {
  const Door& door = *flight->door;
  if (door.options_.json_pool == nullptr || !result || !door.HasLargeJson(*result, flight->form))
    return Write(std::move(flight), std::move(result));
  struct Job {
    std::unique_ptr<Flight> flight;
    Result<infer::Response> result;
  };
  WorkPool& pool = *door.options_.json_pool;
  const auto job = std::make_shared<Job>(std::move(flight), std::move(result));
  WorkPool::Work work = [job] { Write(std::move(job->flight), std::move(job->result)); };
  if (!pool.Offer(work)) work();
}

void Door::Write(std::unique_ptr<Flight> flight, Result<infer::Response> result) {
  const Door& door = *flight->door;
  Exchange& exchange = flight->exchange;
  Result<HttpBody> body = Fail(ErrorCode::kInternal, {});
  if (result) {
    exchange.model = result->model;
    exchange.version = result->version;
    exchange.executed_batch = result->executed_batch;
    body = WriteHttpResponse(*result, flight->form);
  } else {
    body = std::unexpected(std::move(result).error());
  }
  HttpReply reply;
  if (!body) {
    exchange.error = body.error().code;
    reply = door.Failed(body.error());
  } else {
    reply.body = std::move(body->parts);
    if (body->header_length) {
      reply.content_type = "application/octet-stream";
      reply.headers.emplace_back(kHeaderLengthName, std::to_string(*body->header_length));
    }
  }
  exchange.encoded = door.clock_.Now();
  HttpResponder responder = std::move(flight->responder);
  responder.Send(std::move(reply), [flight = std::move(flight)](Instant sent) {
    flight->exchange.sent = sent;
    flight->door->api_.Observe(flight->exchange);
  });
}

}  // namespace

bool IsHealthProbe(const HttpRequest& request) {
  const auto found = FindHttpRoute(request.method, request.path);
  const auto* const route = std::get_if<HttpRoute>(&found);
  return route != nullptr &&
         (route->action == HttpAction::kServerLive || route->action == HttpAction::kServerReady ||
          route->action == HttpAction::kModelReady);
}

HttpServer::Handler MakeHttpDoor(Api& api, const Clock& clock, HttpDoorOptions options) {
  return [door = std::make_shared<const Door>(api, clock, std::move(options))](HttpRequest&& request,
                                                                               HttpResponder&& responder) {
    door->Serve(std::move(request), std::move(responder));
  };
}

}  // namespace weir::wire
