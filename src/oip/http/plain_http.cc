#include "oip/http/plain_http.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include "base/json.h"
#include "http/http_response_reader.h"
#include "http/http_transport.h"
#include "http/request_headers.h"
#include "http/server_url.h"
#include "oip/client_rules.h"
#include "oip/http/response_error.h"

namespace weir::oip {
namespace {

struct PreparedPlain final : infer::PreparedRequest {
  Bytes head;
  std::vector<Bytes> parts;
  uint64_t most_answer = 0;
  infer::RequestForm::Outputs outputs{};
};

constexpr uint64_t kMostPage = uint64_t{16} << 20;

bool IsOneLine(std::string_view text) {
  return std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

class PlainHttpClient final : public PlainHttp {
 public:
  PlainHttpClient(const http::ServerUrl& server, const http::ClientOptions& options, std::string header_lines,
                  const Clock& clock, std::unique_ptr<http::HttpTransport> transport)
      : address_(server.Address()),
        header_lines_(std::move(header_lines)),
        options_(options),
        clock_(clock),
        transport_(std::move(transport)) {}

  void Submit(infer::Call call) override;
  Result<std::shared_ptr<const infer::PreparedRequest>> Prepare(const PlainRequest& request) const override;
  Duration Drive(Instant until, Duration awake) override { return transport_->Drive(until, awake); }

 private:
  const std::string address_;
  const std::string header_lines_;  // the user's own
  const http::ClientOptions options_;
  const Clock& clock_;
  const std::unique_ptr<http::HttpTransport> transport_;
};

Result<std::shared_ptr<const infer::PreparedRequest>> PlainHttpClient::Prepare(
    const PlainRequest& request) const {
  if (request.method.empty() ||
      !std::ranges::all_of(request.method, [](unsigned char c) { return std::isupper(c); }))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("\"{}\" is no HTTP method", EscapeBytes(request.method)));
  if (request.method == "HEAD" || request.method == "CONNECT")
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{} has answers of a form of its own: use GET", request.method));
  if (!IsOneLine(request.content_type))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("\"{}\" is no content type", EscapeBytes(request.content_type)));
  if (!request.path.starts_with('/') || !IsOneLine(request.path) || request.path.contains(' '))
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("\"{}\" is no path: one begins with / and has no spaces", EscapeBytes(request.path)));
  std::string head = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", request.method, request.path, address_);
  if (!request.content_type.empty()) head += "Content-Type: " + request.content_type + "\r\n";
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT")
    head += fmt::format("Content-Length: {}\r\n", request.body.size());
  auto prepared = std::make_shared<PreparedPlain>();
  prepared->outputs = request.outputs;
  prepared->most_answer = request.most_answer;
  prepared->head = Bytes::Copy(head + header_lines_ + "\r\n");
  if (!request.body.empty()) prepared->parts.push_back(request.body);
  return prepared;
}

void PlainHttpClient::Submit(infer::Call call) {
  const auto* prepared = static_cast<const PreparedPlain*>(call.request.prepared.get());
  CHECK(prepared != nullptr);
  http::HttpExchange exchange{
      .head = prepared->head, .parts = prepared->parts, .most_answer = prepared->most_answer};
  exchange.due = DueOf(call, options_, clock_);
  exchange.cancelled = std::move(call.request.cancelled);
  const bool reads = prepared->outputs == infer::RequestForm::Outputs::kRead;
  exchange.done = [completion = std::move(call.completion), times = call.times, reads](
                      Result<http::HttpClientResponse> answer,
                      const http::HttpExchange::Stamps& stamps) mutable {
    if (!times.sent) times.sent = stamps.begun;
    times.written = stamps.written;
    times.first_byte = stamps.first_byte;
    times.done = stamps.done;
    if (!answer) return completion.Answer(std::unexpected(std::move(answer).error()), times);
    if (answer->status < 200 || answer->status > 299)
      return completion.Answer(std::unexpected(ErrorOf(*answer)), times);
    infer::Response response;
    if (reads) {
      response.outputs.push_back({.name = "body",
                                  .dtype = infer::DType::kUint8,
                                  .shape = {static_cast<int64_t>(answer->body.size())},
                                  .data = std::move(answer->body)});
    }
    completion.Answer(std::move(response), times);
  };
  transport_->Send(std::move(exchange));
}

}  // namespace

Result<std::unique_ptr<PlainHttp>> PlainHttp::Create(const std::string& url,
                                                     const http::ClientOptions& options, const Clock& clock) {
  const http::ServerUrl server = TRY(http::ParseServerUrl(url));
  if (server.scheme != "http") return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: not http://", url));
  std::string lines = http::HeaderLines(TRY(http::ParseRequestHeaders(options.headers)));
  auto transport = TRY(http::HttpTransport::Create(server, options, clock));
  return std::make_unique<PlainHttpClient>(server, options, std::move(lines), clock, std::move(transport));
}

Result<std::string> FetchText(const std::string& url, std::chrono::milliseconds timeout, const Clock& clock) {
  const size_t scheme = url.find("://"), slash = url.find('/', scheme == std::string::npos ? 0 : scheme + 3);
  const auto client =
      TRY(PlainHttp::Create(url.substr(0, slash), {.connect_timeout = timeout, .timeout = timeout}, clock));
  infer::Call call;
  call.request.prepared = TRY(client->Prepare({.method = "GET",
                                               .path = slash == std::string::npos ? "/" : url.substr(slash),
                                               .most_answer = kMostPage,
                                               .outputs = infer::RequestForm::Outputs::kRead}));
  std::promise<Result<infer::Response>> answered;
  call.completion = infer::Completion(
      [&](Result<infer::Response> result, const infer::Times&) { answered.set_value(std::move(result)); });
  client->Submit(std::move(call));
  const infer::Response response = TRY_CONTEXT(answered.get_future().get(), url);
  return std::string(response.outputs.front().data.text());
}

}  // namespace weir::oip
