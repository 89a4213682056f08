#include "wire/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <list>
#include <span>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/string.hpp>

#include "base/mutex.h"
#include "base/thread.h"
#include "wire/byte_budget.h"
#include "wire/http_answers.h"
#include "wire/http_reader.h"
#include "wire/status.h"

namespace weir::wire {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kPipelined = 32;     // requests of one connection that may be open; the next is not read
constexpr size_t kGathered = 64;      // parts in one write, Asio's own limit
constexpr int kRefusedAtOnce = 64;    // connections beyond the limit that are told so; more are cut
constexpr auto kSweep = 500ms;        // how often stalled connections are looked for
constexpr auto kLinger = 2s;          // how long a client may take to close after the last answer
constexpr auto kIdleGrace = 100ms;    // an idle connection stays open for after StopAccepting
constexpr auto kAcceptPause = 100ms;  // after descriptors ran out

HttpReply ErrorReply(int status, std::string message) {
  HttpReply reply{.status = status,
                  .body = {Bytes::Copy(ErrorBody({ErrorCode::kInvalidArgument, std::move(message)}))}};
  if (status == 503) reply.headers.emplace_back("Retry-After", "1");
  if (status == 415) reply.headers.emplace_back("Accept-Encoding", "identity");
  return reply;
}

// What the threads of a server share.
struct Shared {
  Shared(HttpServer::Options given, HttpServer::Handler called, const Clock& c)
      : options(std::move(given)),
        limits{options.max_header, options.max_body, options.align_after},
        handler(std::move(called)),
        clock(c),
        budget(std::make_shared<ByteBudget>(options.max_bytes_in_flight)) {}

  const HttpServer::Options options;
  const HttpLimits limits;
  const HttpServer::Handler handler;
  const Clock& clock;
  const std::shared_ptr<ByteBudget> budget;
  std::atomic<bool> draining = false;

  // Connections whose last answer has not been sent.
  Mutex mutex;
  CondVar changed;
  int open GUARDED_BY(mutex) = 0;
};

class SocketConnection;

// One "http-N" thread and its connections. Outlives its server for as long as a responder holds a connection.
class Loop : public std::enable_shared_from_this<Loop> {
 public:
  explicit Loop(std::shared_ptr<Shared> s) : shared(std::move(s)), sweep_(io) {}

  void Start(int number);
  void Adopt(tcp::socket socket, bool refuse);  // on this thread
  void Release(std::list<std::shared_ptr<SocketConnection>>::iterator at) { connections_.erase(at); }
  void SweepSoon(Duration in);
  void Drain();  // on this thread
  // Ends every connection and the thread.
  void Stop();

  struct Delivery {
    std::shared_ptr<SocketConnection> to;
    uint64_t request;
    HttpReply reply;
    HttpResponder::Sent sent;
  };
  // From another thread. Answers that come while the thread is busy wait for it together.
  void Deliver(Delivery delivery);
  bool OnThread() const { return std::this_thread::get_id() == thread_id_.load(std::memory_order_relaxed); }

  const std::shared_ptr<Shared> shared;
  asio::io_context io{1};
  std::atomic<int> connections = 0;  // adopted, or about to be

 private:
  void TakeDeliveries();
  void Sweep();

  std::list<std::shared_ptr<SocketConnection>> connections_;  // of the thread, as the timer
  asio::steady_timer sweep_;
  bool stopping_ = false;
  std::atomic<std::thread::id> thread_id_{};

  Mutex mutex_;
  std::vector<Delivery> deliveries_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;

