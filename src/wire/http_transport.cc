#include "wire/http_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <span>
#include <thread>
#include <unordered_set>
#include <utility>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/thread.h"
#include "wire/arrival.h"
#include "wire/client_rules.h"
#include "wire/tcp_acknowledged.h"

namespace weir::wire {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

class Connection;
class Lane;

asio::steady_timer::time_point ToSteady(Instant when) {  // both are CLOCK_MONOTONIC
  return asio::steady_timer::time_point(when.time_since_epoch());
}

// An exchange on its way. Of its lane's thread once it has been sent there.
struct Pending {
  explicit Pending(HttpExchange e) : exchange(std::move(e)) {}

  HttpExchange exchange;
  HttpExchange::Stamps stamps;
  Connection* on = nullptr;  // none: it waits for a connection
  bool again = false;        // sent a second time: not a third
  bool over = false;         // answered, or about to be
  std::multimap<Instant, std::shared_ptr<Pending>>::iterator due;
  bool watched = false;  // `due` is valid
  std::optional<std::stop_callback<std::function<void()>>> on_cancel;
};
using PendingPtr = std::shared_ptr<Pending>;

// A socket, and the exchange it carries. Bytes are always awaited, so an idle connection that the server
// closes is noticed then and not by the next call.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Lane& lane, asio::io_context& io) : lane_(lane), socket_(io), connect_timer_(io) {}

  void Connect(PendingPtr first);
  void Carry(PendingPtr pending);  // REQUIRES: idle
  void Close();                    // what it carries is the caller's to answer
  PendingPtr Release() { return std::exchange(pending_, nullptr); }
  bool open() const { return open_; }

 private:
  void ConnectTo(const tcp::resolver::results_type& addresses);
  void Connected(const error_code& error);
  void ConnectFailed(const std::string& why);
  void Write();
  void AwaitBytes();
  void Read();
  void OnRead(size_t size, Instant came);
  void AnswerWhole();
  void Ended(const error_code& error);
  void FailPending(Error error);
  Error Named(const Error& error) const;  // with the server's address in front
  bool ServerMayHaveAll() const;
  void LetGoOfPayload();

  Lane& lane_;
  tcp::socket socket_;
  asio::steady_timer connect_timer_;
  std::unique_ptr<tcp::resolver> resolver_;
  HttpAnswerReader reader_;
  PendingPtr pending_;
  std::vector<asio::const_buffer> buffers_;
  std::span<asio::const_buffer> unsent_;  // of buffers_
  bool open_ = true;
  bool written_ = false;  // the request whole, to the kernel
  bool used_ = false;     // has carried an exchange before this one
  uint64_t sent_ = 0;     // bytes to the kernel, ever
  uint64_t acknowledged_at_start_ = 0;
};

// One I/O thread, its connections and its calls. All but Send, load and Stop are of that thread, which is
// that of whoever calls Drive where it has none of its own.
class Lane {
 public:
  enum class Runs { kItself, kWhenDriven };
  Lane(const ServerUrl& server, const ClientOptions& options, int connections, const Clock& clock, int number,
       Runs runs)
      : server_(server),
        timeout_(options.connect_timeout),
        most_(connections),
        clock_(clock),
        io_(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO),  // its sockets and timers are of one thread
        work_(io_.get_executor()),
        timer_(io_),
        wake_(io_) {
    if (runs == Runs::kItself)
      thread_ = StartThread(fmt::format("client-{}", number), [this](std::stop_token) { io_.run(); });
  }
  ~Lane() { Stop(); }

  void Send(PendingPtr pending);
  Duration Drive(Instant until, Duration awake);
  int load() const { return load_.load(std::memory_order_relaxed); }

  // Where a connection goes for a new exchange, or the end of the one it had.
  void Freed(Connection& connection);
  void Gone(Connection& connection);  // closed
  void Again(PendingPtr pending);
  void Answer(const PendingPtr& pending, Result<HttpAnswer> answer);

  const ServerUrl& server() const { return server_; }
  Duration connect_timeout() const { return timeout_; }
  Instant Now() const { return clock_.Now(); }
  Arrivals& arrivals() { return arrivals_; }

 private:
  void Stop();
  void Begin(PendingPtr pending);
  void Open(PendingPtr pending);
  void Watch(const PendingPtr& pending);
  void Arm(Instant when);
  void Abort(const PendingPtr& pending, Error error);
  void AbortAll();
  std::optional<Error> TooLate(const HttpExchange& exchange) const;
  Error NoAnswerInTime() const {
    return {ErrorCode::kDeadline, fmt::format("{}: no answer in time", server_.Address())};
  }
  static Error Left() { return {ErrorCode::kCancelled, "the caller left"}; }
  bool Full() const { return most_ > 0 && std::ssize(connections_) >= most_; }

