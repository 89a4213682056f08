#include "http/http_transport.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <span>
#include <system_error>
#include <thread>
#include <unordered_set>
#include <utility>

#include "base/thread.h"
#include "http/client_options.h"
#include "http/event_loop.h"
#include "http/rx_timestamps.h"
#include "http/tcp.h"

namespace weir::http {
namespace {

class Connection;
class Lane;

using TcpAddresses = std::vector<TcpAddress>;

// An exchange on its way. Of its lane's thread once it has been sent there.
struct Pending {
  explicit Pending(HttpExchange e) : exchange(std::move(e)) {}

  HttpExchange exchange;
  HttpExchange::Stamps stamps;
  Connection* on = nullptr;  // none: it waits for a connection
  bool again = false;        // sent a second time: not a third
  bool over = false;         // answered, or about to be
  std::optional<EventLoop::Timer> deadline;
  std::optional<std::stop_callback<std::function<void()>>> on_cancel;
};
using PendingPtr = std::shared_ptr<Pending>;

// A socket, and the exchange it carries. An idle one is watched, too, so that the server's closing it is
// noticed then and not by the next call.
class Connection : public EventLoop::Watcher, public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(Lane& lane) : lane_(lane) {}

  void Connect(PendingPtr first);
  void Carry(PendingPtr pending);  // REQUIRES: idle
  void Close();                    // what it carries is the caller's to answer
  PendingPtr Release() { return std::exchange(pending_, nullptr); }
  bool open() const { return open_; }
  // The server has all of the request and has said nothing.
  bool is_silent() const { return pending_ && written_ && !reader_.begun(); }

  void OnReady(EventLoop::Readiness ready) override;

 private:
  void TryAddress();
  void LimitAttempt();
  void Connected();
  void ConnectFailed(const std::string& why);
  void AddBuffer(const Bytes& bytes);
  void Write();
  void Read();
  void OnRead(const RxTimestamps::Received& received);
  void AnswerWhole();
  void Ended(int error);
  void FailPending(Error error);
  Error Named(const Error& error) const;  // with the server's address in front
  bool ServerMayHaveAll() const;
  void LetGoOfPayload();

  Lane& lane_;
  TcpAddresses addresses_;  // of the server, and how many of them were tried
  size_t tried_ = 0;
  std::optional<EventLoop::Timer> connect_timer_;  // there while it is not connected
  UniqueFd socket_;
  HttpResponseReader reader_;
  PendingPtr pending_;
  std::vector<iovec> buffers_;
  std::span<iovec> unsent_;  // of buffers_
  bool open_ = true;
  bool ended_ = false;     // the other side has closed: there may be bytes before that
  bool written_ = false;   // the request whole, to the kernel
  bool used_ = false;      // has carried an exchange before this one
  bool reads_on_ = false;  // a read is posted
  uint64_t sent_ = 0;      // bytes to the kernel, ever
  uint64_t acknowledged_at_start_ = 0;
};

// One I/O thread, its connections and its calls. All but Send, load and Stop are of that thread, which is
// that of whoever calls Drive where it has none of its own.
class Lane {
 public:
  enum class Runs { kItself, kWhenDriven };
  Lane(const ServerUrl& server, const ClientOptions& options, int connections, const Clock& clock,
       std::shared_ptr<EventLoop> loop, int number, Runs runs)
      : server_(server),
        timeout_(options.connect_timeout),
        most_(connections),
        clock_(clock),
        loop_(std::move(loop)) {
    if (runs == Runs::kItself) {
      thread_ = StartThread(fmt::format("client-{}", number), [this](std::stop_token) {
        while (!stopping_) loop_->RunOne();
      });
    }
  }
  ~Lane() { Stop(); }

  void Send(PendingPtr pending);
  Duration Drive(Instant until, Duration awake);
  int load() const { return load_.load(std::memory_order_relaxed); }

  // Where a connection goes for a new exchange, or the end of the one it had.
  void Freed(Connection& connection);
  void Gone(Connection& connection);  // closed
  void Again(PendingPtr pending);
  void Locate(std::move_only_function<void(const Result<TcpAddresses>&)> then);
  void Answer(const PendingPtr& pending, Result<HttpClientResponse> answer);

  const ServerUrl& server() const { return server_; }
  Duration connect_timeout() const { return timeout_; }
  Instant Now() const { return clock_.Now(); }
  RxTimestamps& arrivals() { return arrivals_; }
  EventLoop& loop() { return *loop_; }

