#include "record/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace weir::record {
namespace {

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

void Verdict::Add(Standing at_best, Cause cause) {
  standing = std::max(standing, at_best);
  causes.push_back(std::move(cause));
}

Json Verdict::ToJson() const {
  Json json{{"verdict", ToString(standing)}, {"reasons", Json::array()}};
  for (const Cause& cause : causes) {
    json["reasons"].push_back({{"reason", ToString(cause.reason)}, {"evidence", cause.evidence}});
  }
  if (!message.empty()) json["message"] = message;
  return json;
}

Result<Verdict> Verdict::FromJson(const Json& json) {
  Verdict verdict;
  verdict.standing = TRY(ValueOf(kStandings, "verdict", TRY(GetString(json, "verdict"))));
  const auto reasons = json.find("reasons");
  if (reasons == json.end() || !reasons->is_array()) {
    return Fail(ErrorCode::kCorrupt, "key \"reasons\" is missing or is not a list");
  }
  for (const Json& item : *reasons) {
    const Reason reason = TRY(ValueOf(kReasons, "reason", TRY(GetString(item, "reason"))));
    verdict.causes.push_back({reason, TRY(GetString(item, "evidence"))});
  }
  if (json.contains("message")) verdict.message = TRY(GetString(json, "message"));
  return verdict;
}

}  // namespace weir::record
