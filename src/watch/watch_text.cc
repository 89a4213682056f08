#include "watch/watch_text.h"

#include <fmt/format.h>

#include <optional>

#include "base/count.h"

namespace weir::watch {

using results::WatchResult;

namespace {

std::string TimesText(const char* what, const std::optional<WatchResult::Times>& times) {
  if (!times) return "";
  std::string text = fmt::format("  {:<12}{} ms mean", what, Short(times->mean));
  if (times->p50) text += fmt::format(", p50 {}", Short(*times->p50));
  if (times->p99) text += fmt::format(", p99 {}", Short(*times->p99));
  return text + fmt::format(", max {}\n", Short(times->max));
}

}  // namespace

std::string WatchText(const TextStyle& style, const WatchResult& r) {
  std::string text = fmt::format("{} {}, {}\n", style.Bold("model"), r.model, r.engine);
  text += fmt::format("{} {} captured, {} answered, {} within {} ms ({} %)\n", style.Bold("frames"),
                      Count(r.frames.captured), Count(r.frames.answered), Count(r.frames.in_time),
                      Short(r.deadline_ms), r.in_time_percent ? Short(*r.in_time_percent) : "-");
  for (const auto& [cause, count] : r.frames.dropped)
    text += fmt::format("  dropped     {} {}\n", Count(count), cause);
  text += TimesText("latency", r.latency_ms);
  for (const auto& [stage, times] : r.stages_ms) text += TimesText(stage.c_str(), times);
  for (const WatchResult::Stream& stream : r.per_stream) {
    for (const WatchResult::Fault& fault : stream.faults)
      text += fmt::format("{} {}: {} x {}: {}\n", style.Bold("stream"), stream.name, fault.count, fault.kind,
                          fault.message);
  }
  if (r.find_max) {
    text += fmt::format("{} {} hold {} ms for 99 % of the frames, {}\n", style.Bold("maximum"),
                        Count(r.find_max->streams, "stream"), Short(r.deadline_ms),
                        r.find_max->limited_by_most
                            ? "the most that were tried"
                            : fmt::format("confirmed {} times", r.find_max->confirmations));
  }
  if (r.webhook) {
    text += fmt::format("{} {} posted, {} refused, {} dropped, {} repeated{}{}\n", style.Bold("webhook"),
                        Count(r.webhook->posted, "event"), Count(r.webhook->refused),
                        Count(r.webhook->dropped), Count(r.webhook->retries, "request"),
                        r.webhook->error.empty() ? "" : "; last failure: ", r.webhook->error);
  }
  if (r.storage_delay) text += fmt::format("{} {}\n", style.Bold("storage"), r.storage_delay->text);
  const auto& bottleneck = r.find_max ? r.find_max->bottleneck : r.bottleneck;
  if (bottleneck)
    text += fmt::format("{} {}: {}\n", style.Bold("bottleneck"), bottleneck->stage, bottleneck->text);
  return text;
}

}  // namespace weir::watch