 private:
  void Stop();
  void Begin(PendingPtr pending);
  void Open(PendingPtr pending);
  void Watch(const PendingPtr& pending);
  void Abort(const PendingPtr& pending, Error error);
  void AbortAll();
  std::optional<Error> TooLate(const HttpExchange& exchange) const;
  Error NoAnswerInTime() const {
    return {ErrorCode::kDeadline, fmt::format("{}: no answer in time", server_.Address())};
  }
  static Error Left() { return {ErrorCode::kCancelled, "the caller left"}; }
  // The client waits for as long as it may: a server that has been asked has not answered.
  Error Silent() const {
    return {ErrorCode::kCancelled,
            fmt::format("{}: no answer came until the client stopped waiting", server_.Address())};
  }
  static Error Stopping() { return {ErrorCode::kCancelled, "the client is stopping"}; }
  bool Full() const { return most_ > 0 && std::ssize(connections_) >= most_; }

  const ServerUrl server_;
  const Duration timeout_;
  const int most_;  // connections; 0: as many as are needed
  const Clock& clock_;
  RxTimestamps arrivals_{clock_};
  std::atomic<int> load_ = 0;  // calls sent here and not yet answered

  const std::shared_ptr<EventLoop> loop_;
  std::unordered_set<std::shared_ptr<Connection>> connections_;
  std::vector<Connection*> idle_;  // the one used last is used next
  std::deque<PendingPtr> waiting_;
  std::vector<std::move_only_function<void(const Result<TcpAddresses>&)>> unlocated_;
  bool stopping_ = false;

  std::jthread resolver_;  // asks the system where the server is, while somebody is unlocated
  std::jthread thread_;
};

void Connection::Connect(PendingPtr first) {
  pending_ = std::move(first);
  pending_->on = this;
  connect_timer_ = lane_.loop().At(lane_.Now() + lane_.connect_timeout(), [self = shared_from_this()] {
    if (self->open_) self->ConnectFailed("no answer in time");
  });
  lane_.Locate([self = shared_from_this()](const Result<TcpAddresses>& found) {
    if (!self->open_) return;
    if (!found) return self->ConnectFailed(found.error().message);
    self->addresses_ = *found;
    self->TryAddress();
  });
}

// The next one. The last that fails says why there is no connection.
void Connection::TryAddress() {
  while (true) {
    const bool is_last = tried_ + 1 == addresses_.size();
    Result<UniqueFd> begun = BeginConnect(addresses_[tried_++]);
    if (begun) {
      socket_ = *std::move(begun);
      const Status watched = lane_.loop().Watch(socket_.get(), shared_from_this());
      if (!watched) return ConnectFailed(watched.error().message);
      return is_last ? void() : LimitAttempt();
    }
    if (is_last) return ConnectFailed(begun.error().message);
  }
}

// An address that does not answer leaves time for those behind it.
void Connection::LimitAttempt() {
  const Instant now = lane_.Now();
  const Duration patience = Patience(connect_timer_->first - now, addresses_.size() - tried_);
  lane_.loop().At(now + patience, [self = shared_from_this(), attempt = tried_] {
    if (!self->open_ || !self->connect_timer_ || self->tried_ != attempt) return;
    self->lane_.loop().Forget(self->socket_.get());
    self->TryAddress();
  });
}

void Connection::OnReady(EventLoop::Readiness ready) {
  if (connect_timer_) {
    const Status outcome = ConnectOutcome(socket_.get());
    if (!outcome) {
      lane_.loop().Forget(socket_.get());
      return tried_ < addresses_.size() ? TryAddress() : ConnectFailed(outcome.error().message);
    }
    Connected();
  } else if (ready.writable && pending_ && !unsent_.empty()) {
    Write();
  }
  ended_ |= ready.ended;
  if (open_ && ready.urgent)
    return FailPending(Named({ErrorCode::kCorrupt, "urgent data, which HTTP has not"}));
  if (open_ && ready.readable) Read();
}

void Connection::Connected() {
  lane_.loop().Cancel(*std::exchange(connect_timer_, std::nullopt));
  addresses_.clear();
  RxTimestamps::Stamp(socket_.get());
  acknowledged_at_start_ = AcknowledgedBytes(socket_.get()).value_or(0);
  Carry(Release());
}

void Connection::ConnectFailed(const std::string& why) {
  FailPending({ErrorCode::kIo, fmt::format("connect to {}: {}", lane_.server().Address(), why)});
}

void Connection::Carry(PendingPtr pending) {
  pending_ = std::move(pending);
  pending_->on = this;
  written_ = false;
  const HttpExchange& exchange = pending_->exchange;
  reader_.Limit(exchange.most_answer);
  pending_->stamps = {.begun = lane_.Now()};
  buffers_.clear();
  AddBuffer(exchange.head);
  for (const Bytes& part : exchange.parts) AddBuffer(part);
  unsent_ = buffers_;
  Write();
}

void Connection::AddBuffer(const Bytes& bytes) {
  if (!bytes.empty())
    buffers_.push_back({.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()});
}

// As much as the socket takes, and the rest when it takes more. A fault is left to the next read: the server
// may have answered before it closed.
void Connection::Write() {
  while (!unsent_.empty()) {
    msghdr message{};
    message.msg_iov = unsent_.data();
    message.msg_iovlen = std::min<size_t>(unsent_.size(), IOV_MAX);
    const ssize_t taken = unsent_.size() == 1
                              ? send(socket_.get(), unsent_[0].iov_base, unsent_[0].iov_len, MSG_NOSIGNAL)
                              : sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0) return;
    auto size = static_cast<size_t>(taken);
    sent_ += size;
    while (!unsent_.empty() && size >= unsent_.front().iov_len) {
      size -= unsent_.front().iov_len;
      unsent_ = unsent_.subspan(1);
    }
    if (size > 0) {
      unsent_.front().iov_base = static_cast<std::byte*>(unsent_.front().iov_base) + size;
      unsent_.front().iov_len -= size;
    }
  }
  written_ = true;
  pending_->stamps.written = lane_.Now();
  LetGoOfPayload();
}

