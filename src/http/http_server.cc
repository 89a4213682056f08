#include "http/http_server.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <list>
#include <span>
#include <system_error>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/string.hpp>

#include "base/mutex.h"
#include "base/thread.h"
#include "http/byte_budget.h"
#include "http/error_body.h"
#include "http/http_request_reader.h"
#include "http/http_response_queue.h"

namespace weir::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kPipelined = 32;     // requests of one connection that may be open; the next is not read
constexpr size_t kGathered = 64;      // parts in one write, Asio's own limit
constexpr auto kSweep = 500ms;        // how often stalled connections are looked for
constexpr auto kIdleGrace = 100ms;    // an idle connection stays open for after StopAccepting
constexpr auto kLeastIdle = 100ms;    // before an idle connection may be closed for a new one
constexpr int kIdleTried = 16;        // idle connections that are looked at for a new one
constexpr auto kAcceptPause = 100ms;  // after descriptors ran out
constexpr size_t kSentAtOnce = size_t{4} << 20;  // of one connection, before it is others' turn

HttpResponse ErrorResponse(int status, std::string message) {
  HttpResponse reply{.status = status,
                     .body = {Bytes::Copy(ErrorBody({ErrorCode::kInvalidArgument, std::move(message)}))}};
  if (status == 503) reply.headers.emplace_back("Retry-After", "1");
  if (status == 415) reply.headers.emplace_back("Accept-Encoding", "identity");
  return reply;
}

// State that the threads of a server share.
struct Shared {
  Shared(HttpServer::Options given, HttpServer::Handler called, const Clock& c)
      : options(std::move(given)),
        limits{options.max_header, options.max_body, options.align_after},
        handler(std::move(called)),
        clock(c),
        budget(std::make_shared<ByteBudget>(options.max_bytes_in_flight)) {}

  void Tell(HttpEvent event) const {
    if (options.on_event) options.on_event(event);
  }

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
using Connections = std::list<std::shared_ptr<SocketConnection>>;

// How a connection is held.
enum class Standing {
  kBusy,   // a request is read or answered
  kIdle,   // nothing is
  kSpare,  // beyond the limit of connections, or accepted while the server stops
};

// One "http-N" thread and its connections. Outlives its server for as long as a responder holds a connection.
class Loop : public std::enable_shared_from_this<Loop> {
 public:
  explicit Loop(std::shared_ptr<Shared> s) : shared(std::move(s)), sweep_(io) {}

  void Start(int number);
  // The following on this thread.
  void Adopt(tcp::socket socket, bool spare);
  void Release(Connections::iterator at, Standing standing) { Of(standing).erase(at); }
  // To the end of those of standing `to`.
  void Move(Connections::iterator at, Standing from, Standing to) {
    Of(to).splice(Of(to).end(), Of(from), at);
  }
  // Closes the connection that has been idle for longest, and counts one in its place for `by`. False: none
  // has been idle for long.
  bool CloseOldestIdle(Loop& by);
  void Drain();

  void SweepSoon(Duration in);
  // Ends every connection and the thread.
  void Stop();

  struct Delivery {
    std::shared_ptr<SocketConnection> to;
    uint64_t request;
    HttpResponse reply;
    HttpResponder::Sent sent;
  };
  // From another thread. Answers that come while the thread is busy wait for it together.
  void Deliver(Delivery delivery);
  bool OnThread() const { return std::this_thread::get_id() == thread_id_.load(std::memory_order_relaxed); }

  const std::shared_ptr<Shared> shared;
  asio::io_context io{1};
  std::atomic<int> connections = 0;  // adopted, or about to be; without spare ones

 private:
  void TakeDeliveries();
  void Sweep();
  Connections& Of(Standing standing) { return connections_[static_cast<size_t>(standing)]; }

  // By standing, of the thread, as the timer. Those that are idle, or spare, for longest are the first.
  std::array<Connections, 3> connections_;
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
  SocketConnection(std::shared_ptr<Loop> loop, tcp::socket socket, bool spare)
      : loop_(std::move(loop)),
        shared_(*loop_->shared),
        socket_(std::move(socket)),
        reader_(shared_.limits, shared_.budget),
        standing_(spare ? Standing::kSpare : Standing::kIdle),
        since_(shared_.clock.Now()),
        last_progress_(since_) {}

  Connections::iterator place;  // in the loop's list of its standing
  Standing standing() const { return standing_; }

  void Start() {
    if (shared_.draining || spare()) answers_.CloseWithLast();
    Read();
  }
  void Refuse(int status, std::string message);
  // Tells what became of a spare connection whose request was not answered, and closes it.
  void GiveUp();

