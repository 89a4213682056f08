// HTTP/1.1 as bytes: connections, limits and timeouts. Knows nothing of inference.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "http/http_timeouts.h"

namespace weir::http {

struct HttpRequest {
  Bytes head;  // what the views below look into
  std::string_view method;
  std::string_view path;   // as sent, without the query
  std::string_view query;  // after '?'
  std::string_view host;   // the target's own, or the header's; empty: none
  std::optional<std::string_view> origin;
  std::vector<std::pair<std::string_view, std::string_view>> headers;
  Bytes body;
  Instant first_byte{}, received{};
  std::stop_token left;  // asked for when the client has gone before it had its answer

  std::optional<std::string_view> Header(std::string_view name) const;  // without regard to case
};

struct HttpResponse {
  int status = 200;
  std::string_view content_type = "application/json";             // a literal, as the names of headers
  std::vector<std::pair<std::string_view, std::string>> headers;  // beside those of the transport
  std::vector<Bytes> body;                                        // parts, sent as they lie
};

// The right to answer one request, once, from any thread. Dropping it answers 500. It may outlive the server
// (then nothing is sent), but not the server's clock.
class HttpResponder {
 public:
  using Sent = std::move_only_function<void(Instant)>;
  // Where answers go. Thread-safe.
  class Connection {
   public:
    virtual ~Connection() = default;
    virtual void Answer(uint64_t request, HttpResponse reply, Sent sent) = 0;
  };

  HttpResponder(std::shared_ptr<Connection> connection, uint64_t request);
  HttpResponder(HttpResponder&&) noexcept = default;
  HttpResponder& operator=(HttpResponder&&) noexcept;
  ~HttpResponder();

  // `sent` is called when the last byte has been handed to the kernel, or the client has gone; it must not
  // block.
  void Send(HttpResponse reply, Sent sent = {});

 private:
  std::shared_ptr<Connection> connection_;
  uint64_t request_ = 0;
};

// The actions of a server that protects itself.
enum class HttpEvent {
  kTooManyConnections,  // a connection beyond the limit was refused
  kTooManyBytes,        // a body was refused: the bytes in flight are used up
  kTooSlow,             // a request or the reading of a response took too long
  kStopping,            // a connection was refused: the server is stopping
  kIdleClosed,          // an idle connection was closed to make room for a new one
  kMalformed,           // what came is no HTTP, or goes beyond a limit of it
};

// Thread-safe. Answers go out in the order of their requests (pipelining). What is not HTTP gets 400, headers
// or bodies over their limit 431 and 413 before they are read, an unknown coding 415 or 501, a client that
// stalls or is slow is cut off; body bytes over their limit get 503.
//
// At the limit of connections a new one takes the place of the one that has been idle for longest. Where none
// is idle, up to Options::spare_connections() more are accepted for a short time: probes on them are
// answered, anything else gets 503 as soon as its headers have come. The newest of them wins, so clients that
// hold connections open cannot keep a probe out.
class HttpServer {
 public:
  struct Options {
    std::string name = "HTTP";           // of the server, in errors
    std::string flag_prefix = "--http";  // errors name the flags PREFIX-port and PREFIX-address
    std::string address = "127.0.0.1";
    int port = 8000;  // 0: any
    int threads = 1;  // named "http-N"
    size_t max_body = size_t{64} << 20;
    size_t max_header = 16 << 10;
    int max_connections = 1024;
    size_t max_bytes_in_flight = size_t{1} << 30;  // bodies of all connections together, as they come
    HttpTimeouts timeouts;
    // Whether a request without a body is answered beyond the limit of connections, and on new connections
    // while the server stops. Empty: none is. Thread-safe.
    std::function<bool(const HttpRequest&)> is_probe;
    // Called on an "http-N" thread; must not block. May be empty.
    std::function<void(HttpEvent)> on_event;
    // Which web pages may call, as CrossSitePolicy. Others get 403: `on_refused`, which may be empty, is
    // called with the reason as `on_event` is.
    std::vector<std::string> allow_origins, allow_hosts;
    bool has_allow_flags = false;  // CrossSitePolicy's has_flags
    std::function<void(const std::string&)> on_refused;
    // A header that gives a number of bytes: the body is laid so that the byte after so many is aligned
    // to 64. Pages may read it.
    std::string align_after;

    // Connections beyond the limit that are held at once.
    int spare_connections() const { return std::clamp(max_connections / 4, 8, 64); }
  };
  // Called on an "http-N" thread; must not block.
  using Handler = std::function<void(HttpRequest, HttpResponder)>;

  // kInvalidArgument names an origin or a host that is none. kIo says why the address or the port cannot be
  // had, and names the flag. `clock` must outlive the server.
  static Result<std::unique_ptr<HttpServer>> Create(Options options, Handler handler, const Clock& clock);
  virtual ~HttpServer() = default;  // cuts what is still open
  virtual int port() const = 0;
  // Connections close after their next answer ("Connection: close"), those with nothing to answer a tenth of
  // a second later, so that a request on its way still gets its answer. New connections get 503, but for
  // probes, until the server goes. Returns at once.
  virtual void StopAccepting() = 0;
  // After StopAccepting: waits until all is answered and sent, or until `until`. False: something was left.
  virtual bool WaitUntilIdle(Instant until) = 0;
};

}  // namespace weir::http