// Nothing will be sent again once the answer begins, nor on a connection that was opened for this call.
void Connection::LetGoOfPayload() {
  if (written_ && (!used_ || pending_->again || reader_.begun())) pending_->exchange.parts.clear();
}

// Once: who has more to do than this connection has a turn before more is read from it. What fits has been
// all there was, but for the end, of which one is told together with the bytes before it.
void Connection::Read() {
  const std::span<std::byte> room = reader_.Room();
  const Instant since = pending_ ? *pending_->stamps.begun : Instant{};
  const bool ends = reader_.EndsWithRoom();
  const auto behind = ends ? RxTimestamps::Behind::kIsSurplus : RxTimestamps::Behind::kFollows;
  const RxTimestamps::Received received = lane_.arrivals().Receive(socket_.get(), room, behind, since);
  if (received.size > 0) {
    OnRead(received);
  } else if (received.size == 0) {
    Ended(0);
  } else if (received.size == -EAGAIN) {
    return;
  } else if (received.size != -EINTR) {
    Ended(static_cast<int>(-received.size));
  }
  const ssize_t most = std::ssize(room) + (ends ? 1 : 0);  // that could have come
  if (!open_ || (received.size >= 0 && received.size < most && !ended_)) return;
  if (std::exchange(reads_on_, true)) return;
  lane_.loop().Post([self = shared_from_this()] {
    self->reads_on_ = false;
    if (self->open_) self->Read();
  });
}

void Connection::OnRead(const RxTimestamps::Received& received) {
  if (!pending_) return Ended(0);  // an answer to nothing
  // On a new connection it is a server that refuses whatever may come.
  if (received.is_early && used_ && !reader_.begun())
    return FailPending(Named({ErrorCode::kCorrupt, "an answer came before the request"}));
  const Instant came = received.came;
  ended_ |= received.is_surplus;  // what it says is not to be trusted any more
  pending_->stamps.done = std::max(came, pending_->stamps.done.value_or(came));  // of what has come so far
  if (!pending_->stamps.first_byte) pending_->stamps.first_byte = came;
  const Result<bool> whole = reader_.Filled(static_cast<size_t>(received.size));
  if (!whole) return FailPending(Named(whole.error()));
  if (*whole) {
    AnswerWhole();
  } else {
    LetGoOfPayload();
  }
}

// The connection finds its next work before the answer is told: who is told may send again at once.
void Connection::AnswerWhole() {
  HttpClientResponse answer = reader_.Take();
  const PendingPtr pending = Release();
  used_ = true;
  if (answer.keep_alive && written_ && !ended_) {
    lane_.Freed(*this);
  } else {
    Close();
  }
  lane_.Answer(pending, std::move(answer));
}

