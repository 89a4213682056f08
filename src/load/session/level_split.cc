#include "load/session/level_split.h"

#include <fmt/format.h>

#include "base/count.h"
#include "load/verdict/judge.h"
#include "stats/quantile.h"

namespace weir::load {
namespace {

double Ms(double ns) { return 1e-6 * ns; }

// Returns the mean of the durations that the server sent with each response; nullopt if it was not asked for
// them. Its statistics add the rows per batch.
std::optional<infer::MeanServerTimes> TimesWithResponses(
    const LevelResult& level, const std::optional<infer::MeanServerTimes>& counted) {
  const auto mean = level.tally.split.Mean();
  if (!mean) return std::nullopt;
  infer::MeanServerTimes times{.requests = level.tally.split.count(),
                               .rows_per_batch = counted ? counted->rows_per_batch : 0,
                               .receive_ms = Ms(mean->of(SplitPart::kReceive)),
                               .queue_ms = Ms(mean->of(SplitPart::kQueue)),
                               .compute_input_ms = Ms(mean->of(SplitPart::kComputeInput)),
                               .compute_infer_ms = Ms(mean->of(SplitPart::kComputeInfer)),
                               .compute_output_ms = Ms(mean->of(SplitPart::kComputeOutput))};
  times.request_ms = Ms(mean->of(SplitPart::kServerRest)) - times.rest_ms();
  return times;
}

std::string SharedText(const ServerShare& share) {
  return fmt::format(
      "the server's statistics count {} or more requests of other clients, {} in all; only "
      "--split response, which weir's server knows, tells of ours alone",
      Count(share.others_at_least()), Count(share.counted));
}

}  // namespace

std::optional<double> MeanMs(const stats::Histogram& times) {
  const auto mean = times.Mean();
  return mean ? std::optional(Ms(*mean)) : std::nullopt;
}

double SlowPercentile(const LoadOptions& options) { return options.percentile > 0 ? options.percentile : 99; }

ServerAccount ServerAccountOf(const LevelResult& level) {
  const std::optional<infer::MeanServerTimes> counted = infer::MeanTimesOf(level.server);
  const std::optional<infer::MeanServerTimes> with_responses = TimesWithResponses(level, counted);
  if (!with_responses && !counted) return {};
  if (!with_responses && level.server_share && IsShared(*level.server_share))
    return {.times = {}, .left_out = SharedText(*level.server_share)};
  const infer::MeanServerTimes& times = with_responses ? *with_responses : *counted;
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

std::optional<MeanSplit> MeanSplitOf(const LevelResult& level,
                                     const std::optional<infer::MeanServerTimes>& server) {
  const auto response = MeanMs(level.tally.response), service = MeanMs(level.tally.service),
             first_byte = MeanMs(level.tally.first_byte);
  if (!response || !service || !first_byte) return std::nullopt;
  MeanSplit split{.slip = *response - *service,
                  .client_receive = *service - *first_byte,
                  .client_send = MeanMs(level.tally.send),
                  .wire_and_wait = 0,
                  .server = server};
  if (split.client_send)
    *split.client_send *=
        static_cast<double>(level.tally.send.count()) / static_cast<double>(level.answered());
  split.wire_and_wait = *first_byte - split.client_send.value_or(0) - (server ? server->request_ms : 0);
  if (split.client_send) infer::CountOverlapOnce(split.wire_and_wait, {&*split.client_send});
  return split;
}

std::optional<SlowestRequests> SlowestOf(const LevelResult& level, double percentile) {
  const SplitSums& sums = level.tally.split;
  const double p = percentile / 100;
  if (!stats::Supports(p, sums.count())) return std::nullopt;
  const int64_t requests = sums.count() - stats::NearestRank(p, sums.count());
  const auto mean = sums.MeanOfSlowest(requests);
  return mean ? std::optional(SlowestRequests{requests, *mean}) : std::nullopt;
}

}  // namespace weir::load
