// The machinery behind the gRPC server: completion queues, their threads, and what all calls share. Private
// to grpc_*.cc: the library's headers are heavy.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/async_unary_call.h>

#include <atomic>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "http/byte_budget.h"
#include "oip/grpc/acceptor.h"  // after the library's headers: it undoes their macros
#include "oip/grpc/codec.h"
#include "oip/grpc/server.h"
#include "oip/grpc/tsan_annotations.h"

namespace weir::oip {

// The methods as the library wants them; by number, every message as bytes.
class GrpcMethodTable final : public grpc::Service {
 public:
  enum : int { kInfer, kStream, kWatch, kOthers };  // from kOthers on those of GrpcMethods()

  GrpcMethodTable();
  int size() const { return size_; }
  using grpc::Service::RequestAsyncBidiStreaming;
  using grpc::Service::RequestAsyncServerStreaming;
  using grpc::Service::RequestAsyncUnary;

 private:
  int size_ = 0;
};

// A tag of a completion queue: whose turn it is, and for what.
struct GrpcEvent {
  void (*happened)(void* self, bool ok);
  void* self;
};
template <auto Method, typename Owner>
GrpcEvent On(Owner* owner) {
  return {[](void* self, bool ok) { (static_cast<Owner*>(self)->*Method)(ok); }, owner};
}

// Nothing may be asked of a completion queue that is shut down, and answers come on any thread at any time:
// they pass here. Thread-safe. Outlives the server for as long as an answer is awaited.
class GrpcGate {
 public:
  // Whoever may go in holds one of these for as long as it is inside.
  class Pass {
   public:
    explicit Pass(GrpcGate& gate) : gate_(gate), open_(gate.Enter()) { AnnotateRelease(); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass() { gate_.Leave(); }
    // False: the gate is closed, and what lies behind it may be gone.
    explicit operator bool() const { return open_; }

   private:
    GrpcGate& gate_;
    const bool open_;
  };
  // Returns when all have left.
  void Close();

 private:
  bool Enter() {
    inside_.fetch_add(1);
    return !closed_;
  }
  void Leave() {
    inside_.fetch_sub(1);
    if (closed_) inside_.notify_all();
  }

  std::atomic<int> inside_ = 0;
  std::atomic<bool> closed_ = false;
};

// Calls that have come and whose answer is not sent. Thread-safe.
class GrpcInFlight {
 public:
  void Add() { count_.fetch_add(1); }
  void Remove();
  void Drain() { draining_ = true; }
  bool draining() const { return draining_; }
  bool WaitUntilIdle(Instant until);

 private:
  std::atomic<int> count_ = 0;
  std::atomic<bool> draining_ = false;
  Mutex mutex_;
  CondVar idle_;
};

// State that the queues of a server share.
struct GrpcShared {
  GrpcShared(OipGrpcServer::Options options, Api& api, const Clock& clock);

  const OipGrpcServer::Options options;
  Api& api;
  const Clock& clock;
  const std::shared_ptr<http::ByteBudget> budget;
  const std::shared_ptr<GrpcGate> gate;
  GrpcInFlight in_flight;
  GrpcMethodTable methods;
  std::unique_ptr<GrpcAcceptor> acceptor;
};

// Counts a call of a connection for as long as it is open.
class GrpcOpenCall {
 public:
  enum class Kind { kOneMessage, kStream };
  GrpcOpenCall(const GrpcShared& shared, const grpc::ServerContext& context, Kind kind);
  GrpcOpenCall(const GrpcOpenCall&) = delete;
  GrpcOpenCall& operator=(const GrpcOpenCall&) = delete;
  ~GrpcOpenCall();
  // Counts a message that is complete.
  void CountMessage(const grpc::ByteBuffer& message);

 private:
  const std::shared_ptr<GrpcConnection> connection_;  // null: it has been closed
  const Kind kind_;
};

grpc::Status ToGrpc(const Error& error, Compat compat);
grpc::ByteBuffer ToGrpc(const std::string& message);

// An inference as it is carried from its request to its answer, by a call or in a stream.
struct GrpcInference {
  std::vector<RequestedOutput> outputs;
  std::string id;
  RequestTrace exchange;
  std::optional<http::ByteBudget::Share> answer;  // of the budget, until it is sent

  Result<InferRequest> Read(const GrpcShared& shared, const grpc::ServerContext& context,
                            const grpc::ByteBuffer& message, std::stop_token left);
  Result<Slices> Write(const GrpcShared& shared, Result<infer::Response> result, const infer::Times& times);
};

// A call of some method, from the time it is waited for.
class GrpcCall {
 public:
  virtual ~GrpcCall() = default;
  virtual void Ask() = 0;       // for the next call of its method, behind the gate
  virtual void Drain() {}       // ends what has no end of its own; on any thread
  virtual void TellHealth() {}  // looks whether there is news for a watcher; on any thread

  const int method;
  std::list<std::unique_ptr<GrpcCall>>::iterator place;  // in its queue

 protected:
  explicit GrpcCall(int number) : method(number) {}
};

// A completion queue, its thread "grpc-N" and the calls on it.
class GrpcQueue {
 public:
  GrpcQueue(GrpcShared& shared, std::unique_ptr<grpc::ServerCompletionQueue> library);
  ~GrpcQueue();  // after the server's shutdown, the gate closed

  // Asks for the first calls of every method, and starts.
  void Start(int number);
  void Drain();
  void TellHealth();
  // For a call of that method. On the queue's thread.
  void Ask(int method);
  // A call that is over and may be used again, or not. On the queue's thread.
  void Reuse(GrpcCall& call) { idle_.push_back(&call); }
  void Drop(GrpcCall& call);

  GrpcShared& shared;
  const std::unique_ptr<grpc::ServerCompletionQueue> library;

 private:
  void Run();
  GrpcCall& Make(int method);

  std::vector<GrpcCall*> idle_;  // unary calls of calls_

  Mutex mutex_;
  std::list<std::unique_ptr<GrpcCall>> calls_ GUARDED_BY(mutex_);

  std::jthread thread_;
};

std::unique_ptr<GrpcCall> MakeGrpcUnary(GrpcQueue& queue, int method);
std::unique_ptr<GrpcCall> MakeGrpcStream(GrpcQueue& queue);
std::unique_ptr<GrpcCall> MakeGrpcWatch(GrpcQueue& queue);

}  // namespace weir::oip