// The server has closed (0), or the connection broke.
void Connection::Ended(int error) {
  if (pending_ && reader_.begun() && error == 0) {
    pending_->stamps.done = lane_.Now();  // the kernel stamps bytes alone
    const Result<bool> whole = reader_.Closed();
    return whole ? AnswerWhole() : FailPending(Named(whole.error()));
  }
  if (pending_ && used_ && !reader_.begun() && !pending_->again && !ServerMayHaveAll()) {
    lane_.Again(Release());  // before whoever waits for the place of this one
    return Close();
  }
  FailPending(Named(
      {ErrorCode::kIo, fmt::format("the connection ended before the answer: {}",
                                   error == 0 ? "End of file" : std::generic_category().message(error))}));
}

Error Connection::Named(const Error& error) const {
  return {error.code, fmt::format("{}: {}", lane_.server().Address(), error.message)};
}

void Connection::FailPending(Error error) {
  const PendingPtr pending = Release();
  Close();
  if (pending) lane_.Answer(pending, std::unexpected(std::move(error)));
}

// A server begins no request of which its kernel has not acknowledged every byte, or does so within
// milliseconds: it would have to reset the connection before that.
bool Connection::ServerMayHaveAll() const {
  if (!written_) return false;
  const auto acknowledged = AcknowledgedBytes(socket_.get());
  return !acknowledged || *acknowledged - acknowledged_at_start_ >= sent_;
}

void Connection::Close() {
  if (!open_) return;
  open_ = false;
  if (connect_timer_) lane_.loop().Cancel(*connect_timer_);
  if (socket_.valid()) lane_.loop().Forget(socket_.get());
  socket_ = UniqueFd();
  lane_.Gone(*this);
}

void Lane::Send(PendingPtr pending) {
  load_.fetch_add(1, std::memory_order_relaxed);
  if (!thread_.joinable() || loop_->InLoop()) return Begin(std::move(pending));
  loop_->Post([this, pending = std::move(pending)] { Begin(pending); });
}

// One piece of work between looks at the clock: a heap of answers must not make the caller late. A caller who
// is late already gets several done each time, or its calls would pile up faster than they are answered.
Duration Lane::Drive(Instant until, Duration awake) {
  Instant now = Now();
  if (until - now > awake) {
    bool near = false;
    const EventLoop::Timer wake = loop_->At(until - awake, [&near] { near = true; });
    while (!near && now < until - awake) {
      loop_->RunOne();
      now = Now();
    }
    loop_->Cancel(wake);
  }
  constexpr int kAtLeast = 4;  // what opening a connection and a call on it take
  Duration spun{};
  bool ran = false;
  for (int done = 0; now < until || (done < kAtLeast && (done == 0 || ran)); ++done) {
    ran = loop_->PollOne();
    const Instant before = std::exchange(now, Now());
    if (!ran) spun += now - before;
  }
  return spun;
}

void Lane::Begin(PendingPtr pending) {
  if (std::optional<Error> error = TooLate(pending->exchange)) {
    loop_->Post([this, pending = std::move(pending), error] { Abort(pending, *error); });
    return;
  }
  Watch(pending);
  if (!idle_.empty()) {
    Connection* connection = idle_.back();
    idle_.pop_back();
    connection->Carry(std::move(pending));
  } else if (!Full()) {
    Open(std::move(pending));
  } else {
    waiting_.push_back(std::move(pending));
  }
}

std::optional<Error> Lane::TooLate(const HttpExchange& exchange) const {
  if (stopping_) return Stopping();
  if (exchange.cancelled.stop_requested()) return Left();
  if (exchange.due && *exchange.due <= Now()) return NoAnswerInTime();
  return std::nullopt;
}

void Lane::Open(PendingPtr pending) {
  const auto connection = std::make_shared<Connection>(*this);
  connections_.insert(connection);
  connection->Connect(std::move(pending));
}

// A connection of its own: those in the pool may all have been closed.
void Lane::Again(PendingPtr pending) {
  pending->again = true;
  Open(std::move(pending));
}

void Lane::Freed(Connection& connection) {
  if (waiting_.empty()) {
    idle_.push_back(&connection);
    return;
  }
  PendingPtr next = std::move(waiting_.front());
  waiting_.pop_front();
  connection.Carry(std::move(next));
}

void Lane::Gone(Connection& connection) {
  std::erase(idle_, &connection);
  connections_.erase(connection.shared_from_this());
  if (waiting_.empty() || stopping_ || Full()) return;
  PendingPtr next = std::move(waiting_.front());
  waiting_.pop_front();
  Open(std::move(next));
}

