// Files from the web.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "base/bytes.h"
#include "base/clock.h"
#include "image/reject.h"

namespace weir::dataset {

struct FetchOptions {
  int retries = 2;         // after the first try, for what may go by itself
  Duration timeout = 30s;  // of one try
  std::stop_token stop;    // ends the transfer, or the wait for the next try
};

// The body of `url` (http or https). Tried again after what may pass: no connection, a timeout, a body cut
// short, and the status 408, 429 and 5xx; first after a second, then after twice as long each time, up to a
// minute. Up to five redirects, to http and https only. Rejects: kUnreachable with the last reason (also
// where it was stopped), kTooManyBytes. Blocks; thread-safe.
image::Accepted<Bytes> Fetch(const std::string& url, uint64_t max_bytes, const FetchOptions& options);

}  // namespace weir::dataset
