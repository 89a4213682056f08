#include "load/validate/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "load/generator/sample.h"
#include "load/validate/read_result.h"
#include "load/validate/validate_accounts.h"
#include "load/validate/validate_generator.h"
#include "load/validate/validate_statistics.h"
#include "load/verdict/judge.h"
#include "results/provenance.h"
#include "results/verdict.h"
#include "stats/quantile.h"

namespace weir::load {
namespace {

using results::LoadResult;
using results::Reason;
using results::Standing;
using Level = LoadResult::Level;
using Run = LoadResult::Run;
using Times = LoadResult::Times;
using Wide = __int128;  // sums of any counts

constexpr Limits kLimits{};
constexpr double kBucket = 1e-3;  // relative, of a quantile: as fine as stats::Histogram is

bool IsNear(double a, double b, double share = kRounding) {
  return std::abs(a - b) <= share * std::max(std::abs(a), std::abs(b));
}
// So that rounding is not held against it.
bool IsAbove(double a, double b, double share = kRounding) { return a > b && !IsNear(a, b, share); }

std::string Text(Wide count) { return fmt::format("{}", count); }

template <typename Value, size_t kCount>
bool IsName(const std::array<Value, kCount>& values, std::string_view text) {
  return std::ranges::any_of(values, [&](Value value) { return ToString(value) == text; });
}

bool IsReason(std::string_view text) {
  using enum results::Reason;
  constexpr std::array kReasons = {kGeneratorLate, kGeneratorBusy, kRateMissed, kNoSteadyState,
                                   kErrors,        kSteal,         kForeignCpu, kThrottling,
                                   kTooFewSamples, kServerShared,  kHostLost};
  return IsName(kReasons, text);
}

bool IsVerdict(std::string_view text) {
  using enum results::Standing;
  return IsName(std::array{kValid, kSuspect, kInvalid}, text);
}

bool IsErrorKind(std::string_view text) {
  for (int i = 1; i < kOutcomes; ++i) {
    if (ToString(static_cast<Outcome>(i)) == text) return true;
  }
  return false;
}

class LevelCheck {
 public:
  LevelCheck(const Level& level, int64_t batch, std::string where, std::vector<Finding>& findings)
      : level_(level), batch_(batch), where_(std::move(where)), findings_(findings) {}

  void Check() {
    Counts();
    Distributions();
    Sums();
    for (size_t i = 0; i < level_.runs.size(); ++i)
      CheckRun(level_.runs[i], fmt::format("{}.runs[{}]", where_, i));
    Verdicts();
    Errors();
    CheckAccounts(level_, where_, findings_);
  }

 private:
  void Add(std::string_view rule, std::string where, std::string what, bool fatal = true) {
    findings_.push_back({rule, std::move(where), std::move(what), fatal});
  }
  void Add(std::string_view rule, std::string what) { Add(rule, where_, std::move(what)); }

  void Counts();
  void Distributions();
  void Samples(const Times& times, const std::string& where, Wide wanted, const char* of);
  void OneDistribution(const Times& times, const std::string& where);
  void Sums();
  void CheckRun(const Run& run, const std::string& where);
  void RunThroughput(const Run& run, const std::string& where);
  void Verdicts();
  void OneVerdict(const std::string& claim, const std::string& verdict);
  void Errors();
  bool HasValidClaim() const;

