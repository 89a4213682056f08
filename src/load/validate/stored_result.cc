#include "load/validate/stored_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "load/verdict/judge.h"
#include "results/schema_version.h"

namespace weir::load::stored {
namespace {

std::unexpected<Error> Missing(std::string_view key, std::string_view wanted) {
  return Fail(ErrorCode::kCorrupt, fmt::format("key \"{}\" is missing or is not {}", key, wanted));
}

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

// Finite.
Result<double> GetDifference(const Json& json, const char* key) {
  const double value = TRY(GetNumber(json, key));
  if (!std::isfinite(value)) return Missing(key, "a number");
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
  times.standard_deviation = TRY(GetFigureIfAny(json, "standard_deviation"));
  times.min = TRY(GetFigureIfAny(json, "min"));
  times.max = TRY(GetFigureIfAny(json, "max"));
  if (times.n > 0 && !times.mean) return Missing("mean", "a number");
  if (times.n > 0 && !times.min) return Missing("min", "a number");
  if (times.n > 0 && !times.max) return Missing("max", "a number");
  const bool has_intervals = json.contains("intervals_95");
  const Json* intervals = has_intervals ? TRY(GetObject(json, "intervals_95")) : nullptr;
  if (intervals) times.mean_interval = TRY_CONTEXT(GetIntervalIfAny(*intervals, "mean"), "intervals_95");
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

// Here intervals tell of chance alone.
Result<Times> GetTimesOfRequests(const Json& json, const char* key) {
  Times times = TRY(GetTimes(json, key));
  if (!json.contains("client_send_ms")) return times;
  const Times send = TRY(GetTimes(json, "client_send_ms"));
  if (times.mean_interval) times.mean_interval->low += OutsideOfServer(send.mean, times.min);
  for (size_t i = 0; i < kPercentileCount; ++i) {
    if (times.intervals[i]) times.intervals[i]->low += OutsideOfServer(send.percentiles[i], times.min);
  }
  return times;
}

Result<Generator> GeneratorOf(const Json& json) {
  return Generator{.sent = TRY(GetCount(json, "sent")),
                   .late = TRY(GetCount(json, "late")),
                   .sent_per_s = TRY(GetFigure(json, "sent_per_s")),
                   .empty_share = TRY(GetFigureIfAny(json, "empty_share")).value_or(0),
                   .busiest_thread = TRY(GetFigure(json, "busiest_thread"))};
}

Result<Run> RunOf(const Json& json) {
  Run run;
  run.throughput_per_s = TRY(GetFigure(json, "throughput_per_s"));
  run.measured_s = TRY(GetFigure(json, "measured_s"));
  run.planned = TRY(GetCount(json, "planned"));
  run.answered = TRY(GetCount(json, "answered"));
  if (json.contains("by_count")) run.by_count = TRY(GetTruth(json, "by_count"));
  if (json.contains("generator"))
    run.generator = TRY_CONTEXT(GeneratorOf(*TRY(GetObject(json, "generator"))), "generator");
  run.response = TRY(GetTimesOfRequests(json, "response_ms"));
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

Result<ServerTimes> ServerTimesOf(const Json& json) {
  return ServerTimes{.receive = TRY(GetFigureIfAny(json, "receive")),
                     .queue = TRY(GetFigure(json, "queue")),
                     .compute_input = TRY(GetFigure(json, "compute_input")),
                     .compute_infer = TRY(GetFigure(json, "compute_infer")),
                     .compute_output = TRY(GetFigure(json, "compute_output")),
                     .request = TRY(GetFigure(json, "request")),
                     .outside = TRY(GetDifference(json, "outside"))};
}

Result<ServerRequests> ServerRequestsOf(const Json& json) {
  return ServerRequests{.counted = TRY(GetCount(json, "counted")),
                        .ours_at_most = TRY(GetCount(json, "ours_at_most")),
                        .others_at_least = TRY(GetCount(json, "others_at_least"))};
}

Result<Split> SplitOf(const Json& json) {
  Split split{.slip = TRY(GetDifference(json, "slip")),
              .wire_and_wait = TRY(GetDifference(json, "wire_and_wait")),
              .client_receive = TRY(GetDifference(json, "client_receive")),
              .client_send = TRY(GetFigureIfAny(json, "client_send")),
              .server = {}};
  if (!json.contains("queue")) return split;
  split.server = Split::Server{.receive = TRY(GetFigureIfAny(json, "receive")),
                               .queue = TRY(GetFigure(json, "queue")),
                               .compute_input = TRY(GetFigure(json, "compute_input")),
                               .compute_infer = TRY(GetFigure(json, "compute_infer")),
                               .compute_output = TRY(GetFigure(json, "compute_output")),
                               .rest = TRY(GetDifference(json, "server_rest"))};
  return split;
}

Result<Slowest> SlowestOf(const Json& json) {
  return Slowest{.above_percentile = TRY(GetFigure(json, "above_percentile")),
                 .mean = TRY(GetFigure(json, "mean_ms")),
                 .n = TRY(GetCount(json, "n")),
                 .split = TRY_CONTEXT(SplitOf(*TRY(GetObject(json, "split_ms"))), "split_ms")};
}

// Every {mean, max, min} that stands directly in `json`, under a name that begins with `before`.
Status ReadRanges(const Json& json, const std::string& before, std::vector<Used::Range>& ranges) {
  for (const auto& [key, value] : json.items()) {
    if (!value.is_object() || !value.contains("mean")) continue;
    const std::string name = before + key;
    ranges.push_back({.name = name,
                      .mean = TRY_CONTEXT(GetFigure(value, "mean"), name),
                      .max = TRY_CONTEXT(GetFigure(value, "max"), name),
                      .min = TRY_CONTEXT(GetFigure(value, "min"), name)});
  }
  return {};
}

Result<Used> UsedOf(const Json& json) {
  Used used{.ranges = {},
            .steal_percent = TRY(GetFigureIfAny(json, "steal_percent")),
            .throttled_s = TRY(GetFigureIfAny(json, "throttled_s")),
            .wall_s = TRY(GetFigure(json, "wall_s")),
            .period_ms = TRY(GetFigure(json, "period_ms")),
            .samples = TRY(GetCount(json, "samples"))};
  TRY_STATUS(ReadRanges(json, "", used.ranges));
  if (json.contains("server_metrics"))
    TRY_STATUS(ReadRanges(*TRY(GetObject(json, "server_metrics")), "server_metrics.", used.ranges));
  if (!json.contains("gpus")) return used;
  size_t number = 0;
  for (const Json& gpu : *TRY(GetList(json, "gpus"))) {
    if (!gpu.is_object()) return Missing("gpus", "a list of objects");
    TRY_STATUS(ReadRanges(gpu, fmt::format("gpus[{}].", number++), used.ranges));
  }
  return used;
}

Result<Claim> ClaimOf(const Json& json) {
  return Claim{.percentile = TRY(GetFigure(json, "percentile")),
               .latency_threshold_ms = TRY(GetFigureIfAny(json, "latency_threshold_ms"))};
}

// What `read` makes of the object under `key`, where there is one.
template <typename Read>
auto GetIfAny(const Json& json, const char* key, Read read)
    -> Result<std::optional<typename decltype(read(json))::value_type>> {
  if (!json.contains(key)) return std::nullopt;
  return TRY_CONTEXT(read(*TRY(GetObject(json, key))), key);
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
  if (json.contains("repeats")) level.repeats = TRY(GetCount(json, "repeats"));
  level.throughput_standard_error = TRY(GetFigureIfAny(json, "throughput_standard_error"));
  if (json.contains("below_threshold")) level.below_threshold = TRY(GetString(json, "below_threshold"));
  level.measured_s = TRY(GetFigure(json, "measured_s"));
  level.planned = TRY(GetCount(json, "planned"));
  level.answered = TRY(GetCount(json, "answered"));
  level.failed = TRY(GetCount(json, "failed"));
  level.unsent = TRY(GetCount(json, "unsent"));
  level.response = TRY(GetTimesOfRequests(json, "response_ms"));
  level.service = TRY(GetTimesOfRequests(json, "service_ms"));
  level.first_byte = TRY(GetTimesOfRequests(json, "first_byte_ms"));
  level.slip = TRY(GetTimes(json, "slip_ms"));
  if (json.contains("client_send_ms")) level.client_send = TRY(GetTimes(json, "client_send_ms"));
  const Json& errors = *TRY(GetObject(json, "errors"));
  for (const auto& [kind, _] : errors.items())
    level.errors.emplace_back(kind, TRY_CONTEXT(GetCount(errors, kind), "errors"));
  level.server = TRY(GetIfAny(json, "server_ms", ServerTimesOf));
  level.server_requests = TRY(GetIfAny(json, "server_requests", ServerRequestsOf));
  level.split = TRY(GetIfAny(json, "split_ms", SplitOf));
  level.slowest = TRY(GetIfAny(json, "slowest", SlowestOf));
  level.resources = TRY(GetIfAny(json, "resources", UsedOf));
  level.server_resources = TRY(GetIfAny(json, "server_resources", UsedOf));
  level.runs = TRY(GetEach(json, "runs", RunOf));
  return level;
}

}  // namespace

bool Level::HasReason(record::Reason reason) const {
  return std::ranges::find(reasons, ToString(reason), &StoredReason::reason) != reasons.end();
}

bool Level::IsInvalidFor(record::Reason reason) const {
  const std::string_view invalid = ToString(record::Standing::kInvalid);
  return throughput_verdict == invalid && latency_verdict == invalid && HasReason(reason);
}

Result<Stored> Read(const Json& json) {
  Stored stored;
  TRY_STATUS(results::CheckSchemaVersion(json, "the result of weir load"));
  TRY_STATUS(GetString(json, "model"));
  TRY_STATUS(GetString(json, "protocol"));
  stored.batch = TRY(GetCount(json, "batch"));
  stored.claim = TRY(GetIfAny(json, "claim", ClaimOf));
  if (json.contains("generator")) {
    stored.ceiling_per_s =
        TRY_CONTEXT(GetFigureIfAny(*TRY(GetObject(json, "generator")), "ceiling_per_s"), "generator");
  }
  stored.levels = TRY(GetEach(json, "levels", LevelOf));
  stored.interrupted = TRY(GetTruth(json, "interrupted"));
  return stored;
}

}  // namespace weir::load::stored