  const ServerUrl server_;
  const Duration timeout_;
  const int most_;  // connections; 0: as many as are needed
  const Clock& clock_;
  Arrivals arrivals_{clock_};
  std::atomic<int> load_ = 0;  // calls sent here and not yet answered

  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::steady_timer timer_;
  asio::steady_timer wake_;  // of Drive
  int64_t wakes_ = 0;        // how often it was set
  bool near_ = false;        // it has rung, as set last
  std::optional<Instant> armed_;
  std::multimap<Instant, PendingPtr> due_;
  std::unordered_set<std::shared_ptr<Connection>> connections_;
  std::vector<Connection*> idle_;  // the one used last is used next
  std::deque<PendingPtr> waiting_;
  bool stopping_ = false;

  std::jthread thread_;
};

void Connection::Connect(PendingPtr first) {
  pending_ = std::move(first);
  pending_->on = this;
  connect_timer_.expires_after(lane_.connect_timeout());
  connect_timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error && self->open_) self->ConnectFailed("no answer in time");
  });
  const ServerUrl& server = lane_.server();
  if (server.literal()) {
    error_code error;
    const tcp::endpoint address(asio::ip::make_address(server.host, error), server.port);
    return ConnectTo(tcp::resolver::results_type::create(address, server.host, ""));
  }
  resolver_ = std::make_unique<tcp::resolver>(socket_.get_executor());
  resolver_->async_resolve(
      server.host, fmt::format("{}", server.port),
      [self = shared_from_this()](const error_code& error, const tcp::resolver::results_type& addresses) {
        if (!self->open_) return;
        error ? self->ConnectFailed(error.message()) : self->ConnectTo(addresses);
      });
}

void Connection::ConnectTo(const tcp::resolver::results_type& addresses) {
  asio::async_connect(socket_, addresses,
                      [self = shared_from_this()](const error_code& error, const tcp::endpoint&) {
                        if (self->open_) self->Connected(error);
                      });
}

void Connection::Connected(const error_code& error) {
  error_code ignored;
  if (error) return ConnectFailed(error.message());
  connect_timer_.cancel(ignored);
  // After a connect asio goes on to watch for room to write: each wait for bytes would end at once.
  const tcp protocol = socket_.local_endpoint(ignored).protocol();
  socket_.assign(protocol, socket_.release(ignored), ignored);
  socket_.non_blocking(true, ignored);
  socket_.set_option(tcp::no_delay(true), ignored);
  Arrivals::Stamp(socket_.native_handle());
  acknowledged_at_start_ = AcknowledgedBytes(socket_.native_handle()).value_or(0);
  Carry(Release());
  if (open_) AwaitBytes();
}

void Connection::ConnectFailed(const std::string& why) {
  FailPending({ErrorCode::kIo, fmt::format("connect to {}: {}", lane_.server().Address(), why)});
}

void Connection::Carry(PendingPtr pending) {
  pending_ = std::move(pending);
  pending_->on = this;
  written_ = false;
  const HttpExchange& exchange = pending_->exchange;
  pending_->stamps = {.begun = lane_.Now()};
  buffers_.assign(1, asio::const_buffer(exchange.head.data(), exchange.head.size()));
  for (const Bytes& part : exchange.parts) {
    if (!part.empty()) buffers_.emplace_back(part.data(), part.size());
  }
  unsent_ = buffers_;
  Write();
}

// As much as the socket takes, and the rest when it takes more. A fault is left to the next read: the server
// may have answered before it closed.
void Connection::Write() {
  while (!unsent_.empty()) {
    error_code error;
    size_t size = unsent_.size() == 1 ? socket_.write_some(asio::const_buffers_1(unsent_.front()), error)
                                      : socket_.write_some(unsent_, error);
    if (error == asio::error::would_block) {
      socket_.async_wait(tcp::socket::wait_write,
                         [self = shared_from_this(), pending = pending_](const error_code& failed) {
                           if (!failed && self->open_ && self->pending_ == pending) self->Write();
                         });
      return;
    }
    if (error) return;
    sent_ += size;
    while (!unsent_.empty() && size >= unsent_.front().size()) {
      size -= unsent_.front().size();
      unsent_ = unsent_.subspan(1);
    }
    if (size > 0) unsent_.front() += size;
  }
  written_ = true;
  pending_->stamps.written = lane_.Now();
  LetGoOfPayload();
}