  void Answer(uint64_t request, HttpResponse reply, HttpResponder::Sent sent) override {
    if (!loop_->OnThread())
      return loop_->Deliver({shared_from_this(), request, std::move(reply), std::move(sent)});
    Put(request, std::move(reply), std::move(sent));
  }
  void Put(uint64_t request, HttpResponse reply, HttpResponder::Sent sent);
  // A request that is not here whole is not taken up any more.
  void Drain() {
    answers_.CloseWithLast();
    const bool half = reader_.phase() != HttpRequestReader::Phase::kIdle;
    if (half && answers_.open() == 0 && !ending_) Refuse(503, "the server is stopping");
  }
  void CutIfStalled(Instant now);
  void Close();
  // Nothing is read or answered, and nothing waits to be read.
  bool IdleFor(Duration least, Instant now) const;

 private:
  bool spare() const { return standing_ == Standing::kSpare; }
  HttpActivity Activity() const;
  void Read();
  void OnRead(error_code error, size_t size);
  void EndOfRequests();
  void Process();
  bool TakeRequests();  // true: it stopped for there are too many, and more may be waiting
  void Take(HttpRequest request);
  void TakeSpare(HttpRequest request);
  void RefuseSpare();
  void Flush();
  void WaitToWrite();
  bool IsReset() const;
  void WatchForReset();
  void Leave();
  void UpdateStanding();
  void Finish();

  const std::shared_ptr<Loop> loop_;
  Shared& shared_;
  tcp::socket socket_;
  HttpRequestReader reader_;
  HttpResponseQueue answers_;
  Standing standing_;
  const Instant since_;      // accepted
  Instant last_progress_;    // bytes came, or went
  Instant last_answered_{};  // the last answer went out whole
  HttpTransfer sending_;     // since the client did not read as fast as was sent
  bool reading_ = false, writing_ = false, processing_ = false, watching_ = false;
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
  if (error) return error == asio::error::eof && answers_.open() > 0 ? EndOfRequests() : Leave();
  last_progress_ = shared_.clock.Now();
  if (ending_) {
    reader_.Discard();
    return Read();
  }
  reader_.Filled(size, last_progress_);
  Process();
}

void SocketConnection::Leave() {
  answers_.ClientLeft();
  Close();
}

// The client sends no more. Half a connection still takes what is owed; a client that has closed all of it
// answers the first byte with a reset.
void SocketConnection::EndOfRequests() {
  ending_ = left_ = true;
  const std::span<const std::byte> early = answers_.EarlyBytes();
  if (!early.empty()) {
    error_code error;
    const size_t sent = socket_.write_some(asio::buffer(early.data(), early.size()), error);
    if (error && error != asio::error::would_block) return Leave();
    if (!error) answers_.Advance(sent, shared_.clock.Now());
  }
  WatchForReset();
}

bool SocketConnection::IsReset() const {
  pollfd state{.fd = const_cast<tcp::socket&>(socket_).native_handle(), .events = 0, .revents = 0};
  return ::poll(&state, 1, 0) == 1 && (state.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

// While nothing is read: a client that leaves is found by its reset.
void SocketConnection::WatchForReset() {
  if (std::exchange(watching_, true)) return;
  socket_.async_wait(tcp::socket::wait_error, [self = shared_from_this()](error_code error) {
    self->watching_ = false;
    if (self->closed_ || error == asio::error::operation_aborted) return;
    if (self->IsReset()) return self->Leave();
    if (self->left_ || self->full_) self->WatchForReset();
  });
}

void SocketConnection::UpdateStanding() {
  if (closed_ || spare()) return;
  const bool idle = answers_.open() == 0 && !ending_ && reader_.phase() == HttpRequestReader::Phase::kIdle;
  const Standing now = idle ? Standing::kIdle : Standing::kBusy;
  if (idle || now != standing_) loop_->Move(place, std::exchange(standing_, now), now);
}

// Answers that are there at once go out together.
void SocketConnection::Process() {
  do {
    processing_ = true;
    full_ = TakeRequests();
    processing_ = false;
    Flush();
  } while (full_ && !ending_ && !closed_ && answers_.open() < kPipelined);
  UpdateStanding();
  if (full_ && !closed_) WatchForReset();
  Read();
}

bool SocketConnection::TakeRequests() {
  bool known_alive = false;
  while (!ending_ && answers_.open() < kPipelined) {
    auto next = reader_.Next();
    if (auto* request = std::get_if<HttpRequest>(&next)) {
      // One of several: those of a client that has left meanwhile are not begun. (A single one is not worth a
      // call of the kernel.)
      const bool pipelined = answers_.open() > 0 || reader_.phase() != HttpRequestReader::Phase::kIdle;
      if (pipelined && !std::exchange(known_alive, true) && IsReset()) {
        Leave();
        return false;
      }
      spare() ? TakeSpare(std::move(*request)) : Take(std::move(*request));
    } else if (auto* refusal = std::get_if<HttpRefusal>(&next)) {
      if (refusal->over_budget) shared_.Tell(HttpEvent::kTooManyBytes);
      Refuse(refusal->status, std::move(refusal->message));
    } else if (spare() && reader_.phase() == HttpRequestReader::Phase::kBody) {
      RefuseSpare();
    } else {
      if (reader_.TakeExpectsContinue()) answers_.Continue();
      return false;
    }
  }
  return !ending_;
}

void SocketConnection::TakeSpare(HttpRequest request) {
  const auto& is_probe = shared_.options.is_probe;
  if (!request.body.empty() || !is_probe || !is_probe(request)) return RefuseSpare();
  Take(std::move(request));
  ending_ = true;
}

void SocketConnection::RefuseSpare() {
  const bool stopping = shared_.draining;
  shared_.Tell(stopping ? HttpEvent::kStopping : HttpEvent::kTooManyConnections);
  Refuse(503, stopping ? "the server is stopping" : "too many connections");
}

void SocketConnection::GiveUp() {
  if (!ending_) shared_.Tell(shared_.draining ? HttpEvent::kStopping : HttpEvent::kTooManyConnections);
  Close();
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
  Put(number, ErrorResponse(status, std::move(message)), {});
  Read();
}

void SocketConnection::Put(uint64_t request, HttpResponse reply, HttpResponder::Sent sent) {
  if (closed_ || lingering_) {
    if (sent) sent(shared_.clock.Now());
    return;
  }
  ending_ |= answers_.Put(request, std::move(reply), std::move(sent), shared_.budget);
  if (processing_) return;  // sent together with what else is read now
  Flush();
  full_ ? Process() : UpdateStanding();
}

void SocketConnection::Flush() {
  size_t sent_now = 0;
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
    sending_.last_byte = last_progress_;
    sending_.bytes += sent;
    sent_now += sent;
    answers_.Advance(sent, last_progress_);
    if (answers_.closed()) return Finish();
    if (sent_now >= kSentAtOnce && answers_.ready()) return WaitToWrite();
  }
  if (!writing_) sending_ = {};
  if (left_ && answers_.open() == 0) Close();
}

void SocketConnection::WaitToWrite() {
  writing_ = true;
  if (sending_.began == Instant{}) {
    const Instant now = shared_.clock.Now();
    sending_ = {now, now, 0};
  }
  socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](error_code error) {
    self->writing_ = false;
    if (error) return self->Close();
    self->Flush();
    self->full_ ? self->Process() : self->UpdateStanding();
  });
}