  const Level& level_;
  const int64_t batch_;
  const std::string where_;
  std::vector<Finding>& findings_;
};

void LevelCheck::Counts() {
  const Wide sum = Wide{level_.answered} + level_.failed + level_.unsent;
  if (level_.planned != sum) {
    Add(rule::kCounts, fmt::format("{} requests were planned; {} answered, {} failed and {} unsent are {}",
                                   level_.planned, level_.answered, level_.failed, level_.unsent, Text(sum)));
  }
  Wide errors = 0;
  int64_t unsent = 0;
  for (const auto& [kind, count] : level_.errors) {
    if (!IsErrorKind(kind))
      Add(rule::kErrorKinds, fmt::format("there is no error of the kind \"{}\"", EscapeBytes(kind)));
    if (kind == ToString(Outcome::kUnsent)) unsent = count;
    errors += count;
  }
  if (errors != Wide{level_.failed} + level_.unsent) {
    Add(rule::kErrorKinds, fmt::format("the errors are {} by kind; {} failed and {} were unsent",
                                       Text(errors), level_.failed, level_.unsent));
  }
  if (unsent != level_.unsent)
    Add(rule::kErrorKinds, fmt::format("{} are unsent by kind, {} by number", unsent, level_.unsent));
}

void LevelCheck::Samples(const Times& times, const std::string& where, Wide wanted, const char* of) {
  if (times.n != wanted)
    Add(rule::kSamples, where, fmt::format("n is {}, not {} {}", times.n, Text(wanted), of));
}

void LevelCheck::OneDistribution(const Times& times, const std::string& where) {
  double before = times.min.value_or(0);
  const char* name_before = "min";
  const auto check_order = [&](double value, const char* name) {
    if (IsAbove(before, value))
      Add(rule::kOrder, where,
          fmt::format("{} is {} ms, above {} of {} ms", name_before, before, name, value));
    before = value;
    name_before = name;
  };
  for (size_t i = 0; i < LoadResult::kPercentileCount; ++i) {
    const auto& [name, p] = LoadResult::kPercentiles[i];
    const auto& value = times.percentiles[i];
    if (value && !stats::Supports(p, times.n))
      Add(rule::kSupport, where, fmt::format("{} samples do not support {}", times.n, name));
    if (value) check_order(*value, name);
    const auto interval = times.IntervalOf(name);
    if (interval && value && (IsAbove(interval->low, *value) || IsAbove(*value, interval->high))) {
      Add(rule::kOrder, where,
          fmt::format("{} of {} ms lies outside its interval, {} to {} ms", name, *value, interval->low,
                      interval->high));
    }
  }
  if (times.max) check_order(*times.max, "max");
  if (times.mean && times.min && times.max &&
      (IsAbove(*times.min, *times.mean) || IsAbove(*times.mean, *times.max))) {
    Add(rule::kOrder, where,
        fmt::format("the mean of {} ms lies outside min and max, {} and {} ms", *times.mean, *times.min,
                    *times.max));
  }
}

void LevelCheck::Distributions() {
  const std::string response = where_ + ".response_ms", service = where_ + ".service_ms",
                    first_byte = where_ + ".first_byte_ms", slip = where_ + ".slip_ms";
  Samples(level_.response, response, level_.answered, "answered");
  Samples(level_.service, service, level_.answered, "answered");
  Samples(level_.first_byte, first_byte, level_.answered, "answered");
  Samples(level_.slip, slip, Wide{level_.planned} - level_.unsent, "sent");
  OneDistribution(level_.response, response);
  OneDistribution(level_.service, service);
  OneDistribution(level_.first_byte, first_byte);
  OneDistribution(level_.slip, slip);
  if (const auto& send = level_.client_send) {
    const std::string where = where_ + ".client_send_ms";
    if (send->n > level_.answered)
      Add(rule::kSamples, where, fmt::format("n is {}, and {} were answered", send->n, level_.answered));
    OneDistribution(*send, where);
  }
  const auto compare = [&](const std::optional<double>& service_ms, const std::optional<double>& response_ms,
                           const char* name, double share) {
    if (!service_ms || !response_ms || !IsAbove(*service_ms, *response_ms, share)) return;
    Add(rule::kService, service,
        fmt::format("{} is {} ms, above the response time's {} ms", name, *service_ms, *response_ms));
  };
  compare(level_.service.mean, level_.response.mean, "mean", kRounding);
  for (size_t i = 0; i < LoadResult::kPercentileCount; ++i) {
    compare(level_.service.percentiles[i], level_.response.percentiles[i], LoadResult::kPercentiles[i].first,
            kBucket);
  }
  compare(level_.service.max, level_.response.max, "max", kRounding);
}

void LevelCheck::Sums() {
  if (level_.runs.empty()) Add(rule::kRuns, "it has none");
  Wide planned = 0, answered = 0;
  double measured_s = 0, answers = 0;
  for (const Run& run : level_.runs) {
    planned += run.planned;
    answered += run.answered;
    measured_s += run.measured_s;
    answers += run.throughput_per_s * run.measured_s;
  }
  if (planned != level_.planned || answered != level_.answered) {
    Add(rule::kRuns, fmt::format("{} of {} requests were answered, {} of {} in its runs", level_.answered,
                                 level_.planned, Text(answered), Text(planned)));
  }
  if (!IsNear(measured_s, level_.measured_s))
    Add(rule::kRuns, fmt::format("{} s were measured, {} s in its runs", level_.measured_s, measured_s));
  const double throughput = measured_s > 0 ? answers / measured_s : 0;
  if (!IsNear(throughput, level_.throughput_per_s)) {
    Add(rule::kThroughput, fmt::format("{} answers a second, those of its runs over their time are {}",
                                       level_.throughput_per_s, throughput));
  }
  const double rows = level_.throughput_per_s * static_cast<double>(batch_);
  if (!IsNear(rows, level_.rows_per_s)) {
    Add(rule::kThroughput, fmt::format("{} rows a second, {} requests a second of {} rows are {}",
                                       level_.rows_per_s, level_.throughput_per_s, batch_, rows));
  }
}

void LevelCheck::CheckRun(const Run& run, const std::string& where) {
  if (run.answered > run.planned) {
    Add(rule::kCounts, where,
        fmt::format("{} requests were answered, {} planned", run.answered, run.planned));
  }
  Samples(run.response, where + ".response_ms", run.answered, "answered");
  OneDistribution(run.response, where + ".response_ms");
  RunThroughput(run, where);
  if (run.answered < kLimits.fewest && HasValidClaim()) {
    Add(rule::kTooFew, where,
        fmt::format("{} answers, a VALID claim needs at least {}", run.answered, kLimits.fewest));
  }
}

// Answers within the measured time are a whole number. Those of requests that left before it count too, those
// that came after it do not: in a closed loop as many as its places either way, in an open loop any number.
void LevelCheck::RunThroughput(const Run& run, const std::string& where) {
  const double answers = run.throughput_per_s * run.measured_s, whole = std::round(answers);
  if (std::abs(answers - whole) > 1e-6 + kRounding * whole) {
    Add(rule::kThroughput, where,
        fmt::format("{} answers a second in {} s are {} answers, no whole number", run.throughput_per_s,
                    run.measured_s, answers));
    return;
  }
  const double apart = std::abs(whole - static_cast<double>(run.answered));
  if (level_.concurrency && apart > static_cast<double>(*level_.concurrency) + kRounding * whole) {
    Add(rule::kThroughput, where,
        fmt::format("{} answers a second in {} s are {} answers, {} requests were answered, {} in flight do "
                    "not explain it",
                    run.throughput_per_s, run.measured_s, whole, run.answered, *level_.concurrency));
  }
}

void LevelCheck::Verdicts() {
  for (const LoadResult::Reason& reason : level_.reasons) {
    if (!IsReason(reason.reason))
      Add(rule::kReasons, fmt::format("there is no reason \"{}\"", EscapeBytes(reason.reason)));
    if (reason.about.empty())
      Add(rule::kReasons, fmt::format("\"{}\" is about no claim", EscapeBytes(reason.reason)));
    for (const std::string& claim : reason.about) {
      if (claim != "throughput" && claim != "latency")
        Add(rule::kReasons, fmt::format("there is no claim about \"{}\"", EscapeBytes(claim)));
    }
  }
  OneVerdict("throughput", level_.verdict.throughput);
  OneVerdict("latency", level_.verdict.latency);
}

void LevelCheck::OneVerdict(const std::string& claim, const std::string& verdict) {
  if (!IsVerdict(verdict)) {
    Add(rule::kVerdict, fmt::format("there is no verdict \"{}\" on {}", EscapeBytes(verdict), claim));
    return;
  }
  const bool has_reason = std::ranges::any_of(level_.reasons, [&](const LoadResult::Reason& reason) {
    return std::ranges::find(reason.about, claim) != reason.about.end();
  });
  if (has_reason == (verdict == ToString(Standing::kValid))) {
    Add(rule::kReasons,
        fmt::format("{} is {}, {} reason is about it", claim, verdict, has_reason ? "yet a" : "and no"));
  }
}

bool LevelCheck::HasValidClaim() const {
  const std::string_view valid = ToString(Standing::kValid);
  return level_.verdict.throughput == valid || level_.verdict.latency == valid;
}

// A level over the limit has a run over it.
void LevelCheck::Errors() {
  const auto check = [&](int64_t planned, int64_t answered, const std::string& where) {
    if (planned <= answered) return;
    const double share = static_cast<double>(Wide{planned} - answered) / static_cast<double>(planned);
    if (share <= kLimits.errors || IsInvalidFor(level_, Reason::kErrors)) return;
    Add(rule::kErrors, where,
        fmt::format("{} of {} requests were not answered, {:.3g} %, limit {:.3g} %; both claims should be "
                    "INVALID for it",
                    planned - answered, planned, 100 * share, 100 * kLimits.errors));
  };
  check(level_.planned, level_.answered, where_);
  for (size_t i = 0; i < level_.runs.size(); ++i)
    check(level_.runs[i].planned, level_.runs[i].answered, fmt::format("{}.runs[{}]", where_, i));
}

void CheckProvenance(const Json& stored, std::vector<Finding>& findings) {
  const auto add = [&](std::string_view rule, std::string what, bool fatal) {
    findings.push_back({rule, "provenance", std::move(what), fatal});
  };
  const auto provenance = results::Provenance::FromJson(stored);
  if (!provenance)
    return add(rule::kProvenance, "nothing tells where the result is from: " + provenance.error().message,
               true);
  if (provenance->command.empty()) add(rule::kProvenance, "the command is empty", true);
  if (provenance->build_id.empty()) add(rule::kProvenance, "the build is empty", true);
  if (provenance->host.empty()) add(rule::kProvenance, "the host is empty", true);
  if (provenance->build_id == "unknown")
    add(rule::kBuild, "the source that the program was built from is not known", false);
  if (provenance->build_dirty)
    add(rule::kBuild, "the program was built with changes that were not committed", false);
}

}  // namespace

Result<std::vector<Finding>> Validate(const Json& result) {
  const LoadResult stored = TRY(ReadResult(result));
  std::vector<Finding> findings;
  if (stored.levels.empty()) findings.push_back({rule::kLevels, "levels", "nothing was measured"});
  for (size_t i = 0; i < stored.levels.size(); ++i) {
    const std::string where = fmt::format("levels[{}]", i);
    LevelCheck(stored.levels[i], stored.batch, where, findings).Check();
    CheckStatistics(stored.levels[i], stored.claim, where, findings);
    CheckGenerator(stored.levels[i], stored.generator ? stored.generator->ceiling_per_s : std::nullopt, where,
                   findings);
  }
  if (stored.interrupted) {
    findings.push_back(
        {rule::kInterrupted, "", "it was interrupted: levels and runs may be short or missing", false});
  }
  CheckProvenance(stored.provenance, findings);
  return findings;
}

}  // namespace weir::load
