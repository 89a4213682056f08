// HTTP/1.1 requests to one server over pooled connections. Knows nothing of inference.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "http/client_options.h"
#include "http/http_response_reader.h"
#include "http/server_url.h"

namespace weir::http {

class EventLoop;

// One request and who waits for its answer.
struct HttpExchange {
  struct Stamps {
    std::optional<Instant> begun;             // its first byte was handed to the kernel
    std::optional<Instant> written;           // its last byte was
    std::optional<Instant> first_byte, done;  // of the answer: its first byte and its last came to this host
  };
  // Called exactly once, on a thread of the transport, never from within Send.
  using Done = std::move_only_function<void(Result<HttpClientResponse>, const Stamps&)>;

  Bytes head;                        // request line and headers, with the empty line that ends them
  std::vector<Bytes> parts;          // the body, sent as it lies; let go as soon as it will not be sent again
  uint64_t most_answer = kMostBody;  // bytes of the answer's body
  std::optional<Instant> due;
  std::stop_token cancelled;
  Done done;
};

// Thread-safe. Each of its threads has connections of its own; a call goes to the thread with the fewest
// under way. Times run on the system's timers, so `clock` has to be a real one.
class HttpTransport {
 public:
  // Without threads it may share `loop` with other transports of the same thread: Drive of one drives all.
  // REQUIRES: no loop, or options.threads == 0.
  static Result<std::unique_ptr<HttpTransport>> Create(const ServerUrl& server, const ClientOptions& options,
                                                       const Clock& clock,
                                                       std::shared_ptr<EventLoop> loop = nullptr);
  // Answers what is left kCancelled and joins; not to be run by a Done. Of a transport of one thread a Done
  // that is told so may Send, and is told so again; nobody else may meanwhile. May have to wait for the
  // system's resolver of names.
  virtual ~HttpTransport() = default;
  virtual void Send(HttpExchange exchange) = 0;  // never blocks
  // As infer::Endpoint's.
  virtual Duration Drive(Instant until, Duration awake) = 0;
};

}  // namespace weir::http
