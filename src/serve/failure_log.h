// Failures of requests, told to a person at a rate that can be read.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "serve/log.h"

namespace weir::serve {

// Of each kind of error the first few of every ten seconds are told, and of the others the number, with the
// next that is. Thread-safe.
class FailureLog {
 public:
  FailureLog(const Clock& clock, Log log) : clock_(clock), log_(std::move(log)) {}

  // `request_id` is the client's; empty: it gave none.
  void Tell(const Error& error, const std::string& request_id);
  const Log& log() const { return log_; }

 private:
  struct Kind {
    std::optional<Instant> since;  // when the ten seconds began
    int told = 0;
    int64_t untold = 0;
  };

  const Clock& clock_;
  const Log log_;
  Mutex mutex_;
  std::array<Kind, 9> kinds_ GUARDED_BY(mutex_);
};

}  // namespace weir::serve
