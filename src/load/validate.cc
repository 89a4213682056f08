#include "load/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "load/judge.h"
#include "load/sample.h"
#include "record/verdict.h"
#include "stats/quantile.h"

namespace weir::load {
namespace {

using record::Reason;
using record::Standing;
using Wide = __int128;  // sums of any counts

constexpr Limits kLimits{};
constexpr std::pair<const char*, double> kPercentiles[] = {
    {"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p99_9", 0.999}};
constexpr size_t kPercentileCount = std::size(kPercentiles);
constexpr double kRounding = 1e-9;  // relative, of figures that were calculated twice
constexpr double kBucket = 1e-3;    // relative, of a quantile: as fine as stats::Histogram is

struct Interval {
  double low = 0, high = 0;
};

// Milliseconds.
struct Times {
  std::optional<double> mean, min, max;
  std::array<std::optional<double>, kPercentileCount> percentiles;
  std::array<std::optional<Interval>, kPercentileCount> intervals;
  int64_t n = 0;
};

struct Law {
  double in_flight = 0, expected = 0, difference = 0;
};

struct Run {
  double throughput_per_s = 0, measured_s = 0;
  int64_t planned = 0, answered = 0;
  Times response;
  std::optional<Law> law;
};

struct StoredReason {
  std::string reason;
  std::vector<std::string> about;
};

struct Level {
  std::optional<int64_t> concurrency;  // of a closed loop
  double throughput_per_s = 0, rows_per_s = 0, measured_s = 0;
  int64_t planned = 0, answered = 0, failed = 0, unsent = 0;
  std::string throughput_verdict, latency_verdict;
  std::vector<StoredReason> reasons;
  Times response, service, first_byte, slip;
  std::vector<std::pair<std::string, int64_t>> errors;
  std::vector<Run> runs;
};

struct Stored {
  int64_t batch = 1;
  std::vector<Level> levels;
  bool interrupted = false;
};

std::unexpected<Error> Missing(std::string_view key, std::string_view wanted) {
  return Fail(ErrorCode::kCorrupt, fmt::format("key \"{}\" is missing or is not {}", key, wanted));
}

// Reading: kinds only, no rule.

Result<const Json*> GetObject(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (!json.is_object() || found == json.end() || !found->is_object()) return Missing(key, "an object");
  return &*found;
}

Result<const Json*> GetList(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (!json.is_object() || found == json.end() || !found->is_array()) return Missing(key, "a list");
  return &*found;
}

Result<bool> GetTruth(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (!json.is_object() || found == json.end() || !found->is_boolean()) return Missing(key, "true or false");
  return found->get<bool>();
}

Result<int64_t> GetCount(const Json& json, std::string_view key) {
  const int64_t count = TRY(GetInteger(json, key));
  if (count < 0) return Missing(key, "a count");
  return count;
}

// Finite and not below 0, as every figure here is.
Result<double> GetFigure(const Json& json, const char* key) {
  const double value = TRY(GetNumber(json, key));
  if (!std::isfinite(value) || value < 0) return Missing(key, "a number from 0");
  return value;
}

Result<std::optional<double>> GetFigureIfAny(const Json& json, const char* key) {
  if (!json.contains(key)) return std::nullopt;
  return TRY(GetFigure(json, key));
}

Result<std::optional<Interval>> GetIntervalIfAny(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return std::nullopt;
  const auto is_end = [](const Json& end) { return end.is_number() && std::isfinite(end.get<double>()); };
  if (!found->is_array() || found->size() != 2 || !std::ranges::all_of(*found, is_end))
    return Missing(key, "a list of two numbers");
  return Interval{(*found)[0].get<double>(), (*found)[1].get<double>()};
}

Result<Times> TimesOf(const Json& json) {
  Times times;
  times.n = TRY(GetCount(json, "n"));
  times.mean = TRY(GetFigureIfAny(json, "mean"));
  times.min = TRY(GetFigureIfAny(json, "min"));
  times.max = TRY(GetFigureIfAny(json, "max"));
  if (times.n > 0 && !times.mean) return Missing("mean", "a number");
  if (times.n > 0 && !times.min) return Missing("min", "a number");
  if (times.n > 0 && !times.max) return Missing("max", "a number");
  const bool has_intervals = json.contains("intervals_95");
  const Json* intervals = has_intervals ? TRY(GetObject(json, "intervals_95")) : nullptr;
  for (size_t i = 0; i < kPercentileCount; ++i) {
    const char* name = kPercentiles[i].first;
    times.percentiles[i] = TRY(GetFigureIfAny(json, name));
    if (intervals) times.intervals[i] = TRY_CONTEXT(GetIntervalIfAny(*intervals, name), "intervals_95");
  }
  return times;
}

Result<Times> GetTimes(const Json& json, const char* key) {
  return TRY_CONTEXT(TimesOf(*TRY(GetObject(json, key))), key);
}

Result<Law> LawOf(const Json& json) {
  return Law{.in_flight = TRY(GetFigure(json, "in_flight")),
             .expected = TRY(GetFigure(json, "expected")),
             .difference = TRY(GetFigure(json, "difference"))};
}

Result<Run> RunOf(const Json& json) {
  Run run;
  run.throughput_per_s = TRY(GetFigure(json, "throughput_per_s"));
  run.measured_s = TRY(GetFigure(json, "measured_s"));
  run.planned = TRY(GetCount(json, "planned"));
  run.answered = TRY(GetCount(json, "answered"));
  run.response = TRY(GetTimes(json, "response_ms"));
  if (json.contains("littles_law"))
    run.law = TRY_CONTEXT(LawOf(*TRY(GetObject(json, "littles_law"))), "littles_law");
  return run;
}

Result<StoredReason> ReasonOf(const Json& json) {
  StoredReason reason{.reason = TRY(GetString(json, "reason")), .about = {}};
  for (const Json& claim : *TRY(GetList(json, "about"))) {
    if (!claim.is_string()) return Missing("about", "a list of texts");
    reason.about.push_back(claim.get<std::string>());
  }
  TRY_STATUS(GetString(json, "evidence"));
  return reason;
}

// Every item of the list under `key`, read by `read`.
template <typename Read>
auto GetEach(const Json& json, const char* key, Read read)
    -> Result<std::vector<typename decltype(read(json))::value_type>> {
  std::vector<typename decltype(read(json))::value_type> items;
  for (const Json& item : *TRY(GetList(json, key)))
    items.push_back(TRY_CONTEXT(read(item), fmt::format("{}[{}]", key, items.size())));
  return items;
}

Result<Level> LevelOf(const Json& json) {
  Level level;
  const std::string load_model = TRY(GetString(json, "load_model"));
  if (load_model != "closed" && load_model != "open") return Missing("load_model", "\"closed\" or \"open\"");
  if (load_model == "closed") level.concurrency = TRY(GetCount(json, "concurrency"));
  const Json& verdict = *TRY(GetObject(json, "verdict"));
  level.throughput_verdict = TRY_CONTEXT(GetString(verdict, "throughput"), "verdict");
  level.latency_verdict = TRY_CONTEXT(GetString(verdict, "latency"), "verdict");
  level.reasons = TRY(GetEach(json, "reasons", ReasonOf));
  level.throughput_per_s = TRY(GetFigure(json, "throughput_per_s"));
  level.rows_per_s = TRY(GetFigure(json, "rows_per_s"));
  level.measured_s = TRY(GetFigure(json, "measured_s"));
  level.planned = TRY(GetCount(json, "planned"));
  level.answered = TRY(GetCount(json, "answered"));
  level.failed = TRY(GetCount(json, "failed"));
  level.unsent = TRY(GetCount(json, "unsent"));
  level.response = TRY(GetTimes(json, "response_ms"));
  level.service = TRY(GetTimes(json, "service_ms"));
  level.first_byte = TRY(GetTimes(json, "first_byte_ms"));
  level.slip = TRY(GetTimes(json, "slip_ms"));
  const Json& errors = *TRY(GetObject(json, "errors"));
  for (const auto& [kind, _] : errors.items())
    level.errors.emplace_back(kind, TRY_CONTEXT(GetCount(errors, kind), "errors"));
  level.runs = TRY(GetEach(json, "runs", RunOf));
  return level;
}

Result<Stored> StoredOf(const Json& json) {
  Stored stored;
  TRY_STATUS(GetString(json, "model"));
  TRY_STATUS(GetString(json, "protocol"));
  stored.batch = TRY(GetCount(json, "batch"));
  stored.levels = TRY(GetEach(json, "levels", LevelOf));
  stored.interrupted = TRY(GetTruth(json, "interrupted"));
  return stored;
}

// The rules.

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
  using enum record::Reason;
  constexpr std::array kReasons = {kGeneratorLate, kGeneratorBusy, kRateMissed,   kLittlesLaw,
                                   kNoSteadyState, kErrors,        kSteal,        kForeignCpu,
                                   kThrottling,    kClockTrouble,  kTooFewSamples};
  return IsName(kReasons, text);
}

bool IsVerdict(std::string_view text) {
  using enum record::Standing;
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
  void RunLaw(const Run& run, const Law& law, const std::string& where);
  void Verdicts();
  void OneVerdict(const std::string& claim, const std::string& verdict);
  void Errors();
  // Both claims are, and for this reason.
  bool IsInvalidFor(Reason reason) const;
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
  for (size_t i = 0; i < kPercentileCount; ++i) {
    const auto& [name, p] = kPercentiles[i];
    const auto& value = times.percentiles[i];
    if (value && !stats::Supports(p, times.n))
      Add(rule::kSupport, where, fmt::format("{} samples do not support {}", times.n, name));
    if (value) check_order(*value, name);
    const auto& interval = times.intervals[i];
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
  const auto compare = [&](const std::optional<double>& service_ms, const std::optional<double>& response_ms,
                           const char* name, double share) {
    if (!service_ms || !response_ms || !IsAbove(*service_ms, *response_ms, share)) return;
    Add(rule::kService, service,
        fmt::format("{} is {} ms, above the response time's {} ms", name, *service_ms, *response_ms));
  };
  compare(level_.service.mean, level_.response.mean, "mean", kRounding);
  for (size_t i = 0; i < kPercentileCount; ++i) {
    compare(level_.service.percentiles[i], level_.response.percentiles[i], kPercentiles[i].first, kBucket);
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
  if (run.law) RunLaw(run, *run.law, where + ".littles_law");
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

void LevelCheck::RunLaw(const Run& run, const Law& law, const std::string& where) {
  const double larger = std::max(law.in_flight, law.expected);
  const double difference = larger > 0 ? std::abs(law.in_flight - law.expected) / larger : 0;
  if (std::abs(difference - law.difference) > 1e-6) {
    Add(rule::kLittlesLaw, where,
        fmt::format("{} and {} in flight are {} apart, not {}", law.in_flight, law.expected, difference,
                    law.difference));
  }
  // What requests across the run's ends may make of it: their mean time in flight over the run's time. How
  // many ended within it is not told, so it is at least so much as allows for no less than Judge did.
  const double answers = run.throughput_per_s * run.measured_s;
  const double ended = std::max(1.0, answers - static_cast<double>(level_.concurrency.value_or(0)));
  double straddling = law.expected / ended;
  if (run.measured_s > 0)
    straddling = std::max(straddling, 1e-3 * run.response.mean.value_or(0) / run.measured_s);
  if (difference <= kLimits.littles_law + straddling + kRounding) return;
  const bool told = IsInvalidFor(Reason::kLittlesLaw);
  Add(rule::kLittlesLaw, where,
      fmt::format("{:.4g} requests were in flight, throughput x time in flight is {:.4g}: {:.3g} % apart, "
                  "limit {:.3g} %{}",
                  law.in_flight, law.expected, 100 * difference, 100 * (kLimits.littles_law + straddling),
                  told ? "" : "; both claims should be INVALID for it"),
      !told);
}

void LevelCheck::Verdicts() {
  for (const StoredReason& reason : level_.reasons) {
    if (!IsReason(reason.reason))
      Add(rule::kReasons, fmt::format("there is no reason \"{}\"", EscapeBytes(reason.reason)));
    if (reason.about.empty())
      Add(rule::kReasons, fmt::format("\"{}\" is about no claim", EscapeBytes(reason.reason)));
    for (const std::string& claim : reason.about) {
      if (claim != "throughput" && claim != "latency")
        Add(rule::kReasons, fmt::format("there is no claim about \"{}\"", EscapeBytes(claim)));
    }
  }
  OneVerdict("throughput", level_.throughput_verdict);
  OneVerdict("latency", level_.latency_verdict);
}

void LevelCheck::OneVerdict(const std::string& claim, const std::string& verdict) {
  if (!IsVerdict(verdict)) {
    Add(rule::kVerdict, fmt::format("there is no verdict \"{}\" on {}", EscapeBytes(verdict), claim));
    return;
  }
  const bool has_reason = std::ranges::any_of(level_.reasons, [&](const StoredReason& reason) {
    return std::ranges::find(reason.about, claim) != reason.about.end();
  });
  if (has_reason == (verdict == ToString(Standing::kValid))) {
    Add(rule::kReasons,
        fmt::format("{} is {}, {} reason is about it", claim, verdict, has_reason ? "yet a" : "and no"));
  }
}

bool LevelCheck::IsInvalidFor(Reason reason) const {
  const std::string_view invalid = ToString(Standing::kInvalid);
  return level_.throughput_verdict == invalid && level_.latency_verdict == invalid &&
         std::ranges::find(level_.reasons, ToString(reason), &StoredReason::reason) != level_.reasons.end();
}

bool LevelCheck::HasValidClaim() const {
  const std::string_view valid = ToString(Standing::kValid);
  return level_.throughput_verdict == valid || level_.latency_verdict == valid;
}

// A level over the limit has a run over it.
void LevelCheck::Errors() {
  const auto check = [&](int64_t planned, int64_t answered, const std::string& where) {
    if (planned <= answered) return;
    const double share = static_cast<double>(Wide{planned} - answered) / static_cast<double>(planned);
    if (share <= kLimits.errors || IsInvalidFor(Reason::kErrors)) return;
    Add(rule::kErrors, where,
        fmt::format("{} of {} requests were not answered, {:.3g} %, limit {:.3g} %; both claims should be "
                    "INVALID for it",
                    planned - answered, planned, 100 * share, 100 * kLimits.errors));
  };
  check(level_.planned, level_.answered, where_);
  for (size_t i = 0; i < level_.runs.size(); ++i)
    check(level_.runs[i].planned, level_.runs[i].answered, fmt::format("{}.runs[{}]", where_, i));
}

void CheckProvenance(const Json& result, std::vector<Finding>& findings) {
  const auto add = [&](std::string_view rule, std::string what, bool fatal) {
    findings.push_back({rule, "provenance", std::move(what), fatal});
  };
  const auto provenance = result.find("provenance");
  if (provenance == result.end() || !provenance->is_object()) {
    add(rule::kProvenance, "nothing tells where the result is from", true);
    return;
  }
  for (const char* key : {"command", "build_id", "host"}) {
    const auto text = GetString(*provenance, key);
    if (!text || text->empty()) add(rule::kProvenance, fmt::format("key \"{}\" tells nothing", key), true);
  }
  if (GetString(*provenance, "build_id").value_or("") == "unknown")
    add(rule::kBuild, "the source that the program was built from is not known", false);
  if (GetTruth(*provenance, "build_dirty").value_or(true))
    add(rule::kBuild, "the program was built with changes that were not committed", false);
}

}  // namespace

Result<std::vector<Finding>> Validate(const Json& result) {
  const Stored stored = TRY(StoredOf(result));
  std::vector<Finding> findings;
  if (stored.levels.empty()) findings.push_back({rule::kLevels, "levels", "nothing was measured"});
  for (size_t i = 0; i < stored.levels.size(); ++i)
    LevelCheck(stored.levels[i], stored.batch, fmt::format("levels[{}]", i), findings).Check();
  if (stored.interrupted) {
    findings.push_back(
        {rule::kInterrupted, "", "it was interrupted: levels and runs may be short or missing", false});
  }
  CheckProvenance(result, findings);
  return findings;
}

}  // namespace weir::load
