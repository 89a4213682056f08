#include "watch/live_server.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/json.h"
#include "http/listen_place.h"

namespace weir::watch {
namespace {

constexpr int kMostConnections = 32;

http::HttpResponse Text(int status, std::string_view words) {
  return {.status = status, .content_type = "text/plain; charset=utf-8", .body = {Bytes::Copy(words)}};
}

// The number in "/frame/N.jpg"; -1 for another path.
int StreamOf(std::string_view path) {
  constexpr std::string_view kBefore = "/frame/", kAfter = ".jpg";
  if (!path.starts_with(kBefore) || !path.ends_with(kAfter)) return -1;
  path.remove_prefix(kBefore.size());
  path.remove_suffix(std::min(kAfter.size(), path.size()));
  int stream = -1;
  const auto [end, error] = std::from_chars(path.data(), path.data() + path.size(), stream);
  return error == std::errc{} && end == path.data() + path.size() ? stream : -1;
}

}  // namespace

http::HttpResponse AnswerLive(std::string_view method, std::string_view path, const LiveView& view) {
  if (method != "GET" && method != "HEAD") {
    http::HttpResponse refusal = Text(405, "the page is read with GET\n");
    refusal.headers = {{"Allow", "GET, HEAD"}};
    return refusal;
  }
  if (path == "/") {
    return {.content_type = "text/html; charset=utf-8",
            .headers = {{"Cache-Control", "no-store"},
                        {"Content-Security-Policy",
                         "default-src 'none'; img-src 'self'; connect-src 'self'; style-src 'unsafe-inline'; "
                         "script-src 'unsafe-inline'; frame-ancestors 'none'"}},
            .body = {Bytes::Copy(LivePageHtml())}};
  }
  if (path == "/state.json")
    return {.headers = {{"Cache-Control", "no-store"}},
            .body = {Bytes::Copy(DumpJson(view.State().ToJson()))}};
  if (path == "/metrics")
    return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
            .body = {Bytes::Copy(MetricsText(view.State()))}};
  if (const int stream = StreamOf(path); stream >= 0) {
    auto jpeg = view.Jpeg(stream);
    if (!jpeg) return Text(404, jpeg.error().message + "\n");
    return {
        .content_type = "image/jpeg", .headers = {{"Cache-Control", "no-store"}}, .body = {*std::move(jpeg)}};
  }
  return Text(404, "there are /, /state.json, /metrics and /frame/NUMBER.jpg\n");
}

Result<std::unique_ptr<LiveServer>> LiveServer::Start(const std::string& place, const LiveView& view,
                                                      const Clock& clock) {
  const http::ListenPlace listen = TRY(http::ParseListenPlace("--live", place));
  std::unique_ptr<LiveServer> live(new LiveServer(listen.host));
  live->server_ = TRY(http::HttpServer::Create(
      {.name = "live page",
       .flag_prefix = "--live",
       .address = listen.host,
       .port = listen.port,
       .max_body = 0,
       .max_connections = kMostConnections,
       .is_probe = [](const http::HttpRequest&) { return true; }},
      [&view](http::HttpRequest request, http::HttpResponder responder) {
        responder.Send(AnswerLive(request.method, request.path, view));
      },
      clock));
  return live;
}

std::string LiveServer::url() const { return fmt::format("http://{}:{}/", host_, server_->port()); }

}  // namespace weir::watch