// After the last answer: a close with bytes unread would make the kernel take the answer back.
void SocketConnection::Finish() {
  answers_.Abandon(last_progress_);
  lingering_ = ending_ = true;
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  if (!spare()) {
    MutexLock lock(shared_.mutex);
    --shared_.open;
    shared_.changed.NotifyAll();
  }
}

bool SocketConnection::IdleFor(Duration least, Instant now) const {
  error_code ignored;
  return standing_ == Standing::kIdle && now - last_progress_ >= least && socket_.available(ignored) == 0;
}

HttpActivity SocketConnection::Activity() const {
  using Phase = HttpActivity::Phase;
  HttpActivity activity{.spare = spare(), .draining = shared_.draining, .since = since_};
  const auto in_phase = [&](Phase phase, Instant began) {
    activity.phase = phase;
    if (!activity.spare || phase == Phase::kLingering) activity.since = began;
    return activity;
  };
  if (lingering_) return in_phase(Phase::kLingering, last_answered_);
  if (writing_) {
    activity.transfer = sending_;
    return in_phase(Phase::kSending, sending_.began);
  }
  if (answers_.open() > 0 || ending_) return in_phase(Phase::kWorking, last_progress_);
  // A request may have waited for the answers before it.
  const auto after_answers = [&](Instant at) { return std::max(at, last_answered_); };
  activity.first_byte = after_answers(reader_.first_byte());
  if (reader_.phase() == HttpRequestReader::Phase::kIdle) return in_phase(Phase::kIdle, last_progress_);
  if (reader_.phase() == HttpRequestReader::Phase::kHead) return in_phase(Phase::kHead, activity.first_byte);
  const HttpTransfer body = reader_.body();
  activity.transfer = {after_answers(body.began), after_answers(body.last_byte), body.bytes};
  return in_phase(Phase::kBody, activity.transfer.began);
}

void SocketConnection::CutIfStalled(Instant now) {
  using Action = HttpTimeVerdict::Action;
  const HttpActivity activity = Activity();
  const HttpTimeVerdict verdict = JudgeTime(shared_.options.timeouts, activity, now);
  if (verdict.action == Action::kKeep) return;
  if (activity.spare && !ending_) return GiveUp();
  if (verdict.action == Action::kRefuse || activity.phase == HttpActivity::Phase::kSending)
    shared_.Tell(HttpEvent::kTooSlow);
  verdict.action == Action::kRefuse ? Refuse(408, std::string(verdict.reason)) : Close();
}

