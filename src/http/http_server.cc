#include "http/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <vector>

#include <boost/asio/post.hpp>
#include <boost/beast/core/string.hpp>

#include "http/cross_site.h"
#include "http/http_server_loop.h"

namespace weir::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kAcceptPause = 100ms;  // after descriptors ran out

class Server final : public HttpServer {
 public:
  Server(std::shared_ptr<ServerState> shared) : shared_(std::move(shared)) {
    for (int i = 0; i < shared_->options.threads; ++i)
      loops_.push_back(std::make_shared<ServerLoop>(shared_));
    acceptor_.emplace(loops_[0]->io);
    pause_.emplace(loops_[0]->io);
  }
  ~Server() override {
    asio::post(loops_[0]->io, [this] {
      closing_ = true;
      error_code ignored;
      acceptor_->close(ignored);
      pause_->cancel();
    });
    for (const auto& loop : loops_) loop->Stop();
  }

  Status Listen();
  int port() const override { return port_; }
  void StopAccepting() override;
  bool WaitUntilIdle(Instant until) override;

 private:
  void Accept();
  void OnAccepted(error_code error, tcp::socket socket, ServerLoop& loop);
  void Admit(tcp::socket socket, ServerLoop& loop);
  void MakeRoom(size_t looked_at, tcp::socket socket, ServerLoop& loop);
  static void Hand(ServerLoop& loop, tcp::socket socket, bool spare);
  ServerLoop& LeastBusy();

  const std::shared_ptr<ServerState> shared_;
  std::vector<std::shared_ptr<ServerLoop>> loops_;
  std::optional<tcp::acceptor> acceptor_;    // on the first loop's thread
  std::optional<asio::steady_timer> pause_;  // the same
  bool closing_ = false;                     // the same
  int port_ = 0;
};

// Why a server cannot listen, and what to do about it.
Error Unlistenable(const HttpServer::Options& o, int error) {
  const std::string reason = std::generic_category().message(error);
  switch (error) {
    case EADDRINUSE:
      return {ErrorCode::kIo, fmt::format("{} port {} is in use on {}; choose another with {}-port", o.name,
                                          o.port, o.address, o.flag_prefix)};
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
      return {ErrorCode::kIo,
              fmt::format("{} cannot listen on {}: {}; choose an address of this machine with {}-address",
                          o.name, o.address, reason, o.flag_prefix)};
    case EACCES:
      return {ErrorCode::kIo, fmt::format("{} port {} on {}: {}; choose one above 1023 with {}-port", o.name,
                                          o.port, o.address, reason, o.flag_prefix)};
    default:
      return {ErrorCode::kIo,
              fmt::format("{} cannot listen on port {} of {}: {}", o.name, o.port, o.address, reason)};
  }
}

Status Server::Listen() {
  const Options& options = shared_->options;
  error_code error;
  const auto address = asio::ip::make_address(options.address, error);
  if (error) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}-address {}: not an IP address; give one such as 127.0.0.1",
                            options.flag_prefix, options.address));
  }
  const tcp::endpoint endpoint(address, static_cast<uint16_t>(options.port));
  acceptor_->open(endpoint.protocol(), error);
  if (!error) acceptor_->set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_->bind(endpoint, error);
  if (!error) acceptor_->listen(tcp::acceptor::max_listen_connections, error);
  if (error) return std::unexpected(Unlistenable(options, error.value()));
  port_ = acceptor_->local_endpoint(error).port();
  Accept();
  for (size_t i = 0; i < loops_.size(); ++i) loops_[i]->Start(static_cast<int>(i));
  return {};
}

ServerLoop& Server::LeastBusy() {
  return **std::min_element(loops_.begin(), loops_.end(), [](const auto& a, const auto& b) {
    return a->connections.load() < b->connections.load();
  });
}

void Server::Accept() {
  ServerLoop& loop = LeastBusy();
  acceptor_->async_accept(loop.io, [this, &loop](error_code error, tcp::socket socket) {
    OnAccepted(error, std::move(socket), loop);
  });
}

