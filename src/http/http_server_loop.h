// The threads of an HTTP server and their connections. For the .cc files of the server alone: this header has
// Boost.Asio in it.
#pragma once

#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/mutex.h"
#include "http/byte_budget.h"
#include "http/http_request_reader.h"
#include "http/http_response_queue.h"
#include "http/http_server.h"

namespace weir::http {

// Returns the answer to a request that is refused: the message as an error body.
HttpResponse ErrorResponse(int status, std::string message);

// State that the threads of a server share.
struct ServerState {
  ServerState(HttpServer::Options given, HttpServer::Handler called, const Clock& c)
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

  // ServerConnections whose last answer has not been sent.
  Mutex mutex;
  CondVar changed;
  int open GUARDED_BY(mutex) = 0;
};

class ServerConnection;
using ServerConnections = std::list<std::shared_ptr<ServerConnection>>;

// How a connection is held.
enum class ServerStanding {
  kBusy,   // a request is read or answered
  kIdle,   // nothing is
  kSpare,  // beyond the limit of connections, or accepted while the server stops
};

// One "http-N" thread and its connections. Outlives its server for as long as a responder holds a connection.
class ServerLoop : public std::enable_shared_from_this<ServerLoop> {
 public:
  explicit ServerLoop(std::shared_ptr<ServerState> s) : shared(std::move(s)), sweep_(io) {}

  void Start(int number);
  // The following on this thread.
  void Adopt(boost::asio::ip::tcp::socket socket, bool spare);
  void Release(ServerConnections::iterator at, ServerStanding standing) { Of(standing).erase(at); }
  // To the end of those of standing `to`.
  void Move(ServerConnections::iterator at, ServerStanding from, ServerStanding to) {
    Of(to).splice(Of(to).end(), Of(from), at);
  }
  // Closes the connection that has been idle for longest, and counts one in its place for `by`. False: none
  // has been idle for long.
  bool CloseOldestIdle(ServerLoop& by);
  void Drain();

  void SweepSoon(Duration in);
  // Ends every connection and the thread.
  void Stop();

  struct Delivery {
    std::shared_ptr<ServerConnection> to;
    uint64_t request;
    HttpResponse reply;
    HttpResponder::Sent sent;
  };
  // From another thread. Answers that come while the thread is busy wait for it together.
  void Deliver(Delivery delivery);
  bool OnThread() const { return std::this_thread::get_id() == thread_id_.load(std::memory_order_relaxed); }

  const std::shared_ptr<ServerState> shared;
  boost::asio::io_context io{1};
  std::atomic<int> connections = 0;  // adopted, or about to be; without spare ones

 private:
  void TakeDeliveries();
  void Sweep();
  ServerConnections& Of(ServerStanding standing) { return connections_[static_cast<size_t>(standing)]; }

  // By standing, of the thread, as the timer. Those that are idle, or spare, for longest are the first.
  std::array<ServerConnections, 3> connections_;
  boost::asio::steady_timer sweep_;
  bool stopping_ = false;
  std::atomic<std::thread::id> thread_id_{};

  Mutex mutex_;
  std::vector<Delivery> deliveries_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;

  std::jthread thread_;
};

// All but Answer is called on the loop's thread.
class ServerConnection final : public HttpResponder::Connection,
                               public std::enable_shared_from_this<ServerConnection> {
 public:
  ServerConnection(std::shared_ptr<ServerLoop> loop, boost::asio::ip::tcp::socket socket, bool spare)
      : loop_(std::move(loop)),
        shared_(*loop_->shared),
        socket_(std::move(socket)),
        reader_(shared_.limits, shared_.budget),
        standing_(spare ? ServerStanding::kSpare : ServerStanding::kIdle),
        since_(shared_.clock.Now()),
        last_progress_(since_) {}

  ServerConnections::iterator place;  // in the loop's list of its standing
  ServerStanding standing() const { return standing_; }

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
  bool spare() const { return standing_ == ServerStanding::kSpare; }
  HttpActivity Activity() const;
  void Read();
  void OnRead(boost::system::error_code error, size_t size);
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

  const std::shared_ptr<ServerLoop> loop_;
  ServerState& shared_;
  boost::asio::ip::tcp::socket socket_;
  HttpRequestReader reader_;
  HttpResponseQueue answers_;
  ServerStanding standing_;
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

}  // namespace weir::http
