// Holds a stored result of a load run against the rules that every such result keeps.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace weir::load {

// The names of the rules.
namespace rule {
constexpr std::string_view kCounts = "counts";            // planned = answered + failed + unsent
constexpr std::string_view kErrorKinds = "error-kinds";   // errors are of known kinds, and add up
constexpr std::string_view kSamples = "samples";          // each distribution is of all that belong to it
constexpr std::string_view kOrder = "order";              // min <= p50 <= ... <= max, the mean between
constexpr std::string_view kSupport = "support";          // no percentile that n says too little of
constexpr std::string_view kDeviation = "deviation";      // standard deviations are those of their samples
constexpr std::string_view kIntervals = "intervals";      // in order with the other figures
constexpr std::string_view kService = "service";          // no longer than the response
constexpr std::string_view kRuns = "runs";                // a level is the sum of its runs
constexpr std::string_view kThroughput = "throughput";    // answers over time
constexpr std::string_view kGenerator = "generator";      // late, busy and a rate missed are told
constexpr std::string_view kSplit = "split";              // the parts of the mean response time are it
constexpr std::string_view kSlowest = "slowest";          // those of the slow ones are theirs
constexpr std::string_view kServer = "server";            // the server's account fits the client's
constexpr std::string_view kResources = "resources";      // min <= mean <= max, no share above the whole
constexpr std::string_view kMachine = "machine";          // steal and throttling above the limit are told
constexpr std::string_view kVerdict = "verdict";          // VALID, SUSPECT or INVALID, by the reasons
constexpr std::string_view kClaim = "claim";              // its answer is what the percentiles allow
constexpr std::string_view kReasons = "reasons";          // known; there just where a claim is not VALID
constexpr std::string_view kErrors = "errors";            // more than the limit: INVALID
constexpr std::string_view kTooFew = "too-few-samples";   // fewer than the limit: not VALID
constexpr std::string_view kLevels = "levels";            // there is one at least
constexpr std::string_view kProvenance = "provenance";    // host, build and command are told
constexpr std::string_view kBuild = "build";              // of a source that can be had again
constexpr std::string_view kInterrupted = "interrupted";  // not before its end
}  // namespace rule

inline constexpr double kRounding = 1e-9;  // relative, of figures that were calculated twice

struct Finding {
  std::string_view rule;  // one of the above
  std::string where;      // "levels[0].runs[2]"; empty: the result itself
  std::string what;
  // The result says what cannot be so, or calls VALID what is not. Otherwise: worth knowing.
  bool fatal = true;
};

// `result`: what `weir load --json` writes; keys that are not known are passed over. Empty: it keeps all
// rules, which an INVALID result does too that says so. kCorrupt names the key, with its place, that is
// missing or of another kind; it is told before any rule is looked at. Limits are those of load::Limits.
Result<std::vector<Finding>> Validate(const Json& result);

}  // namespace weir::load
