// The protocol's routes over HTTP: every path, verb and error, before and behind the Api.
#pragma once

#include "base/clock.h"
#include "wire/http_server.h"
#include "wire/oip.h"
#include "wire/status.h"

namespace weir::wire {

struct HttpDoorOptions {
  Compat compat = Compat::kNone;
  bool allow_regions = false;  // shared memory: 501 otherwise
};

// The handler of an HttpServer (whose align_after should be kHeaderLengthName). `api` and `clock` must
// outlive it. Paths with and without version and trailing slash; 404 for others, 405 with Allow for a wrong
// verb, 415 for a body of a type or coding it does not know.
HttpServer::Handler MakeHttpDoor(Api& api, const Clock& clock, HttpDoorOptions options);

inline constexpr std::string_view kHeaderLengthName = "Inference-Header-Content-Length";

}  // namespace weir::wire
