// The seam between requests for objects and the network: curl in the program, a fake in tests.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "object/sigv4.h"

namespace weir::object {

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  std::vector<Header> headers;
  Bytes body;                      // of PUT and POST
  uint64_t max_bytes = 256 << 20;  // of the response's body; more ends the transfer
  Duration timeout = 60s;          // of the transfer whole
  bool follow_redirects = false;   // up to five, to http and https
  bool use_proxy = true;           // as the environment says (http_proxy, no_proxy)
};

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string, std::less<>> headers;  // by lower-case name; the last of equal names
  Bytes body;
};

// A transfer that gave no whole response.
struct TransportFault {
  enum class Kind {
    kMayPass,   // no connection, a reset, a body cut short, a timeout
    kTooLarge,  // more bytes than HttpRequest::max_bytes
    kFinal      // a wrong URL, a certificate that is not trusted
  };
  Kind kind = Kind::kMayPass;
  std::string message;
};
using TransportResult = std::expected<HttpResponse, TransportFault>;

// One thread at a time, but Wake.
class Transport {
 public:
  using Done = std::move_only_function<void(TransportResult)>;
  virtual ~Transport() = default;

  // Begins a transfer. REQUIRES: CheckRequest (header_rules.h) accepts it. `done` is called by a later Drive,
  // never by Start; not at all after Cancel.
  virtual uint64_t Start(HttpRequest request, Done done) = 0;
  virtual void Cancel(uint64_t transfer) = 0;
  // Returns when bytes of the response last came; nullopt: none have. REQUIRES: it has not ended.
  virtual std::optional<Instant> LastBytes(uint64_t transfer) const = 0;
  // Moves transfers on and calls what is done; returns when something was, at `until`, or after Wake.
  virtual void Drive(Instant until) = 0;
  // From any thread: ends the Drive under way, or the next one.
  virtual void Wake() = 0;
};

}  // namespace weir::object
