#include "oip/server_account.h"

#include <algorithm>
#include <optional>

#include "oip/model_facts.h"

namespace weir::oip {

results::ServerAccount AccountOf(const infer::MeanServerTimes& times, double requests, double rows) {
  const double s = 1e-3 * requests;
  return {.requests = requests,
          .queue_s = s * times.queue_ms,
          .input_s = s * times.compute_input_ms,
          .infer_s = s * times.compute_infer_ms,
          .output_s = s * times.compute_output_ms,
          .rows_per_batch = times.rows_per_batch,
          .rows_per_request = rows};
}

void AddConfigured(const infer::ModelInfo& info, int servers, double rows_in_flight,
                   results::ServerAccount& account) {
  constexpr int64_t kMost = 1 << 20;
  const auto number = [&](const char* name) -> std::optional<int> {
    const auto told = ReadNumber(info.parameters, name);
    return told ? std::optional(static_cast<int>(std::min(kMost, std::min(kMost, *told) * servers)))
                : std::nullopt;
  };
  account.instances = number(kInstances);
  account.threads = number(kThreads);
  const double most = std::max<double>(info.max_batch, account.rows_per_request);
  const bool joins = info.parameters.contains(kJoinsRequests);
  account.most_rows = joins ? std::min(most, rows_in_flight) : account.rows_per_request;
}

}  // namespace weir::oip
