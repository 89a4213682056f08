#include "probe/storage_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weir::probe {
namespace {

constexpr double kMostCached = 0.01;    // of the bytes of a cold run
constexpr double kMostOfCeiling = 0.8;  // of what the harness itself can do
constexpr int64_t kFewestSteps = 20;

Json Microseconds(const stats::Histogram& ns) {
  Json json = Json::object();
  const auto put = [&](const char* key, std::optional<int64_t> value) {
    if (value) json[key] = static_cast<double>(*value) / 1e3;
  };
  put("p50", ns.Quantile(0.5));
  put("p90", ns.Quantile(0.9));
  put("p99", ns.Quantile(0.99));
  put("p99_9", ns.Quantile(0.999));
  put("max", ns.Max());
  json["count"] = ns.count();
  return json;
}

}  // namespace

Result<FedAccelerators> FindMostFed(int least, int most, const Trial& trial) {
  FedAccelerators found;
  int low = least, high = most;
  while (low <= high) {
    const int n = low + (high - low) / 2;
    const std::vector<bool> fed = TRY(trial(n));
    const auto yes = std::ranges::count(fed, true);
    const auto all = std::ssize(fed);
    if (yes == all) found.low = std::max(found.low.value_or(n), n);
    if (yes > 0) found.high = std::max(found.high.value_or(n), n);
    if (2 * yes > all) {
      found.value = std::max(found.value.value_or(n), n);
      low = n + 1;
    } else {
      high = n - 1;
    }
  }
  return found;
}

StorageVerdict Judge(const Facts& facts) {
  StorageVerdict verdict;
  const TrainResult& train = facts.train;
  const auto add = [&](const char* standing, const char* reason, std::string evidence) {
    if (verdict.verdict != "INVALID") verdict.verdict = standing;
    verdict.reasons.push_back({reason, std::move(evidence)});
  };
  if (!train.hung.empty())
    add("INVALID", "hung",
        fmt::format("{} reads did not come back, first {}", train.hung.size(), train.hung[0]));
  if (train.errors > 0)
    add("INVALID", "errors", fmt::format("{} reads failed, first {}", train.errors, train.first_errors[0]));
  if (facts.unwritten_bytes > 0)
    add("INVALID", "unwritten",
        fmt::format("{} of {} bytes are holes or were never written: no disk is read for them",
                    facts.unwritten_bytes, facts.set_bytes));
  if (facts.wants_cold && train.asked_bytes > 0) {
    const double share = static_cast<double>(train.cached_bytes) / static_cast<double>(train.asked_bytes);
    if (share > kMostCached)
      add("INVALID", "cached",
          fmt::format("{:.1f} % of the bytes were in the page cache before they were read, limit {:.0f} %",
                      100 * share, 100 * kMostCached));
  }
  if (facts.wants_cold && train.unknown_cache > 0)
    add("SUSPECT", "cached",
        fmt::format("of {} reads the kernel does not tell what was in the page cache", train.unknown_cache));
  if (train.steps < kFewestSteps)
    add("SUSPECT", "too-few-steps", fmt::format("{} steps, limit {}", train.steps, kFewestSteps));
  if (const auto rate = train.SamplesPerSecond();
      rate && facts.ceiling_samples_per_s && *rate > kMostOfCeiling * *facts.ceiling_samples_per_s)
    add("SUSPECT", "harness",
        fmt::format("{:.0f} samples/s of the {:.0f} that this program reads from memory, limit {:.0f} %",
                    *rate, *facts.ceiling_samples_per_s, 100 * kMostOfCeiling));
  return verdict;
}

std::string Bottleneck(const TrainResult& train) {
  constexpr double kNoStall = 0.01;
  const Stalls& stalls = train.stalls;
  if (Seconds(stalls.Total()) < kNoStall * Seconds(train.wall)) return "compute";
  const std::pair<const char*, Duration> parts[] = {
      {"queue", stalls.queue}, {"open", stalls.open}, {"read", stalls.read}, {"close", stalls.close}};
  return std::ranges::max_element(parts, {}, [](const auto& part) { return part.second; })->first;
}

Json ToJson(const Facts& facts) {
  const TrainResult& train = facts.train;
  Json json;
  if (const auto share = train.Utilisation()) json["utilisation_percent"] = 100 * *share;
  PutIfAny(json, "samples_per_s", train.SamplesPerSecond());
  PutIfAny(json, "bytes_per_s", train.BytesPerSecond());
  PutIfAny(json, "ceiling_samples_per_s", facts.ceiling_samples_per_s);
  if (train.asked_bytes > 0)
    json["cached_share"] = static_cast<double>(train.cached_bytes) / static_cast<double>(train.asked_bytes);
  json["open_us"] = Microseconds(train.open_ns);
  json["read_us"] = Microseconds(train.read_ns);
  json["close_us"] = Microseconds(train.close_ns);
  json["timer_late_us"] = Microseconds(train.late_ns);
  json["steps"] = train.steps;
  json["wall_s"] = Seconds(train.wall);
  json["stall_s"] = {{"queue", Seconds(train.stalls.queue)},
                     {"open", Seconds(train.stalls.open)},
                     {"read", Seconds(train.stalls.read)},
                     {"close", Seconds(train.stalls.close)}};
  json["bottleneck"] = Bottleneck(train);
  json["errors"] = train.errors;
  json["first_errors"] = train.first_errors;
  json["hung"] = train.hung;
  const StorageVerdict verdict = Judge(facts);
  json["verdict"] = verdict.verdict;
  json["reasons"] = Json::array();
  for (const StorageReason& reason : verdict.reasons)
    json["reasons"].push_back({{"reason", reason.reason}, {"evidence", reason.evidence}});
  return json;
}

}  // namespace weir::probe