  std::jthread thread_;
};

// All but Answer is called on the loop's thread.
class SocketConnection final : public HttpResponder::Connection,
                               public std::enable_shared_from_this<SocketConnection> {
 public:
  SocketConnection(std::shared_ptr<Loop> loop, tcp::socket socket)
      : loop_(std::move(loop)),
        shared_(*loop_->shared),
        socket_(std::move(socket)),
        reader_(shared_.limits, shared_.budget),
        last_progress_(shared_.clock.Now()) {}

  std::list<std::shared_ptr<SocketConnection>>::iterator place;  // in the loop's list

  void Start() {
    if (shared_.draining) answers_.CloseWithLast();
    Read();
  }
  void Refuse(int status, std::string message);

  void Answer(uint64_t request, HttpReply reply, HttpResponder::Sent sent) override {
    if (!loop_->OnThread())
      return loop_->Deliver({shared_from_this(), request, std::move(reply), std::move(sent)});
    Put(request, std::move(reply), std::move(sent));
  }
  void Put(uint64_t request, HttpReply reply, HttpResponder::Sent sent);
  // A request that is not here whole is not taken up any more.
  void Drain() {
    answers_.CloseWithLast();
    const bool half = reader_.phase() != HttpReader::Phase::kIdle;
    if (half && answers_.open() == 0 && !ending_) Refuse(503, "the server is stopping");
  }
  void CutIfStalled(Instant now);
  void Close();

 private:
  void Read();
  void OnRead(error_code error, size_t size);
  void Process();
  bool TakeRequests();  // true: it stopped for there are too many, and more may be waiting
  void Take(HttpRequest request);
  void Flush();
  void WaitToWrite();
  void Finish();

  const std::shared_ptr<Loop> loop_;
  Shared& shared_;
  tcp::socket socket_;
  HttpReader reader_;
  HttpAnswers answers_;
  Instant last_progress_;    // bytes came, or went
  Instant last_answered_{};  // the last answer went out whole
  bool reading_ = false, writing_ = false, processing_ = false;
  bool full_ = false;       // nothing is read before answers have gone out
  bool ending_ = false;     // no further request is read; the last answer is on its way
  bool left_ = false;       // the client sends no more: nothing follows the answers it is owed
  bool lingering_ = false;  // it was sent: waits for the client to close
  bool closed_ = false;
};

void SocketConnection::Read() {
  if (reading_ || closed_ || (full_ && !ending_)) return;
  reading_ = true;
  const std::span<std::byte> space = reader_.Space();
  socket_.async_read_some(asio::buffer(space.data(), space.size()),
                          [self = shared_from_this()](error_code error, size_t size) {
                            self->reading_ = false;
                            self->OnRead(error, size);
                          });
}

void SocketConnection::OnRead(error_code error, size_t size) {
  if (closed_) return;
  if (error) {
    // Half a connection may still take what is owed; but who closed it is taken to have left.
    answers_.ClientLeft();
    ending_ = left_ = true;
    if (answers_.open() == 0 || error != asio::error::eof) Close();
    return;
  }
  last_progress_ = shared_.clock.Now();
  if (ending_) {
    reader_.Discard();
    return Read();
  }
  reader_.Filled(size, last_progress_);
  Process();
}

// Answers that are there at once go out together.
void SocketConnection::Process() {
  do {
    processing_ = true;
    full_ = TakeRequests();
    processing_ = false;
    Flush();
  } while (full_ && !ending_ && !closed_ && answers_.open() < kPipelined);
  Read();
}

bool SocketConnection::TakeRequests() {
  while (!ending_ && answers_.open() < kPipelined) {
    auto next = reader_.Next();
    if (auto* request = std::get_if<HttpRequest>(&next)) {
      Take(std::move(*request));
    } else if (auto* refusal = std::get_if<HttpRefusal>(&next)) {
      Refuse(refusal->status, std::move(refusal->message));
    } else {
      if (reader_.TakeExpectsContinue()) answers_.Continue();
      return false;
    }
  }
  return !ending_;
}

void SocketConnection::Take(HttpRequest request) {
  const uint64_t number = answers_.Open(
      {.close = !reader_.keep_alive(), .is_head = reader_.is_head(), .is_http10 = reader_.is_http10()});
  ending_ |= !reader_.keep_alive();
  request.left = answers_.left(number);
  shared_.handler(std::move(request), HttpResponder(shared_from_this(), number));
}

void SocketConnection::Refuse(int status, std::string message) {
  ending_ = true;
  const uint64_t number = answers_.Open({.close = true});
  Put(number, ErrorReply(status, std::move(message)), {});
  Read();
}

void SocketConnection::Put(uint64_t request, HttpReply reply, HttpResponder::Sent sent) {
  if (closed_ || lingering_) {
    if (sent) sent(shared_.clock.Now());
    return;
  }
  ending_ |= answers_.Put(request, std::move(reply), std::move(sent), shared_.budget);
  if (processing_) return;  // sent together with what else is read now
  Flush();
  if (full_) Process();
}

void SocketConnection::Flush() {
  while (!writing_ && !closed_ && answers_.ready()) {
    std::array<std::span<const std::byte>, kGathered> parts;
    std::array<asio::const_buffer, kGathered> buffers;
    const size_t count = answers_.Gather(parts);
    for (size_t i = 0; i < count; ++i) buffers[i] = asio::const_buffer(parts[i].data(), parts[i].size());
    error_code error;
    const size_t sent = socket_.write_some(std::span(buffers.data(), count), error);
    if (error == asio::error::would_block) return WaitToWrite();
    if (error) return Close();
    last_progress_ = last_answered_ = shared_.clock.Now();
    answers_.Advance(sent, last_progress_);
    if (answers_.closed()) return Finish();
  }
  if (left_ && answers_.open() == 0) Close();
}

void SocketConnection::WaitToWrite() {
  writing_ = true;
  socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](error_code error) {
    self->writing_ = false;
    if (error) return self->Close();
    self->Flush();
    if (self->full_) self->Process();
  });
}

