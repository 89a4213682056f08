// The error messages that a server sends.
#pragma once

#include <cstddef>
#include <string>

#include "base/error.h"

namespace weir::http {

// Returns the message as a client gets it, over any protocol: cut to about kMaxErrorText bytes, because names
// that clients choose may make it long. Bytes that are not UTF-8 are escaped.
constexpr size_t kMaxErrorText = 2048;  // what clients of gRPC take as a header
std::string ErrorText(const Error& error);

// Returns {"error": ErrorText}.
std::string ErrorBody(const Error& error);

}  // namespace weir::http
