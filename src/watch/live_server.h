// The page of a watch while it runs: tiles with the last frame, boxes, names, latency and drops.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "http/http_server.h"
#include "watch/live_view.h"

namespace weir::watch {

// Answers "/" (the page), "/state.json" (results::WatchLive), "/frame/N.jpg" and "/metrics" (Prometheus).
class LiveServer {
 public:
  // `place` is "HOST:PORT"; port 0: any. kInvalidArgument and kIo name the flag --live. `view` and `clock`
  // must outlive it.
  static Result<std::unique_ptr<LiveServer>> Start(const std::string& place, const LiveView& view,
                                                   const Clock& clock);
  std::string url() const;

 private:
  explicit LiveServer(std::string host) : host_(std::move(host)) {}
  const std::string host_;
  std::unique_ptr<http::HttpServer> server_;
};

// Returns the answer to a request for `path`. Pure but for `view`.
http::HttpResponse AnswerLive(std::string_view method, std::string_view path, const LiveView& view);

// The page: one file, without anything from elsewhere.
std::string_view LivePageHtml();

}  // namespace weir::watch
