#include "oip/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include "base/json.h"
#include "base/mutex.h"
#include "http/event_loop.h"
#include "http/http_response_reader.h"
#include "http/http_transport.h"
#include "http/request_headers.h"
#include "http/server_url.h"
#include "oip/client_rules.h"
#include "oip/clients.h"
#include "oip/http/codec.h"
#include "oip/http/response_error.h"
#include "oip/http/server.h"
#include "oip/model_facts.h"

namespace weir::oip {
namespace {

// Appends `name` as a part of a path.
void AppendPart(std::string_view name, std::string& path) {
  for (const char c : name) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("-._~").contains(c);
    plain ? path += c : path += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
}

std::string ModelPath(const std::string& model, const std::string& version) {
  std::string path = "/v2/models/";
  AppendPart(model, path);
  if (version.empty()) return path;
  AppendPart(version, path += "/versions/");
  return path;
}

// A body up to so many bytes goes into one piece with its head: cheaper copied once than gathered each time.
constexpr size_t kWithHead = 4096;

// The bytes of a request.
struct PreparedHttp final : infer::PreparedRequest {
  Bytes head;
  std::vector<Bytes> parts;
  Wanted wanted;
};

// Answers that were found whole: one with the same JSON and the same size is whole too, and is not read
// again. Thread-safe.
class WholeAnswers {
 public:
  bool Has(const http::HttpClientResponse& answer) const EXCLUDES(mutex_);
  void Add(const http::HttpClientResponse& answer) EXCLUDES(mutex_);

 private:
  static constexpr size_t kMost = 8;            // a pool of requests has few shapes
  static constexpr size_t kLongest = 16 << 10;  // of the JSON

  struct Form {
    std::string json;
    size_t size = 0;  // of the body
  };
  static std::string_view JsonOf(const http::HttpClientResponse& answer) {
    return answer.body.text().substr(0, *answer.header_length);
  }

  mutable Mutex mutex_;
  std::vector<Form> forms_ GUARDED_BY(mutex_);
  size_t next_ GUARDED_BY(mutex_) = 0;  // the oldest, once there are kMost
};

bool WholeAnswers::Has(const http::HttpClientResponse& answer) const {
  if (!answer.header_length) return false;  // how long it is lies in its JSON alone
  const std::string_view json = JsonOf(answer);
  MutexLock lock(mutex_);
  return std::ranges::any_of(
      forms_, [&](const Form& form) { return form.size == answer.body.size() && form.json == json; });
}

void WholeAnswers::Add(const http::HttpClientResponse& answer) {
  if (!answer.header_length || *answer.header_length > kLongest) return;
  Form form{.json = std::string(JsonOf(answer)), .size = answer.body.size()};
  MutexLock lock(mutex_);
  if (forms_.size() < kMost) {
    forms_.push_back(std::move(form));
  } else {
    forms_[std::exchange(next_, (next_ + 1) % kMost)] = std::move(form);
  }
}

// The limits of what is told of a server or a model: labels can make it long.
constexpr JsonLimits kQuestionLimits{.bytes = size_t{64} << 20, .values = size_t{1} << 20};

class HttpClient final : public infer::Endpoint {
 public:
  HttpClient(const http::ServerUrl& server, const http::ClientOptions& options, std::string header_lines,
             const Clock& clock, std::unique_ptr<http::HttpTransport> transport)
      : address_(server.Address()),
        header_lines_(std::move(header_lines)),
        options_(options),
        clock_(clock),
        transport_(std::move(transport)) {}

  void Submit(infer::Call call) override;
  std::shared_ptr<const infer::PreparedRequest> Prepare(const infer::Request& request,
                                                        const infer::RequestForm& form) override;
  Status RegisterRegion(const std::string& name, const std::string& key, uint64_t byte_size) override;
  Status UnregisterRegion(const std::string& name) override;
  Duration Drive(Instant until, Duration awake) override { return transport_->Drive(until, awake); }
  Result<std::vector<std::string>> Models() override;
  Result<infer::ModelInfo> Info(const std::string& model, const std::string& version) override;
  Result<std::vector<std::string>> Extensions() override;
  Result<infer::PhaseTotals> Statistics(const std::string& model, const std::string& version) override;