void Server::OnAccepted(error_code error, tcp::socket socket, ServerLoop& loop) {
  if (closing_ || error == asio::error::operation_aborted) return;
  if (error == asio::error::no_descriptors || error == asio::error::no_memory ||
      error == asio::error::no_buffer_space) {
    pause_->expires_after(kAcceptPause);
    pause_->async_wait([this](error_code cancelled) {
      if (!cancelled) Accept();
    });
    return;
  }
  if (!error) Admit(std::move(socket), loop);
  Accept();
}

void Server::Admit(tcp::socket socket, ServerLoop& loop) {
  if (shared_->draining) return Hand(loop, std::move(socket), true);
  int open = 0;
  for (const auto& each : loops_) open += each->connections;
  if (open >= shared_->options.max_connections) return MakeRoom(0, std::move(socket), loop);
  ++loop.connections;
  Hand(loop, std::move(socket), false);
}

// Looks for an idle connection in the place of which `loop` may take `socket`. On the thread of the loop of
// that number.
void Server::MakeRoom(size_t looked_at, tcp::socket socket, ServerLoop& loop) {
  if (loops_[looked_at]->CloseOldestIdle(loop)) return Hand(loop, std::move(socket), false);
  if (looked_at + 1 == loops_.size()) return Hand(loop, std::move(socket), true);
  asio::post(loops_[looked_at + 1]->io, [this, next = looked_at + 1, &loop, s = std::move(socket)]() mutable {
    MakeRoom(next, std::move(s), loop);
  });
}

void Server::Hand(ServerLoop& loop, tcp::socket socket, bool spare) {
  asio::post(loop.io, [&loop, spare, s = std::move(socket)]() mutable { loop.Adopt(std::move(s), spare); });
}

void Server::StopAccepting() {
  if (shared_->draining.exchange(true)) return;
  for (const auto& loop : loops_) asio::post(loop->io, [&loop = *loop] { loop.Drain(); });
}

bool Server::WaitUntilIdle(Instant until) {
  MutexLock lock(shared_->mutex);
  while (shared_->open > 0) {
    if (!shared_->changed.WaitUntil(shared_->mutex, until)) return shared_->open == 0;
  }
  return true;
}

}  // namespace

std::optional<std::string_view> HttpRequest::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (boost::beast::iequals(key, name)) return value;
  }
  return std::nullopt;
}

HttpResponder::HttpResponder(std::shared_ptr<Connection> connection, uint64_t request)
    : connection_(std::move(connection)), request_(request) {}

HttpResponder& HttpResponder::operator=(HttpResponder&& other) noexcept {
  HttpResponder old(std::move(*this));
  connection_ = std::move(other.connection_);
  request_ = other.request_;
  return *this;
}

HttpResponder::~HttpResponder() {
  if (connection_) Send(ErrorResponse(500, "the request was dropped without an answer"));
}

void HttpResponder::Send(HttpResponse reply, Sent sent) {
  const std::shared_ptr<Connection> connection = std::move(connection_);
  connection->Answer(request_, std::move(reply), std::move(sent));
}

Result<std::unique_ptr<HttpServer>> HttpServer::Create(Options options, Handler handler, const Clock& clock) {
  if (options.threads < 1) {
    return Fail(ErrorCode::kInvalidArgument, "HTTP needs at least one thread");
  }
  auto policy = TRY(CrossSitePolicy::Create({.address = options.address,
                                             .origins = options.allow_origins,
                                             .hosts = options.allow_hosts,
                                             .has_flags = options.has_allow_flags}));
  handler = GuardCrossSite(std::move(handler), std::move(policy), options.align_after, options.on_refused);
  auto server =
      std::make_unique<Server>(std::make_shared<ServerState>(std::move(options), std::move(handler), clock));
  TRY_STATUS(server->Listen());
  return server;
}

}  // namespace weir::http
