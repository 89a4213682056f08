#include "cli/server_times.h"

#include "load/verdict/split.h"

namespace weir::cli {

std::optional<ServerTimes> ServerTimesOf(const infer::PhaseTotals& since) {
  if (since.success.count == 0) return std::nullopt;
  const auto requests = static_cast<double>(since.success.count);
  const auto mean_ms = [&](const infer::PhaseTotals::Phase& phase) {
    return Milliseconds(phase.total) / requests;
  };
  ServerTimes times{
      .requests = static_cast<int64_t>(since.success.count),
      .rows_per_batch =
          since.batches > 0 ? static_cast<double>(since.rows) / static_cast<double>(since.batches) : 0,
      .queue_ms = mean_ms(since.queue),
      .compute_input_ms = mean_ms(since.compute_input),
      .compute_infer_ms = mean_ms(since.compute_infer),
      .compute_output_ms = mean_ms(since.compute_output),
      .request_ms = mean_ms(since.success)};
  double rest = times.rest_ms();
  load::CountOverlapOnce(
      rest, {&times.compute_input_ms, &times.queue_ms, &times.compute_infer_ms, &times.compute_output_ms});
  return times;
}

}  // namespace weir::cli
