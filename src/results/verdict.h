// Whether a result may be believed, and why not: a closed list, so that programs can react to it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace weir::results {

// From best to worst. Headlines come from VALID only.
enum class Standing {
  kValid,
  kSuspect,  // measured, but something may have bent it
  kInvalid,  // measured, and what it claims is not so
  kFailed,   // the work ended in an error
  kSkipped,  // the work was not done
};
std::string_view ToString(Standing standing);  // "VALID", "SUSPECT", "INVALID", "failed", "skipped"

enum class Reason {
  kGeneratorLate,  // requests left later than planned
  kGeneratorBusy,  // a thread of the load generator had no time to spare: the generator was measured
  kRateMissed,     // fewer requests than asked for went out or came back
  kNoSteadyState,  // the figures still drift at the end
  kErrors,         // requests failed
  kSteal,          // the hypervisor took CPU time away
  kForeignCpu,     // other processes used the CPUs
  kThrottling,     // the control group's CPU quota held the work back
  kTooFewSamples,  // not enough of them for the figure
  kServerShared,   // the server worked for other clients as well
  kHostLost,       // a host of several was lost on the way
};
std::string_view ToString(Reason reason);              // "generator-late", "generator-busy", ...
Result<Standing> ReadStanding(std::string_view name);  // kCorrupt for a name that is not in the list
Result<Reason> ReadReason(std::string_view name);

struct Cause {
  Reason reason{};
  std::string evidence;  // the figure and its limit: "steal 3.1 % of the CPU time, limit 1 %"
  bool operator==(const Cause&) const = default;
};

struct Verdict {
  Standing standing = Standing::kValid;
  std::vector<Cause> causes;
  std::string message;  // why the work failed or was skipped; otherwise empty

  // Adds a cause; the standing becomes the worse of the two.
  void Add(Standing at_best, Cause cause);

  Json ToValue() const;
  Json ToJson() const { return ToValue(); }
  static Result<Verdict> FromValue(const Json& json);  // kCorrupt
  bool operator==(const Verdict&) const = default;
};

}  // namespace weir::results