 private:
  std::string Head(std::string_view verb, std::string_view path, const HttpBody& body) const;
  Result<infer::Response> Understand(Result<http::HttpClientResponse> answer, const Wanted& wanted);
  // A question that is not an inference: the JSON of its answer, an empty object where it has none.
  Result<Json> Ask(std::string_view verb, const std::string& path, std::string_view body = {});

  const std::string address_;
  const std::string header_lines_;  // the user's own
  const http::ClientOptions options_;
  const Clock& clock_;
  WholeAnswers whole_answers_;
  const std::unique_ptr<http::HttpTransport> transport_;
};

std::string HttpClient::Head(std::string_view verb, std::string_view path, const HttpBody& body) const {
  std::string head;
  head.reserve(256);
  head.append(verb).append(" ").append(path).append(" HTTP/1.1\r\nHost: ").append(address_);
  if (const auto length = body.header_length) {
    head.append("\r\nContent-Type: application/octet-stream\r\n").append(kHeaderLengthName).append(": ");
    head.append(std::to_string(*length));
  } else if (!body.parts.empty()) {
    head.append("\r\nContent-Type: application/json");
  }
  if (!body.parts.empty()) head.append("\r\nContent-Length: ").append(std::to_string(body.size()));
  return head.append("\r\n").append(header_lines_).append("\r\n");
}

Result<infer::Response> HttpClient::Understand(Result<http::HttpClientResponse> answer,
                                               const Wanted& wanted) {
  if (!answer) return std::unexpected(std::move(answer).error());
  if (answer->status != 200) return std::unexpected(ErrorOf(*answer));
  if (wanted.nothing() && whole_answers_.Has(*answer)) return infer::Response{};
  auto response = ParseHttpResponse(answer->body, answer->header_length, wanted.outputs);
  if (response && wanted.nothing()) whole_answers_.Add(*answer);
  return Readable(WithDurations(std::move(response), wanted), address_);
}

std::shared_ptr<const infer::PreparedRequest> HttpClient::Prepare(const infer::Request& request,
                                                                  const infer::RequestForm& form) {
  auto prepared = std::make_shared<PreparedHttp>();
  HttpBody body = WriteHttpRequest(request, form);
  std::string head = Head("POST", ModelPath(request.model, request.version) + "/infer", body);
  if (body.size() <= kWithHead) {
    for (const Bytes& part : body.parts) head += part.text();
    body.parts.clear();
  }
  prepared->head = Bytes::Copy(head);
  prepared->parts = std::move(body.parts);
  prepared->wanted = {.outputs = form.outputs, .durations = request.durations};
  return prepared;
}

void HttpClient::Submit(infer::Call call) {
  http::HttpExchange exchange;
  Wanted wanted{.durations = call.request.durations};
  if (const auto* prepared = static_cast<const PreparedHttp*>(call.request.prepared.get())) {
    exchange.head = prepared->head;
    exchange.parts = prepared->parts;
    wanted = prepared->wanted;
  } else {
    HttpBody body = WriteHttpRequest(call.request);
    exchange.head =
        Bytes::Copy(Head("POST", ModelPath(call.request.model, call.request.version) + "/infer", body));
    exchange.parts = std::move(body.parts);
  }
  exchange.due = DueOf(call, options_, clock_);
  exchange.cancelled = std::move(call.request.cancelled);
  exchange.done = [this, completion = std::move(call.completion), times = call.times, wanted](

                      Result<http::HttpClientResponse> answer,
                      const http::HttpExchange::Stamps& stamps) mutable {
    if (!times.sent) times.sent = stamps.begun;
    times.written = stamps.written;
    times.first_byte = stamps.first_byte;
    times.done = stamps.done;
    completion.Answer(Understand(std::move(answer), wanted), times);
  };
  call.request = {};  // the transport alone holds the payload, and lets go of it when it is sent
  transport_->Send(std::move(exchange));
}

Result<Json> HttpClient::Ask(std::string_view verb, const std::string& path, std::string_view text) {
  HttpBody body;
  if (!text.empty()) body.parts.push_back(Bytes::Copy(text));
  std::promise<Result<http::HttpClientResponse>> promise;
  http::HttpExchange exchange;
  exchange.head = Bytes::Copy(Head(verb, path, body));
  exchange.parts = std::move(body.parts);
  exchange.due = clock_.Now() + QuestionTime(options_);
  exchange.most_answer = kQuestionLimits.bytes;
  exchange.done = [&promise](Result<http::HttpClientResponse> answer, const http::HttpExchange::Stamps&) {
    promise.set_value(std::move(answer));
  };
  transport_->Send(std::move(exchange));
  const http::HttpClientResponse answer = TRY(promise.get_future().get());
  if (answer.status != 200) return std::unexpected(ErrorOf(answer));
  if (answer.body.empty()) return Json::object();
  return Readable(ParseJson(answer.body.text(), kQuestionLimits), address_);
}

// An old server, or one without the extension, does not know the question.
bool NotKnown(const Error& error) {
  return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kUnsupported ||
         error.code == ErrorCode::kInvalidArgument;
}

Status HttpClient::RegisterRegion(const std::string& name, const std::string& key, uint64_t byte_size) {
  std::string path = "/v2/systemsharedmemory/region/";
  AppendPart(name, path);
  TRY(Ask("POST", path + "/register", DumpJson({{"key", key}, {"offset", 0}, {"byte_size", byte_size}})));
  return {};
}

Status HttpClient::UnregisterRegion(const std::string& name) {
  std::string path = "/v2/systemsharedmemory/region/";
  AppendPart(name, path);
  TRY(Ask("POST", path + "/unregister", "{}"));
  return {};
}

Result<std::vector<std::string>> HttpClient::Models() {
  const Result<Json> index = Ask("POST", "/v2/repository/index", R"({"ready":true})");
  if (!index && NotKnown(index.error()))
    return Fail(ErrorCode::kUnsupported, fmt::format("{} does not list its models", address_));
  return Readable(ReadReadyModels(TRY(index)), address_);
}

Result<infer::ModelInfo> HttpClient::Info(const std::string& model, const std::string& version) {
  const std::string path = ModelPath(model, version);
  infer::ModelInfo info = TRY(Readable(ReadMetadata(TRY(Ask("GET", path))), address_));
  const Result<Json> configuration = Ask("GET", path + "/config");
  if (!configuration && !NotKnown(configuration.error())) return std::unexpected(configuration.error());
  if (configuration) TRY_STATUS(Readable(AddConfiguration(*configuration, info), address_));
  return info;
}

Result<std::vector<std::string>> HttpClient::Extensions() {
  const Result<Json> server = Ask("GET", "/v2");
  if (!server && NotKnown(server.error())) return std::vector<std::string>();
  return ReadExtensions(TRY(server));
}

Result<infer::PhaseTotals> HttpClient::Statistics(const std::string& model, const std::string& version) {
  const Result<Json> statistics = Ask("GET", ModelPath(model, version) + "/stats");
  if (!statistics && NotKnown(statistics.error()))
    return Fail(ErrorCode::kUnsupported, fmt::format("{} keeps no statistics of {}", address_, model));
  return Readable(ReadStatistics(TRY(statistics)), address_);
}

}  // namespace

Result<std::vector<std::unique_ptr<infer::Endpoint>>> MakeHttpClients(const std::vector<std::string>& urls,
                                                                      const http::ClientOptions& options,
                                                                      const Clock& clock) {
  std::shared_ptr<http::EventLoop> loop;  // one for all, so that one thread drives all
  if (options.threads == 0) loop = TRY(http::EventLoop::Create(clock));
  std::vector<std::unique_ptr<infer::Endpoint>> clients;
  for (const std::string& url : urls) {
    const http::ServerUrl server = TRY(http::ParseServerUrl(url));
    if (server.scheme != "http")
      return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: not http://", url));
    std::string lines = http::HeaderLines(TRY(http::ParseRequestHeaders(options.headers)));
    auto transport = TRY(http::HttpTransport::Create(server, options, clock, loop));
    clients.push_back(
        std::make_unique<HttpClient>(server, options, std::move(lines), clock, std::move(transport)));
  }
  return clients;
}

}  // namespace weir::oip
