// The answers of one connection on their way out, in the order of their requests.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "http/byte_budget.h"
#include "http/http_server.h"

namespace weir::http {

// Not thread-safe. No socket: the caller sends what Gather gives and says how much went.
class HttpResponseQueue {
 public:
  // The facts of a request that its response needs.
  struct Form {
    bool close = false;  // the connection ends with this answer
    bool is_head = false;
    bool is_http10 = false;
  };
  // Reserves the place of one response and returns its number.
  uint64_t Open(Form form);
  std::stop_token left(uint64_t number);  // REQUIRES: open
  // "100 Continue" in its turn.
  void Continue();
  // The answer to an open number; `sent` is called when its last byte went, or the answers were abandoned.
  // Until then it counts against `budget`, if there is one. True when the connection ends with it.
  bool Put(uint64_t number, HttpResponse reply, HttpResponder::Sent sent,
           const std::shared_ptr<ByteBudget>& budget = nullptr);

  // How every answer begins. Sent early, it shows whether the client still listens: one that is gone resets
  // the connection. Empty when the next answer has begun or is ready.
  std::span<const std::byte> EarlyBytes() const;

  // The bytes to send next, as many parts as fit `parts`; returns how many. 0: nothing is ready.
  size_t Gather(std::span<std::span<const std::byte>> parts) const;
  // So many of them went. Calls what waits for that.
  void Advance(size_t size, Instant now);

  size_t open() const { return slots_.size(); }  // not yet sent whole
  bool ready() const { return !slots_.empty() && slots_.front().ready; }
  bool closed() const { return closed_; }  // the last one before the end has been sent, or all are abandoned
  // The connection ends once nothing more is open.
  void CloseWithLast() { close_with_last_ = true; }

  void ClientLeft();          // asks for a stop of all that is open
  void Abandon(Instant now);  // and nothing more will be sent

 private:
  struct Slot {
    Form form;
    bool ready = false;
    std::string head;
    std::vector<Bytes> body;
    HttpResponder::Sent sent;
    std::optional<ByteBudget::Share> share;
    std::stop_source left{std::nostopstate};
    size_t size() const;
  };
  Slot& Find(uint64_t number);
  void PopFront(Instant now);

  std::deque<Slot> slots_;
  uint64_t first_ = 0;  // the number of slots_.front()
  size_t gone_ = 0;     // bytes of slots_.front() that went
  bool close_with_last_ = false, closed_ = false;
};

}  // namespace weir::http