// Nothing will be sent again once the answer begins, nor on a connection that was opened for this call.
void Connection::LetGoOfPayload() {
  if (written_ && (!used_ || pending_->again || reader_.begun())) pending_->exchange.parts.clear();
}

void Connection::AwaitBytes() {
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](const error_code& error) {
    if (self->open_) error ? self->Ended(error) : self->Read();
  });
}

// Once: who has more to do than this connection has a turn before more is read from it.
void Connection::Read() {
  const std::span<std::byte> room = reader_.Room();
  const Instant since = pending_ ? *pending_->stamps.begun : Instant{};
  const Arrivals::Received received = lane_.arrivals().Receive(socket_.native_handle(), room, since);
  if (received.size > 0) {
    OnRead(static_cast<size_t>(received.size), received.came);
  } else if (received.size == 0) {
    Ended(asio::error::eof);
  } else if (received.size != -EAGAIN && received.size != -EINTR) {
    Ended(error_code(static_cast<int>(-received.size), boost::system::system_category()));
  }
  if (!open_) return;
  if (reader_.begun() && received.size == std::ssize(room)) {
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
      if (self->open_) self->Read();
    });
  } else {
    AwaitBytes();
  }
}

void Connection::OnRead(size_t size, Instant came) {
  if (!pending_) return Ended(asio::error::eof);                                 // an answer to nothing
  pending_->stamps.done = std::max(came, pending_->stamps.done.value_or(came));  // of what has come so far
  if (!pending_->stamps.first_byte) pending_->stamps.first_byte = came;
  const Result<bool> whole = reader_.Filled(size);
  if (!whole) return FailPending(Named(whole.error()));
  if (*whole) {
    AnswerWhole();
  } else {
    LetGoOfPayload();
  }
}

// The connection finds its next work before the answer is told: who is told may send again at once.
void Connection::AnswerWhole() {
  HttpAnswer answer = reader_.Take();
  const PendingPtr pending = Release();
  used_ = true;
  if (answer.keep_alive && written_) {
    lane_.Freed(*this);
  } else {
    Close();
  }
  lane_.Answer(pending, std::move(answer));
}

// The server has closed, or the connection broke.
void Connection::Ended(const error_code& error) {
  if (pending_ && reader_.begun() && error == asio::error::eof) {
    pending_->stamps.done = lane_.Now();  // the kernel stamps bytes alone
    const Result<bool> whole = reader_.Closed();
    return whole ? AnswerWhole() : FailPending(Named(whole.error()));
  }
  if (pending_ && used_ && !reader_.begun() && !pending_->again && !ServerMayHaveAll()) {
    PendingPtr pending = Release();
    Close();
    return lane_.Again(std::move(pending));
  }
  FailPending(
      Named({ErrorCode::kIo, fmt::format("the connection ended before the answer: {}", error.message())}));
}

Error Connection::Named(const Error& error) const {
  return {error.code, fmt::format("{}: {}", lane_.server().Address(), error.message)};
}

void Connection::FailPending(Error error) {
  const PendingPtr pending = Release();
  Close();
  if (pending) lane_.Answer(pending, std::unexpected(std::move(error)));
}

// A server begins no request of which its kernel has not acknowledged every byte.
bool Connection::ServerMayHaveAll() const {
  if (!written_) return false;
  const auto acknowledged = AcknowledgedBytes(const_cast<tcp::socket&>(socket_).native_handle());
  return !acknowledged || *acknowledged - acknowledged_at_start_ >= sent_;
}

void Connection::Close() {
  if (!open_) return;
  open_ = false;
  error_code ignored;
  connect_timer_.cancel(ignored);
  if (resolver_) resolver_->cancel();
  socket_.close(ignored);
  lane_.Gone(*this);
}

void Lane::Send(PendingPtr pending) {
  load_.fetch_add(1, std::memory_order_relaxed);
  if (!thread_.joinable() || io_.get_executor().running_in_this_thread()) return Begin(std::move(pending));
  asio::post(io_, [this, pending = std::move(pending)] { Begin(pending); });
}