void SocketConnection::Close() {
  if (std::exchange(closed_, true)) return;
  ending_ = true;
  const auto self = shared_from_this();
  error_code ignored;
  socket_.close(ignored);
  answers_.Abandon(shared_.clock.Now());
  if (!lingering_ && !spare()) {
    MutexLock lock(shared_.mutex);
    --shared_.open;
    shared_.changed.NotifyAll();
  }
  if (!spare()) --loop_->connections;
  loop_->Release(place, standing_);
}

void Loop::Start(int number) {
  SweepSoon(kSweep);
  thread_ = StartThread(fmt::format("http-{}", number), [this](std::stop_token) {
    thread_id_ = std::this_thread::get_id();
    io.run();
  });
}

void Loop::Adopt(tcp::socket socket, bool spare) {
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.set_option(tcp::no_delay(true), ignored);
  if (!spare) {
    MutexLock lock(shared->mutex);
    ++shared->open;
  }
  auto connection = std::make_shared<SocketConnection>(shared_from_this(), std::move(socket), spare);
  Connections& those = Of(connection->standing());
  connection->place = those.insert(those.end(), connection);
  if (stopping_) return connection->Close();
  if (spare && std::ssize(those) > shared->options.spare_connections()) {
    const std::shared_ptr<SocketConnection> oldest = those.front();
    oldest->GiveUp();
  }
  connection->Start();
}

bool Loop::CloseOldestIdle(Loop& by) {
  const Instant now = shared->clock.Now();
  int tried = 0;
  for (const std::shared_ptr<SocketConnection>& connection : Of(Standing::kIdle)) {
    if (++tried > kIdleTried) return false;
    if (!connection->IdleFor(kLeastIdle, now)) continue;
    ++by.connections;
    const std::shared_ptr<SocketConnection> oldest = connection;
    oldest->Close();
    shared->Tell(HttpEvent::kIdleClosed);
    return true;
  }
  return false;
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
  for (Connections& those : connections_) {
    for (auto at = those.begin(); at != those.end();) {
      const std::shared_ptr<SocketConnection> connection = *at++;  // it may take itself off the list
      connection->CutIfStalled(now);
    }
  }
  SweepSoon(shared->draining ? Duration(kIdleGrace) : Duration(kSweep));
}

void Loop::Drain() {
  for (const Standing standing : {Standing::kBusy, Standing::kIdle}) {
    for (auto at = Of(standing).begin(); at != Of(standing).end();) {
      const std::shared_ptr<SocketConnection> connection = *at++;  // it may take itself off the list
      connection->Drain();
    }
  }
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
    for (Connections& those : connections_) {
      while (!those.empty()) {
        const std::shared_ptr<SocketConnection> first = those.front();
        first->Close();
      }
    }
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
  void OnAccepted(error_code error, tcp::socket socket, Loop& loop);
  void Admit(tcp::socket socket, Loop& loop);
  void MakeRoom(size_t looked_at, tcp::socket socket, Loop& loop);
  static void Hand(Loop& loop, tcp::socket socket, bool spare);
  Loop& LeastBusy();

  const std::shared_ptr<Shared> shared_;
  std::vector<std::shared_ptr<Loop>> loops_;
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

void Server::Admit(tcp::socket socket, Loop& loop) {
  if (shared_->draining) return Hand(loop, std::move(socket), true);
  int open = 0;
  for (const auto& each : loops_) open += each->connections;
  if (open >= shared_->options.max_connections) return MakeRoom(0, std::move(socket), loop);
  ++loop.connections;
  Hand(loop, std::move(socket), false);
}

// Looks for an idle connection in the place of which `loop` may take `socket`. On the thread of the loop of
// that number.
void Server::MakeRoom(size_t looked_at, tcp::socket socket, Loop& loop) {
  if (loops_[looked_at]->CloseOldestIdle(loop)) return Hand(loop, std::move(socket), false);
  if (looked_at + 1 == loops_.size()) return Hand(loop, std::move(socket), true);
  asio::post(loops_[looked_at + 1]->io, [this, next = looked_at + 1, &loop, s = std::move(socket)]() mutable {
    MakeRoom(next, std::move(s), loop);
  });
}

void Server::Hand(Loop& loop, tcp::socket socket, bool spare) {
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
  auto server =
      std::make_unique<Server>(std::make_shared<Shared>(std::move(options), std::move(handler), clock));
  TRY_STATUS(server->Listen());
  return server;
}

}  // namespace weir::http