// After the last answer: a close with bytes unread would make the kernel take the answer back.
void SocketConnection::Finish() {
  answers_.Abandon(last_progress_);
  lingering_ = ending_ = true;
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  {
    MutexLock lock(shared_.mutex);
    --shared_.open;
    shared_.changed.NotifyAll();
  }
}

void SocketConnection::CutIfStalled(Instant now) {
  const auto passed = [&](Instant since, Duration limit) { return now - since > limit; };
  const HttpServer::Options& options = shared_.options;
  if (lingering_) {
    if (passed(last_answered_, kLinger)) Close();
  } else if (writing_) {
    if (passed(last_progress_, options.body_timeout)) Close();
  } else if (answers_.open() > 0 || ending_) {
    // The server's turn.
  } else if (reader_.phase() == HttpReader::Phase::kIdle) {
    if (shared_.draining || passed(last_progress_, options.idle_timeout)) Close();
  } else if (reader_.phase() == HttpReader::Phase::kHead) {
    const Instant since = std::max(reader_.first_byte(), last_answered_);
    if (passed(since, options.header_timeout)) Refuse(408, "the headers took too long to come");
  } else if (passed(last_progress_, options.body_timeout)) {
    Refuse(408, "the body stopped coming");
  }
}

void SocketConnection::Close() {
  if (std::exchange(closed_, true)) return;
  const auto self = shared_from_this();
  error_code ignored;
  socket_.close(ignored);
  answers_.Abandon(shared_.clock.Now());
  if (!lingering_) {
    MutexLock lock(shared_.mutex);
    --shared_.open;
    shared_.changed.NotifyAll();
  }
  --loop_->connections;
  loop_->Release(place);
}

void Loop::Start(int number) {
  SweepSoon(kSweep);
  thread_ = StartThread(fmt::format("http-{}", number), [this](std::stop_token) {
    thread_id_ = std::this_thread::get_id();
    io.run();
  });
}

void Loop::Adopt(tcp::socket socket, bool refuse) {
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.set_option(tcp::no_delay(true), ignored);
  {
    MutexLock lock(shared->mutex);
    ++shared->open;
  }
  auto connection = std::make_shared<SocketConnection>(shared_from_this(), std::move(socket));
  connection->place = connections_.insert(connections_.end(), connection);
  if (stopping_) return connection->Close();
  if (refuse) return connection->Refuse(503, "too many connections");
  connection->Start();
}

void Loop::SweepSoon(Duration in) {
  if (stopping_) return;
  sweep_.expires_after(in);
  sweep_.async_wait([this](error_code error) {
    if (!error) Sweep();
  });
}

void Loop::Sweep() {
  const Instant now = shared->clock.Now();
  for (auto at = connections_.begin(); at != connections_.end();) {
    const std::shared_ptr<SocketConnection> connection = *at++;  // it may take itself off the list
    connection->CutIfStalled(now);
  }
  SweepSoon(shared->draining ? Duration(kIdleGrace) : Duration(kSweep));
}

void Loop::Drain() {
  for (const auto& connection : connections_) connection->Drain();
  SweepSoon(kIdleGrace);
}

void Loop::Deliver(Delivery delivery) {
  {
    MutexLock lock(mutex_);
    if (!closed_) {
      deliveries_.push_back(std::move(delivery));
      if (deliveries_.size() == 1) asio::post(io, [this] { TakeDeliveries(); });
      return;
    }
  }
  if (delivery.sent) delivery.sent(shared->clock.Now());
}

void Loop::TakeDeliveries() {
  std::vector<Delivery> taken;
  {
    MutexLock lock(mutex_);
    taken.swap(deliveries_);
  }
  for (Delivery& d : taken) d.to->Put(d.request, std::move(d.reply), std::move(d.sent));
}

