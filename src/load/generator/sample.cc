#include "load/generator/sample.h"

#include <array>

namespace weir::load {

std::string_view ToString(Outcome outcome) {
  constexpr std::array<std::string_view, kOutcomes> kNames = {
      "answered", "wrong_answer", "timeout", "refused", "connection", "rejected", "server", "unsent"};
  return kNames[static_cast<size_t>(outcome)];
}

Outcome OutcomeOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kDeadline:
    case ErrorCode::kCancelled:
      return Outcome::kTimedOut;  // the generator gives up only what is overdue
    case ErrorCode::kOverloaded:
      return Outcome::kRefused;
    case ErrorCode::kIo:
      return Outcome::kNoServer;
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kNotFound:
    case ErrorCode::kUnsupported:
      return Outcome::kRejected;
    default:
      return Outcome::kFailed;
  }
}

}  // namespace weir::load
