#include "infer/server_times.h"

#include <algorithm>

namespace weir::infer {

std::optional<MeanServerTimes> MeanTimesOf(const PhaseTotals& since) {
  if (since.success.count == 0) return std::nullopt;
  const auto requests = static_cast<double>(since.success.count);
  const auto mean_ms = [&](const PhaseTotals::Phase& phase) { return Milliseconds(phase.total) / requests; };
  MeanServerTimes times{
      .requests = static_cast<int64_t>(since.success.count),
      .rows_per_batch =
          since.batches > 0 ? static_cast<double>(since.rows) / static_cast<double>(since.batches) : 0,
      .queue_ms = mean_ms(since.queue),
      .compute_input_ms = mean_ms(since.compute_input),
      .compute_infer_ms = mean_ms(since.compute_infer),
      .compute_output_ms = mean_ms(since.compute_output),
      .request_ms = mean_ms(since.success)};
  double rest = times.rest_ms();
  CountOverlapOnce(
      rest, {&times.compute_input_ms, &times.queue_ms, &times.compute_infer_ms, &times.compute_output_ms});
  return times;
}

void CountOverlapOnce(double& rest, std::initializer_list<double*> overlapping) {
  for (double* const part : overlapping) {
    if (rest >= 0) return;
    const double taken = std::min(-rest, std::max(0.0, *part));
    *part -= taken;
    rest += taken;
  }
}

}  // namespace weir::infer
