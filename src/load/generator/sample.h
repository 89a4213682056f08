// One timed request, and how it ended.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"

namespace weir::load {

enum class Outcome : uint8_t {
  kAnswered,
  kWrongAnswer,  // answered, but not with what was expected
  kTimedOut,
  kRefused,   // the other side had no room for it
  kNoServer,  // the connection could not be made, or broke
  kRejected,  // the other side finds fault with the request
  kFailed,    // the other side failed
  kUnsent,    // due within the run, and not sent by its end
};
constexpr int kOutcomes = 8;
// The key in results: "answered", "wrong_answer", "timeout", "refused", "connection", "rejected", "server",
// "unsent".
std::string_view ToString(Outcome outcome);
Outcome OutcomeOf(ErrorCode code);

// Moments of one clock. Response time is done - planned: what one waits who comes at the planned moment.
// Service time is done - sent. Slip is sent - planned.
struct Sample {
  Instant planned;     // by the schedule; in a closed loop when its place became free
  Instant sent;        // began to leave
  Instant first_byte;  // of the answer; equal to `done` where it is not known
  Instant done;
  Duration send{};       // from `sent` until its last byte was handed to the kernel; 0: not known
  uint32_t request = 0;  // its number in the pool
  Outcome outcome = Outcome::kAnswered;

  Duration response() const { return done - planned; }
  Duration service() const { return done - sent; }
  Duration slip() const { return sent - planned; }
};
static_assert(sizeof(Sample) <= 64);

}  // namespace weir::load
