#include "cli/load_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "load/verdict/judge.h"
#include "load/verdict/split.h"
#include "stats/quantile.h"

namespace weir::cli {
namespace {

using load::SplitPart;

double Ms(double ns) { return 1e-6 * ns; }

std::optional<double> MeanMs(const stats::Histogram& times) {
  const auto mean = times.Mean();
  return mean ? std::optional(Ms(*mean)) : std::nullopt;
}

Json ServerJson(const ServerTimes& times, double service_ms) {
  Json json = {{"queue", times.queue_ms},
               {"compute_input", times.compute_input_ms},
               {"compute_infer", times.compute_infer_ms},
               {"compute_output", times.compute_output_ms},
               {"request", times.request_ms},
               {"outside", service_ms - times.request_ms}};
  PutIfAny(json, "receive", times.receive_ms);
  if (times.rows_per_batch > 0) json["rows_per_batch"] = times.rows_per_batch;
  return json;
}

// Where the mean response time went: its parts add up to it. What the client saw of its sending and the
// server counts as its own time counts once.
Json SplitJson(const LevelResult& level, const std::optional<ServerTimes>& times) {
  const auto response = MeanMs(level.tally.response), service = MeanMs(level.tally.service),
             first_byte = MeanMs(level.tally.first_byte);
  if (!response || !service || !first_byte) return {};
  Json json = {{"slip", *response - *service}, {"client_receive", *service - *first_byte}};
  auto send = MeanMs(level.tally.send);
  // Of some it may not be known.
  if (send) *send *= static_cast<double>(level.tally.send.count()) / static_cast<double>(level.answered());
  double wire = *first_byte - send.value_or(0) - (times ? times->request_ms : 0);
  if (send) load::CountOverlapOnce(wire, {&*send});
  PutIfAny(json, "client_send", send);
  json["wire_and_wait"] = wire;
  if (!times) return json;
  PutIfAny(json, "receive", times->receive_ms);
  json["queue"] = times->queue_ms;
  json["compute_input"] = times->compute_input_ms;
  json["compute_infer"] = times->compute_infer_ms;
  json["compute_output"] = times->compute_output_ms;
  json["server_rest"] = times->rest_ms();
  return json;
}

// The requests above a percentile, where there are enough to tell it.
struct Slowest {
  int64_t requests = 0;
  load::Split mean;
};
std::optional<Slowest> SlowestOf(const LevelResult& level, double percentile) {
  const load::SplitSums& sums = level.tally.split;
  const double p = percentile / 100;
  if (!stats::Supports(p, sums.count())) return std::nullopt;
  const int64_t requests = sums.count() - stats::NearestRank(p, sums.count());
  const auto mean = sums.MeanOfSlowest(requests);
  return mean ? std::optional(Slowest{requests, *mean}) : std::nullopt;
}

// `sends`: the client tells how long it sent.
Json SlowestJson(const Slowest& slowest, double percentile, bool sends) {
  Json parts = Json::object();
  for (int i = 0; i < load::kParts; ++i) {
    const auto part = static_cast<SplitPart>(i);
    if (part == SplitPart::kClientSend && !sends) continue;
    parts[std::string(ToString(part))] = Ms(slowest.mean.of(part));
  }
  return {{"above_percentile", percentile},
          {"n", slowest.requests},
          {"mean_ms", Ms(slowest.mean.response)},
          {"split_ms", std::move(parts)}};
}

std::string ServerText(const ServerTimes& t, double service_ms) {
  std::string text = fmt::format("  {:<10} ", "server");
  if (t.receive_ms) text += fmt::format("receive {} + ", Short(*t.receive_ms));
  text +=
      fmt::format("queue {} + input {} + infer {} + output {} ms, rest of its time {}; outside of it {} ms",
                  Short(t.queue_ms), Short(t.compute_input_ms), Short(t.compute_infer_ms),
                  Short(t.compute_output_ms), Short(t.rest_ms()), Short(service_ms - t.request_ms));
  if (t.rows_per_batch > 0) text += fmt::format("; {} rows a batch", Short(t.rows_per_batch));
  return text + "\n";
}

// What makes the slow ones slow: the parts that are longer than on average, the one that adds most first.
std::string SlowestText(const Slowest& slowest, const load::Split& all, double percentile) {
  constexpr size_t kMost = 4;
  constexpr double kWorthTelling = 0.03;  // of what they take longer
  const double longer = slowest.mean.response - all.response;
  std::vector<std::pair<double, SplitPart>> added;
  for (int i = 0; i < load::kParts; ++i) {
    const auto part = static_cast<SplitPart>(i);
    const double more = slowest.mean.of(part) - all.of(part);
    if (more > kWorthTelling * longer) added.emplace_back(more, part);
  }
  std::ranges::sort(added, std::greater());
  if (added.size() > kMost) added.resize(kMost);
  std::string text =
      fmt::format("  {:<10} the {} above p{:g} took {} ms on average, {} more than all", "slowest",
                  Count(slowest.requests), percentile, Short(Ms(slowest.mean.response)), Short(Ms(longer)));
  for (size_t i = 0; i < added.size(); ++i) {
    text +=
        fmt::format("{}{} {}", i == 0 ? ": " : ", ", ToString(added[i].second), Short(Ms(added[i].first)));
  }
  return text + "\n";
}

}  // namespace

namespace {

// With each response; nothing where the server was not asked to.
std::optional<ServerTimes> ToldTimes(const LevelResult& level, const std::optional<ServerTimes>& counted) {
  const auto told = level.tally.split.Mean();
  if (!told) return std::nullopt;
  ServerTimes times{.requests = level.tally.split.count(),
                    .rows_per_batch = counted ? counted->rows_per_batch : 0,
                    .receive_ms = Ms(told->of(SplitPart::kReceive)),
                    .queue_ms = Ms(told->of(SplitPart::kQueue)),
                    .compute_input_ms = Ms(told->of(SplitPart::kComputeInput)),
                    .compute_infer_ms = Ms(told->of(SplitPart::kComputeInfer)),
                    .compute_output_ms = Ms(told->of(SplitPart::kComputeOutput))};
  times.request_ms = Ms(told->of(SplitPart::kServerRest)) - times.rest_ms();
  return times;
}

bool IsShared(const LevelResult& level) { return level.server_share && load::IsShared(*level.server_share); }

std::string SharedText(const load::ServerShare& share) {
  return fmt::format(
      "the server's statistics count {} or more requests of other clients, {} in all; only "
      "--split response, which weir's server knows, tells of ours alone",
      Count(share.others_at_least()), Count(share.counted));
}

}  // namespace

ServerAccount ServerAccountOf(const LevelResult& level) {
  const std::optional<ServerTimes> counted = ServerTimesOf(level.server);
  const std::optional<ServerTimes> told = ToldTimes(level, counted);
  if (!told && !counted) return {};
  if (!told && IsShared(level)) return {.times = {}, .left_out = SharedText(*level.server_share)};
  const ServerTimes& times = told ? *told : *counted;
  const auto first_byte = MeanMs(level.tally.first_byte);
  if (!first_byte) return {};
  if (times.request_ms > *first_byte) {
    return {
        .times = {},
        .left_out = fmt::format("a request took {} ms on average by the server's account, and {} ms as the "
                                "client saw it: they are not the same requests, or one of the clocks is "
                                "wrong",
                                Short(times.request_ms), Short(*first_byte))};
  }
  return {.times = times, .left_out = {}};
}

void AddSplit(const LevelResult& level, double percentile, Json& json) {
  if (level.server_share) {
    json["server_requests"] = {{"counted", level.server_share->counted},
                               {"ours_at_most", level.server_share->ours_at_most},
                               {"others_at_least", level.server_share->others_at_least()}};
  }
  const auto [times, left_out] = ServerAccountOf(level);
  if (!left_out.empty()) {
    json["split_left_out"] = left_out;
    return;
  }
  if (const auto service = MeanMs(level.tally.service); times && service)
    json["server_ms"] = ServerJson(*times, *service);
  if (Json split = SplitJson(level, times); !split.is_null()) json["split_ms"] = std::move(split);
  if (const auto slowest = SlowestOf(level, percentile))
    json["slowest"] = SlowestJson(*slowest, percentile, !level.tally.send.empty());
}

std::string SplitText(const LevelResult& level, double percentile) {
  std::string text;
  const auto [times, left_out] = ServerAccountOf(level);
  if (!left_out.empty()) return fmt::format("  {:<10} left out: {}\n", "server", left_out);
  if (const auto service = MeanMs(level.tally.service); times && service) text = ServerText(*times, *service);
  if (const auto slowest = SlowestOf(level, percentile))
    text += SlowestText(*slowest, *level.tally.split.Mean(), percentile);
  return text;
}

}  // namespace weir::cli
