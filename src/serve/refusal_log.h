// Lines about refused gRPC connections and messages, at a rate that a person can read.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "wire/grpc_admission.h"

namespace weir::serve {

// The first refusal of each reason is told at once, then one in ten seconds with the number of the others.
// Thread-safe.
class RefusalLog {
 public:
  // Returns the line to log now; nullopt if it is not time for one.
  std::optional<std::string> Tell(wire::GrpcRefusal refusal, const std::string& who, Instant now);

 private:
  struct Kind {
    std::optional<Instant> told;
    int64_t untold = 0;
  };
  Mutex mutex_;
  std::array<Kind, wire::kGrpcRefusals> kinds_ GUARDED_BY(mutex_);
};

}  // namespace weir::serve
