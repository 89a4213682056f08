#include "results/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/fields.h"

namespace weir::results {
namespace {

// In JSON the names stand for the values.
struct StoredCause {
  std::string reason, evidence;
};
struct Stored {
  std::string verdict;
  std::vector<StoredCause> reasons;
  std::string message;
};

template <typename F>
void Describe(F& fields, Described<F, StoredCause>& cause) {
  fields("reason", cause.reason);
  fields("evidence", cause.evidence);
}

template <typename F>
void Describe(F& fields, Described<F, Stored>& stored) {
  fields("verdict", stored.verdict);
  fields("reasons", stored.reasons);
  fields.Unless("message", stored.message);
}

constexpr std::array kStandings{
    std::pair{Standing::kValid, std::string_view("VALID")},
    std::pair{Standing::kSuspect, std::string_view("SUSPECT")},
    std::pair{Standing::kInvalid, std::string_view("INVALID")},
    std::pair{Standing::kFailed, std::string_view("failed")},
    std::pair{Standing::kSkipped, std::string_view("skipped")},
};

constexpr std::array kReasons{
    std::pair{Reason::kGeneratorLate, std::string_view("generator-late")},
    std::pair{Reason::kGeneratorBusy, std::string_view("generator-busy")},
    std::pair{Reason::kRateMissed, std::string_view("rate-missed")},
    std::pair{Reason::kNoSteadyState, std::string_view("no-steady-state")},
    std::pair{Reason::kErrors, std::string_view("errors")},
    std::pair{Reason::kSteal, std::string_view("steal")},
    std::pair{Reason::kForeignCpu, std::string_view("foreign-cpu")},
    std::pair{Reason::kThrottling, std::string_view("throttling")},
    std::pair{Reason::kTooFewSamples, std::string_view("too-few-samples")},
    std::pair{Reason::kServerShared, std::string_view("server-shared")},
    std::pair{Reason::kHostLost, std::string_view("host-lost")},
};

template <typename Names, typename Value>
std::string_view NameOf(const Names& names, Value value) {
  const auto found = std::ranges::find(names, value, [](const auto& name) { return name.first; });
  CHECK(found != names.end());
  return found->second;
}

template <typename Names>
auto ValueOf(const Names& names, std::string_view what, std::string_view text)
    -> Result<typename Names::value_type::first_type> {
  const auto found = std::ranges::find(names, text, [](const auto& name) { return name.second; });
  if (found == names.end()) return Fail(ErrorCode::kCorrupt, fmt::format("\"{}\" is no {}", text, what));
  return found->first;
}

}  // namespace

std::string_view ToString(Standing standing) { return NameOf(kStandings, standing); }
std::string_view ToString(Reason reason) { return NameOf(kReasons, reason); }
Result<Standing> ReadStanding(std::string_view name) { return ValueOf(kStandings, "verdict", name); }
Result<Reason> ReadReason(std::string_view name) { return ValueOf(kReasons, "reason", name); }

void Verdict::Add(Standing at_best, Cause cause) {
  standing = std::max(standing, at_best);
  causes.push_back(std::move(cause));
}

Json Verdict::ToValue() const {
  Stored stored{.verdict = std::string(ToString(standing)), .message = message};
  for (const Cause& cause : causes)
    stored.reasons.push_back({.reason = std::string(ToString(cause.reason)), .evidence = cause.evidence});
  return FieldsToJson(stored);
}

Result<Verdict> Verdict::FromValue(const Json& json) {
  Stored stored = TRY(FieldsFromJson<Stored>(json));
  Verdict verdict;
  verdict.standing = TRY(ReadStanding(stored.verdict));
  for (StoredCause& cause : stored.reasons)
    verdict.causes.push_back({TRY(ReadReason(cause.reason)), std::move(cause.evidence)});
  verdict.message = std::move(stored.message);
  return verdict;
}

}  // namespace weir::results
