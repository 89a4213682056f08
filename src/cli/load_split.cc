#include "cli/load_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/count.h"
#include "infer/server_times.h"

namespace weir::cli {
namespace {

using load::SplitPart;

double Ms(double ns) { return 1e-6 * ns; }

Json ServerJson(const infer::MeanServerTimes& times, double service_ms) {
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

Json SplitJson(const load::MeanSplit& split) {
  Json json = {{"slip", split.slip}, {"client_receive", split.client_receive}};
  PutIfAny(json, "client_send", split.client_send);
  json["wire_and_wait"] = split.wire_and_wait;
  if (!split.server) return json;
  PutIfAny(json, "receive", split.server->receive_ms);
  json["queue"] = split.server->queue_ms;
  json["compute_input"] = split.server->compute_input_ms;
  json["compute_infer"] = split.server->compute_infer_ms;
  json["compute_output"] = split.server->compute_output_ms;
  json["server_rest"] = split.server->rest_ms();
  return json;
}

// `sends`: the client knows how long it sent.
Json SlowestJson(const load::SlowestRequests& slowest, double percentile, bool sends) {
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

std::string ServerText(const infer::MeanServerTimes& t, double service_ms) {
  std::string text = fmt::format("  {:<10} ", "server");
  if (t.receive_ms) text += fmt::format("receive {} + ", Short(*t.receive_ms));
  text +=
      fmt::format("queue {} + input {} + infer {} + output {} ms, rest of its time {}; outside of it {} ms",
                  Short(t.queue_ms), Short(t.compute_input_ms), Short(t.compute_infer_ms),
                  Short(t.compute_output_ms), Short(t.rest_ms()), Short(service_ms - t.request_ms));
  if (t.rows_per_batch > 0) text += fmt::format("; {} rows a batch", Short(t.rows_per_batch));
  return text + "\n";
}

// Names the parts that are longer than on average, the one that adds most first.
std::string SlowestText(const load::SlowestRequests& slowest, const load::Split& all, double percentile) {
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

void AddSplit(const load::LevelResult& level, double percentile, Json& json) {
  if (level.server_share) {
    json["server_requests"] = {{"counted", level.server_share->counted},
                               {"ours_at_most", level.server_share->ours_at_most},
                               {"others_at_least", level.server_share->others_at_least()}};
  }
  const auto [times, left_out] = load::ServerAccountOf(level);
  if (!left_out.empty()) {
    json["split_left_out"] = left_out;
    return;
  }
  if (const auto service = load::MeanMs(level.tally.service); times && service)
    json["server_ms"] = ServerJson(*times, *service);
  if (const auto split = load::MeanSplitOf(level, times)) json["split_ms"] = SplitJson(*split);
  if (const auto slowest = load::SlowestOf(level, percentile))
    json["slowest"] = SlowestJson(*slowest, percentile, !level.tally.send.empty());
}

std::string SplitText(const load::LevelResult& level, double percentile) {
  std::string text;
  const auto [times, left_out] = load::ServerAccountOf(level);
  if (!left_out.empty()) return fmt::format("  {:<10} left out: {}\n", "server", left_out);
  if (const auto service = load::MeanMs(level.tally.service); times && service)
    text = ServerText(*times, *service);
  if (const auto slowest = load::SlowestOf(level, percentile))
    text += SlowestText(*slowest, *level.tally.split.Mean(), percentile);
  return text;
}

}  // namespace weir::cli
