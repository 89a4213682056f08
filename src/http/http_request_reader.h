// Bytes from a client to HTTP/1.1 requests. No socket: the caller reads into Space() and asks Next().
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "base/clock.h"
#include "http/byte_budget.h"
#include "http/http_server.h"
#include "http/http_timeouts.h"

namespace weir::http {

struct HttpLimits {
  size_t max_header = 16 << 10;  // of the request line and headers; of a chunk's header too
  size_t max_body = size_t{64} << 20;
  std::string align_after;  // see HttpServer::Options
};

// Why a connection ends here: what to answer before it is closed.
struct HttpRefusal {
  int status = 400;
  std::string message;
  bool over_budget = false;  // the bytes that all connections may hold together are used up
};

// One connection's. Not thread-safe. `limits` must outlive it.
class HttpRequestReader {
 public:
  HttpRequestReader(const HttpLimits& limits, std::shared_ptr<ByteBudget> budget);
  ~HttpRequestReader();

  // Where the next bytes of the connection go: a body of known length is read where it stays. Never empty
  // after Next has wanted more.
  std::span<std::byte> Space();
  void Filled(size_t size, Instant now);

  struct NeedMore {};
  // The next whole request, its `left` unset. After a refusal nothing more can be read.
  std::variant<NeedMore, HttpRequest, HttpRefusal> Next();

  // Returns the flag of the request that is being read, or was last given.
  bool keep_alive() const { return keep_alive_; }
  bool is_head() const { return is_head_; }
  bool is_http10() const { return is_http10_; }
  // True once for a request whose client waits for "100 Continue" before it sends the body.
  bool TakeExpectsContinue();

  enum class Phase { kIdle, kHead, kBody };  // between requests; in a request line or headers; in a body
  Phase phase() const;
  Instant first_byte() const { return first_byte_; }  // of the request that is being read
  // The body that is being read; of Phase::kBody.
  HttpTransfer body() const { return {body_began_, filled_at_, body_filled_}; }

  // Forgets what has come, so that what comes can be thrown away.
  void Discard();

 private:
  class Parser;
  using Step = std::variant<NeedMore, HttpRequest, HttpRefusal>;

  std::span<const std::byte> Waiting() const;  // bytes read and not yet used
  Step ReadHead();
  Step StartBody(const Parser& parser);
  Step ReadChunks();
  Step Finish();
  // Room for `more` bytes of a chunked body, of which `announced` are to come at least. False when the budget
  // is used up.
  bool Grow(size_t more, size_t announced);

  const HttpLimits& limits_;
  const std::shared_ptr<ByteBudget> budget_;
  const size_t capacity_;  // of buffer_

  std::unique_ptr<std::byte[]> buffer_;
  size_t begin_ = 0, end_ = 0;  // of Waiting()
  size_t scanned_ = 0;          // bytes of Waiting() without an end of the head
  Instant first_byte_{}, filled_at_{};

  std::unique_ptr<std::optional<Parser>> parser_;  // of one message; its memory is used again
  HttpRequest request_;
  size_t aligned_ = 0;  // the byte of the body that is to be aligned
  size_t body_size_ = 0, body_filled_ = 0;
  ByteBudget::Share* body_share_ = nullptr;  // of request_.body: what is announced counts as it comes
  bool over_budget_ = false;
  Instant body_began_{};
  enum class State { kHead, kLength, kChunks, kRefused } state_ = State::kHead;
  bool keep_alive_ = true, is_head_ = false, is_http10_ = false, expects_continue_ = false;
};

}  // namespace weir::http