// Where the server is, as the system's resolver says now; who asks while it is at it waits for the same
// answer. `then` runs from the loop, never from here.
void Lane::Locate(std::move_only_function<void(const Result<TcpAddresses>&)> then) {
  unlocated_.push_back(std::move(then));
  if (unlocated_.size() > 1) return;
  const auto tell = [this](const Result<TcpAddresses>& found) {
    for (auto& each : std::exchange(unlocated_, {})) each(found);
  };
  if (server_.literal()) return loop_->Post([this, tell] { tell(Resolve(server_)); });
  resolver_ = StartThread("resolver", [this, tell](std::stop_token) {
    loop_->Post([tell, found = Resolve(server_)] { tell(found); });
  });
}

// From now on its deadline and its caller's wish can end it. Both do so from the loop, never from here.
void Lane::Watch(const PendingPtr& pending) {
  if (const auto due = pending->exchange.due)
    pending->deadline = loop_->At(*due, [this, pending] { Abort(pending, NoAnswerInTime()); });
  if (pending->exchange.cancelled.stop_possible()) {
    pending->on_cancel.emplace(pending->exchange.cancelled, [this, weak = std::weak_ptr(pending)] {
      loop_->Post([this, weak] {
        if (const PendingPtr found = weak.lock()) Abort(found, Left());
      });
    });
  }
}

void Lane::Abort(const PendingPtr& pending, Error error) {
  if (pending->over) return;
  if (Connection* connection = pending->on) {
    connection->Release();
    connection->Close();
  } else {
    std::erase(waiting_, pending);
  }
  Answer(pending, std::unexpected(std::move(error)));
}

void Lane::Answer(const PendingPtr& pending, Result<HttpClientResponse> answer) {
  CHECK(!std::exchange(pending->over, true));
  if (pending->deadline) loop_->Cancel(*pending->deadline);
  pending->on_cancel.reset();
  load_.fetch_sub(1, std::memory_order_relaxed);
  pending->exchange.parts.clear();
  HttpExchange::Done done = std::move(pending->exchange.done);
  done(std::move(answer), pending->stamps);
}

void Lane::AbortAll() {
  stopping_ = true;
  while (!waiting_.empty()) Abort(PendingPtr(waiting_.front()), Stopping());
  while (!connections_.empty()) {
    const auto connection = *connections_.begin();
    const bool silent = connection->is_silent();
    const PendingPtr pending = connection->Release();
    connection->Close();
    if (pending) Answer(pending, std::unexpected(silent ? Silent() : Stopping()));
  }
}

void Lane::Stop() {
  if (thread_.joinable()) {
    loop_->Post([this] { AbortAll(); });
    thread_.join();
  } else {
    AbortAll();
  }
  if (resolver_.joinable()) resolver_.join();  // what it posts is run below
  while (loop_->PollOne()) {                   // of calls that were too late
  }
}

class Lanes final : public HttpTransport {
 public:
  static Result<std::unique_ptr<HttpTransport>> Create(const ServerUrl& server, const ClientOptions& options,
                                                       const Clock& clock, std::shared_ptr<EventLoop> loop) {
    TRY_STATUS(CheckOptions(options));
    CHECK(loop == nullptr || options.threads == 0);
    const int most = options.connections;
    const int threads = std::max(1, options.threads);
    const int lanes = most > 0 ? std::min(threads, most) : threads;
    auto transport = std::make_unique<Lanes>();
    for (int i = 0; i < lanes; ++i) {
      const int share = most / lanes + (i < most % lanes ? 1 : 0);
      transport->lanes_.push_back(
          std::make_unique<Lane>(server, options, share, clock, loop ? loop : TRY(EventLoop::Create(clock)),
                                 i, options.threads > 0 ? Lane::Runs::kItself : Lane::Runs::kWhenDriven));
    }
    return transport;
  }

  void Send(HttpExchange exchange) override {
    const auto& lane = *std::ranges::min_element(lanes_, {}, [](const auto& each) { return each->load(); });
    lane->Send(std::make_shared<Pending>(std::move(exchange)));
  }
  Duration Drive(Instant until, Duration awake) override { return lanes_.front()->Drive(until, awake); }

 private:
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace

Result<std::unique_ptr<HttpTransport>> HttpTransport::Create(const ServerUrl& server,
                                                             const ClientOptions& options, const Clock& clock,
                                                             std::shared_ptr<EventLoop> loop) {
  return Lanes::Create(server, options, clock, std::move(loop));
}

}  // namespace weir::http
