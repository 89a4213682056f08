// The error that a response of another server stands for.
#pragma once

#include "base/error.h"
#include "http/http_response_reader.h"

namespace weir::oip {

// Returns the error of a response whose status is not 2xx. The message is the text of its JSON "error" if it
// has one, else the status with the beginning of its body.
Error ErrorOf(const http::HttpClientResponse& answer);

}  // namespace weir::oip