// One piece of work between looks at the clock: a heap of answers must not make the caller late. A caller who
// is late already gets several done each time, or its calls would pile up faster than they are answered.
Duration Lane::Drive(Instant until, Duration awake) {
  Instant now = Now();
  if (until - now > awake) {
    // One of before may be over and not yet told of.
    const int64_t wake = ++wakes_;
    near_ = false;
    wake_.expires_at(ToSteady(until - awake));
    wake_.async_wait([this, wake](const error_code& error) {
      if (!error && wake == wakes_) near_ = true;
    });
    while (!near_ && now < until - awake) {
      io_.run_one();
      now = Now();
    }
  }
  constexpr int kAtLeast = 4;  // what opening a connection and a call on it take
  Duration spun{};
  size_t ran = 0;
  for (int done = 0; now < until || (done < kAtLeast && (done == 0 || ran > 0)); ++done) {
    ran = io_.poll_one();
    const Instant before = std::exchange(now, Now());
    if (ran == 0) spun += now - before;
  }
  return spun;
}

void Lane::Begin(PendingPtr pending) {
  if (std::optional<Error> error = TooLate(pending->exchange)) {
    asio::post(io_, [this, pending = std::move(pending), error] { Abort(pending, *error); });
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
  if (exchange.cancelled.stop_requested()) return Left();
  if (exchange.due && *exchange.due <= Now()) return NoAnswerInTime();
  return std::nullopt;
}

void Lane::Open(PendingPtr pending) {
  const auto connection = std::make_shared<Connection>(*this, io_);
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
  if (waiting_.empty() || stopping_) return;
  PendingPtr next = std::move(waiting_.front());
  waiting_.pop_front();
  Open(std::move(next));
}

// From now on its deadline and its caller's wish can end it. Both do so from the loop, never from here.
void Lane::Watch(const PendingPtr& pending) {
  if (const auto due = pending->exchange.due) {
    pending->due = due_.emplace(*due, pending);
    pending->watched = true;
    if (!armed_ || *due < *armed_) Arm(*due);
  }
  if (pending->exchange.cancelled.stop_possible()) {
    pending->on_cancel.emplace(pending->exchange.cancelled, [this, weak = std::weak_ptr(pending)] {
      asio::post(io_, [this, weak] {
        if (const PendingPtr found = weak.lock()) Abort(found, Left());
      });
    });
  }
}

void Lane::Arm(Instant when) {
  armed_ = when;
  timer_.expires_at(ToSteady(when));
  timer_.async_wait([this, when](const error_code& error) {
    if (error) return;  // armed for an earlier time meanwhile
    armed_.reset();
    while (!due_.empty() && due_.begin()->first <= when) {
      const PendingPtr late = due_.begin()->second;
      Abort(late, NoAnswerInTime());
    }
    if (!due_.empty() && !armed_) Arm(due_.begin()->first);
  });
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

void Lane::Answer(const PendingPtr& pending, Result<HttpAnswer> answer) {
  CHECK(!std::exchange(pending->over, true));
  if (pending->watched) due_.erase(pending->due);
  pending->on_cancel.reset();
  load_.fetch_sub(1, std::memory_order_relaxed);
  pending->exchange.parts.clear();
  HttpExchange::Done done = std::move(pending->exchange.done);
  done(std::move(answer), pending->stamps);
}

void Lane::AbortAll() {
  stopping_ = true;
  const Error stopped{ErrorCode::kCancelled, "the client is stopping"};
  while (!waiting_.empty()) Abort(PendingPtr(waiting_.front()), stopped);
  while (!connections_.empty()) {
    const auto connection = *connections_.begin();
    const PendingPtr pending = connection->Release();
    connection->Close();
    if (pending) Answer(pending, std::unexpected(stopped));
  }
  timer_.cancel();
  wake_.cancel();
}

void Lane::Stop() {
  asio::post(io_, [this] {
    AbortAll();
    work_.reset();
  });
  thread_.joinable() ? thread_.join() : static_cast<void>(io_.run());
}

class AsioTransport final : public HttpTransport {
 public:
  AsioTransport(const ServerUrl& server, const ClientOptions& options, const Clock& clock) {
    const int most = options.connections;
    const int threads = std::max(1, options.threads);
    const int lanes = most > 0 ? std::min(threads, most) : threads;
    for (int i = 0; i < lanes; ++i) {
      const int share = most / lanes + (i < most % lanes ? 1 : 0);
      lanes_.push_back(
          std::make_unique<Lane>(server, options, share, clock, i,
                                 options.threads > 0 ? Lane::Runs::kItself : Lane::Runs::kWhenDriven));
    }
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
                                                             const ClientOptions& options,
                                                             const Clock& clock) {
  TRY_STATUS(CheckOptions(options));
  return std::make_unique<AsioTransport>(server, options, clock);
}

}  // namespace weir::wire
