// The one table from our errors to what clients of each protocol see, and back.
#pragma once

#include <cstddef>
#include <string>

#include "base/error.h"

namespace weir::oip {

// kNone: our own. kTriton: Triton's codes where they differ (a client that left: 400; not ready: 400).
enum class Compat { kNone, kTriton };

// 400 invalid argument and corrupt, 404 not found, 499 cancelled, 501 unsupported, 503 overloaded and
// deadline (with Retry-After), 500 the rest.
int HttpStatus(ErrorCode code, Compat compat);
// Returns the code for a status that a server sent; kInternal for unknown ones.
ErrorCode FromHttpStatus(int status);

// gRPC's status codes by number: 3 INVALID_ARGUMENT, 5 NOT_FOUND, 1 CANCELLED, 12 UNIMPLEMENTED,
// 14 UNAVAILABLE (overloaded and deadline), 13 INTERNAL.
int GrpcStatus(ErrorCode code, Compat compat);
ErrorCode FromGrpcStatus(int status);

// The error text of another server is kept up to this many bytes, in one line.
constexpr size_t kMaxServerErrorText = 1000;

}  // namespace weir::oip