void Loop::Stop() {
  asio::post(io, [this] {
    stopping_ = true;
    while (!connections_.empty()) connections_.front()->Close();
    sweep_.cancel();
  });
  if (thread_.joinable()) thread_.join();  // not begun where the address could not be had
  {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  TakeDeliveries();
}

class Server final : public HttpServer {
 public:
  Server(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {
    for (int i = 0; i < shared_->options.threads; ++i) loops_.push_back(std::make_shared<Loop>(shared_));
    acceptor_.emplace(loops_[0]->io);
    pause_.emplace(loops_[0]->io);
  }
  ~Server() override {
    StopAccepting();
    for (const auto& loop : loops_) loop->Stop();
  }

  Status Listen();
  int port() const override { return port_; }
  void StopAccepting() override;
  bool WaitUntilIdle(Instant until) override;

 private:
  void Accept();
  void OnAccepted(error_code error, tcp::socket socket, Loop& loop);
  Loop& LeastBusy();

  const std::shared_ptr<Shared> shared_;
  std::vector<std::shared_ptr<Loop>> loops_;
  std::optional<tcp::acceptor> acceptor_;    // on the first loop's thread
  std::optional<asio::steady_timer> pause_;  // the same
  int port_ = 0;
};

Status Server::Listen() {
  const Options& options = shared_->options;
  const auto fail = [&](const error_code& error) {
    return FailErrno(fmt::format("listen on {}:{} for HTTP", options.address, options.port), error.value());
  };
  error_code error;
  const auto address = asio::ip::make_address(options.address, error);
  if (error) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("listen on {}: not an IP address; give one such as 127.0.0.1", options.address));
  }
  const tcp::endpoint endpoint(address, static_cast<uint16_t>(options.port));
  acceptor_->open(endpoint.protocol(), error);
  if (!error) acceptor_->set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_->bind(endpoint, error);
  if (!error) acceptor_->listen(tcp::acceptor::max_listen_connections, error);
  if (error) return fail(error);
  port_ = acceptor_->local_endpoint(error).port();
  Accept();
  for (size_t i = 0; i < loops_.size(); ++i) loops_[i]->Start(static_cast<int>(i));
  return {};
}

Loop& Server::LeastBusy() {
  return **std::min_element(loops_.begin(), loops_.end(), [](const auto& a, const auto& b) {
    return a->connections.load() < b->connections.load();
  });
}

void Server::Accept() {
  Loop& loop = LeastBusy();
  acceptor_->async_accept(loop.io, [this, &loop](error_code error, tcp::socket socket) {
    OnAccepted(error, std::move(socket), loop);
  });
}

void Server::OnAccepted(error_code error, tcp::socket socket, Loop& loop) {
  if (shared_->draining || error == asio::error::operation_aborted) return;
  if (error == asio::error::no_descriptors || error == asio::error::no_memory ||
      error == asio::error::no_buffer_space) {
    pause_->expires_after(kAcceptPause);
    pause_->async_wait([this](error_code cancelled) {
      if (!cancelled) Accept();
    });
    return;
  }
  if (!error) {
    int open = 0;
    for (const auto& each : loops_) open += each->connections;
    const int limit = shared_->options.max_connections;
    if (open < limit + kRefusedAtOnce) {
      ++loop.connections;
      asio::post(loop.io, [&loop, refuse = open >= limit, s = std::move(socket)]() mutable {
        loop.Adopt(std::move(s), refuse);
      });
    }
  }
  Accept();
}

void Server::StopAccepting() {
  if (shared_->draining.exchange(true)) return;
  asio::post(loops_[0]->io, [this] {
    error_code ignored;
    acceptor_->close(ignored);
    pause_->cancel();
  });
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
  if (connection_) Send(ErrorReply(500, "the request was dropped without an answer"));
}

void HttpResponder::Send(HttpReply reply, Sent sent) {
  const std::shared_ptr<Connection> connection = std::move(connection_);
  connection->Answer(request_, std::move(reply), std::move(sent));
}

Result<std::unique_ptr<HttpServer>> HttpServer::Create(Options options, Handler handler, const Clock& clock) {
  if (options.threads < 1) {
    return Fail(ErrorCode::kInvalidArgument, "HTTP needs at least one thread");
  }
  auto server =
      std::make_unique<Server>(std::make_shared<Shared>(std::move(options), std::move(handler), clock));
  TRY_STATUS(server->Listen());
  return server;
}

}  // namespace weir::wire
