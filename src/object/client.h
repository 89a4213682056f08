// Requests to one store from any thread.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "object/request_loop.h"

namespace weir::object {

// The shell around a RequestLoop: one thread, "object", which drives the transport. Thread-safe.
class Client {
 public:
  // `before` is called on the submitting thread ahead of each request, and may refuse it: it renews
  // credentials. `clock` must outlive the client.
  Client(std::unique_ptr<Transport> transport, std::unique_ptr<RequestBuilder> builder, const Clock& clock,
         RequestLoop::Options options, std::function<Status()> before = {});
  // Answers what is open with kCancelled.
  ~Client();

  // The operation's `done` is called once, on the client's thread or, if it is refused, here.
  void Submit(Operation operation) EXCLUDES(mutex_);
  // Blocks until the response is there; kCancelled when `stop` came first.
  Result<Response> Do(Operation operation, const std::stop_token& stop = {}) EXCLUDES(mutex_);
  RequestCounts counts() const EXCLUDES(mutex_);

 private:
  void Work(const std::stop_token& stop) EXCLUDES(mutex_);

  const std::unique_ptr<Transport> transport_;
  const std::unique_ptr<RequestBuilder> builder_;
  const std::function<Status()> before_;
  RequestLoop loop_;  // of the thread alone

  mutable Mutex mutex_;
  std::vector<Operation> inbox_ GUARDED_BY(mutex_);
  RequestCounts counts_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;

  std::jthread thread_;
};

}  // namespace weir::object
