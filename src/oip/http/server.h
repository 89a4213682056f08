// The protocol's routes over HTTP: every path, verb and error, before and behind the Api.
#pragma once

#include <cstddef>
#include <functional>

#include "base/clock.h"
#include "http/http_server.h"
#include "http/work_pool.h"
#include "oip/api.h"
#include "oip/status.h"

namespace weir::oip {

struct OipHttpOptions {
  Compat compat = Compat::kNone;
  bool allow_regions = false;  // shared memory: 501 otherwise

  // Where JSON of `large_json` bytes and more is read and written, so that it does not hold a thread of the
  // HttpServer up. Must outlive `api`; requests are refused with 503 while its queue is full. Null: JSON is
  // read on the server's thread, and written where the inference was answered.
  http::WorkPool* json_pool = nullptr;
  size_t large_json = 64 << 10;
  std::function<void()> on_pool_full;  // called for each request that is refused; may be empty
};

// The handler of an HttpServer (whose align_after should be kHeaderLengthName). `api` and `clock` must
// outlive it. Paths with and without version and trailing slash; 404 for others, 405 with Allow for a wrong
// verb, 415 for a POST of a type or coding that it does not know, or of a web page that names no type.
http::HttpServer::Handler MakeOipHttpHandler(Api& api, const Clock& clock, OipHttpOptions options);

// Whether `request` asks only whether the server or a model is live or ready: see
// HttpServer::Options::is_probe.
bool IsHealthProbe(const http::HttpRequest& request);

inline constexpr std::string_view kHeaderLengthName = "Inference-Header-Content-Length";

}  // namespace weir::oip
