// How long an HTTP connection may take over what it does. Policy alone: no socket, and the caller passes
// `now`.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>

#include "base/clock.h"

namespace weir::http {

struct HttpTimeouts {
  Duration header = 10s;      // from the first byte of a request to the end of its headers
  Duration request = 600s;    // from the first byte of a request to the last byte of its body
  Duration stall = 30s;       // without a byte of a body, or of a response being read by the client
  Duration idle = 120s;       // between requests
  size_t least_rate = 16384;  // bytes a second of a body, or of a response being read; 0: any
  Duration grace = 20s;       // before the least rate counts
  Duration spare = 1s;        // from the accept to the last byte of the response, beyond the connection limit
  Duration linger = 2s;       // for the client to close after the last response
};

// Bytes that move in one direction.
struct HttpTransfer {
  Instant began{}, last_byte{};
  size_t bytes = 0;
};

// The activity of a connection. All moments are on the server's clock.
struct HttpActivity {
  enum class Phase {
    kIdle,       // between requests
    kHead,       // in a request line or headers
    kBody,       // in a body
    kWorking,    // the server owes a response
    kSending,    // the client does not read its response as fast as it is sent
    kLingering,  // the last response was sent; the client is to close
  };
  Phase phase = Phase::kIdle;
  bool spare = false;     // beyond the connection limit: only probes are answered
  bool draining = false;  // the server is stopping
  Instant since{};        // accepted, when `spare`; otherwise when the phase began
  Instant first_byte{};   // of the request; kHead and kBody
  HttpTransfer transfer;  // of kBody and kSending
};

// The decision about a connection.
struct HttpTimeVerdict {
  enum class Action { kKeep, kClose, kRefuse };
  Action action = Action::kKeep;
  std::string_view reason;  // of kRefuse; what the client is told with 408
};

HttpTimeVerdict JudgeTime(const HttpTimeouts& timeouts, const HttpActivity& activity, Instant now);

}  // namespace weir::http
