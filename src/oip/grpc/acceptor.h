// Accepts the connections of a gRPC server in the library's place: it has no limit of connections and does
// not recover from a lack of descriptors. Private to grpc_*.cc: the library's headers are heavy.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

// The library's headers bring macros of these names; ours are meant below.
#undef GUARDED_BY
#undef NO_THREAD_SAFETY_ANALYSIS
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/mutex.h"
#include "oip/grpc/admission.h"
#include "oip/grpc/streams.h"

namespace weir::oip {

// Counters that the calls of a connection keep. Thread-safe.
struct GrpcConnection {
  GrpcConnection(std::shared_ptr<GrpcCalls> all, const Clock& clock)
      : streams(std::make_shared<GrpcStreams>(std::move(all), clock)) {}

  const std::shared_ptr<GrpcStreams> streams;
  std::atomic<uint64_t> messages = 0;       // complete
  std::atomic<uint64_t> message_bytes = 0;  // of these
  std::atomic<int64_t> open_calls = 0;  // known to the server: their first message is complete, or not needed
  std::atomic<int64_t> open_streams = 0;  // of these, the ones that may receive further messages
};

// Thread-safe but for Start and Stop.
class GrpcAcceptor {
 public:
  // The load of all connections.
  struct Load {
    uint64_t unfinished_bytes = 0;  // of messages
    uint64_t received_bytes = 0;    // since the last look
  };
  struct Options {
    std::string address = "127.0.0.1";  // IPv4 or IPv6
    int port = 0;                       // 0: any
    GrpcAdmission::Options admission;
    // Called on the acceptor's thread; `who` is the client's address.
    std::function<void(GrpcRefusal reason, const std::string& who)> refused;
    // Called on the acceptor's thread about four times a second while there are connections or it asks for
    // more by returning true.
    std::function<bool(const Load& load)> tick;
  };
  using Library = grpc::experimental::ExternalConnectionAcceptor;

  // Listens. kInvalidArgument for what is no IP address; kIo names the address that cannot be had. `clock`
  // must outlive the acceptor.
  static Result<std::unique_ptr<GrpcAcceptor>> Listen(Options options, const Clock& clock);
  ~GrpcAcceptor();

  int port() const { return port_; }
  // Hands connections to the library from now on, on a thread "grpc-accept". The library's server must be
  // started, and shut down after Stop() only.
  void Start(std::unique_ptr<Library> library);
  // Stops listening. The library keeps its connections.
  void Stop();

  // Returns the connection that the library names by this peer; nullptr if it is closed.
  std::shared_ptr<GrpcConnection> Find(const std::string& peer) const;

 private:
  using Id = GrpcAdmission::Id;
  struct Open {
    UniqueFd socket;  // a duplicate: the library owns its own
    std::string who, peer;
    std::shared_ptr<GrpcConnection> connection;
    uint64_t received = 0;  // bytes, at the last look
  };

  GrpcAcceptor(Options options, const Clock& clock);
  Status Bind();
  void Run(const std::stop_token& stop);
  int Patience() const;
  void AcceptAll();
  bool AcceptOne();
  void OutOfDescriptors();
  void Admit(UniqueFd socket, std::string peer, std::string who);
  void Close(const GrpcAdmission::Closing& closing);
  void Forget(Id id);
  void Observe();
  bool Look();
  void ClearSuspects();
  void Listening(bool on);

  const Options options_;
  const Clock& clock_;
  const std::shared_ptr<GrpcCalls> calls_;
  int port_ = 0;
  UniqueFd listener_, epoll_, wake_;

  // On the acceptor's thread.
  std::unique_ptr<Library> library_;
  UniqueFd reserve_;  // given up to accept a connection when there is no other descriptor
  GrpcAdmission admission_;
  std::map<Id, Open> open_;
  Id last_id_ = 1;  // 0 and 1 stand for the listener and for the wake-up
  bool listening_ = true;
  Instant next_look_{}, observed_{};
  uint64_t received_ = 0;  // bytes, since the last look

  mutable Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<GrpcConnection>> by_peer_ GUARDED_BY(mutex_);

  std::jthread thread_;
};

}  // namespace weir::oip
