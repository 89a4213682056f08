// Files from the web.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/clock.h"
#include "data/reject.h"

namespace weir::data {

struct FetchOptions {
  int retries = 2;                 // after the first try, for what may go by itself
  Duration timeout = 30s;          // of one try
  Duration connect_timeout = 10s;  // of it
  Duration wait = 1s;              // before the first retry; twice as long before each next
  int max_redirects = 5;           // to http and https only
};

// The body of `url` (http or https). Tried again after what may pass: no connection, a timeout, a body cut
// short, and the status 408, 429 and 5xx. Rejects: kUnreachable with the last reason, kTooManyBytes. Blocks;
// thread-safe.
Accepted<Bytes> Fetch(const std::string& url, uint64_t max_bytes, const FetchOptions& options);

}  // namespace weir::data
