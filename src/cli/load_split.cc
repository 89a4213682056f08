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
