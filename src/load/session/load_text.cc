#include "load/session/load_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include "base/count.h"
#include "base/json.h"
#include "infer/server_times.h"
#include "load/session/level_split.h"
#include "load/session/load_result.h"
#include "oip/server_shares.h"
#include "stats/summary.h"

namespace weir::load {
namespace {

std::optional<double> ScaledMs(const auto& value) {
  return value ? std::optional(1e-6 * static_cast<double>(*value)) : std::nullopt;
}

bool IsOpen(const LevelResult& level) { return std::holds_alternative<Rate>(level.level.scenario); }

// The concurrency, or the rate.
double SettingOf(const LevelResult& level) {
  if (const auto* open = std::get_if<Rate>(&level.level.scenario)) return open->per_second;
  return std::get<Concurrency>(level.level.scenario).in_flight;
}

std::optional<double> MeanServiceMs(const LevelResult& level) { return ScaledMs(level.tally.service.Mean()); }

std::string Ms(const std::optional<double>& ms) { return ms ? Short(*ms) : "-"; }

std::string TimesLine(const char* what, const stats::Histogram& times) {
  std::string line = fmt::format("  {:<10} mean {}", what, Ms(ScaledMs(times.Mean())));
  for (const auto& [name, p] : results::LoadResult::kPercentiles) {
    const auto ms = QuantileMs(times, p);
    if (ms) line += fmt::format(", {} {}", p == 0.999 ? "p99.9" : name, Short(*ms));
  }
  return line + fmt::format(", max {} ms\n", Ms(ScaledMs(times.Max())));
}

std::string VerdictText(const TextStyle& style, const Claims& claims) {
  std::string text = fmt::format("  {:<10} throughput {}, latency {}\n", "verdict",
                                 style.Bold(std::string(ToString(claims.throughput.standing))),
                                 style.Bold(std::string(ToString(claims.latency.standing))));
  for (const results::Cause& cause : CausesOf(claims))
    text += fmt::format("  {:<10} {}: {}\n", "", ToString(cause.reason), cause.evidence);
  return text;
}

std::string ErrorsText(const LevelResult& level) {
  std::string text;
  for (int i = 1; i < kOutcomes; ++i) {
    const auto outcome = static_cast<Outcome>(i);
    if (level.tally.of(outcome) > 0)
      text +=
          fmt::format("{}{} {}", text.empty() ? "" : ", ", Count(level.tally.of(outcome)), ToString(outcome));
  }
  if (text.empty()) return "";
  text = fmt::format("  {:<10} {} of {} planned\n", "errors", text, Count(level.tally.planned()));
  for (const RunOutcome& played : level.repeats) {
    for (const std::string& error : played.errors)
      text += fmt::format("  {:<10} {}\n", "", EscapeForTerminal(error));
    if (!played.errors.empty()) break;
  }
  return text;
}

// A line for each part of a trace; empty for other loads.
std::string TraceText(const LevelResult& level) {
  if (!level.tally.windows) return "";
  const double width = level.tally.windows->width_s();
  const double seconds = width * static_cast<double>(std::max<size_t>(1, level.repeats.size()));
  std::string text = fmt::format("  {:<10} {:>16} {:>10} {:>9} {:>8} {:>9} {:>9}\n", "trace", "seconds",
                                 "planned/s", "answered", "failed", "p50 ms", "p99 ms");
  double from = 0;
  for (const TraceWindows::Window& window : level.tally.windows->windows()) {
    text += fmt::format("  {:<10} {:>16} {:>10} {:>9} {:>8} {:>9} {:>9}\n", "",
                        fmt::format("{:.4g} to {:.4g}", from, from + width),
                        Short(static_cast<double>(window.planned()) / seconds), Count(window.answered),
                        Count(window.failed), Ms(QuantileMs(window.response, 0.5)),
                        Ms(QuantileMs(window.response, 0.99)));
    from += width;
  }
  return text;
}

// perf_analyzer's "Network+Server Send/Recv" to "Server Compute Output", in microseconds; empty where the
// server's account was left out. `between`: from the last byte sent to the first received, in milliseconds.
std::string ServerColumns(const ServerAccount& account, double between_ms) {
  if (!account.left_out.empty()) return ",,,,";
  const infer::MeanServerTimes times = account.times.value_or(infer::MeanServerTimes{});
  const double inside =
      times.queue_ms + times.compute_input_ms + times.compute_infer_ms + times.compute_output_ms;
  return fmt::format("{:.0f},{:.0f},{:.0f},{:.0f},{:.0f}", 1e3 * std::max(0.0, between_ms - inside),
                     1e3 * times.queue_ms, 1e3 * times.compute_input_ms, 1e3 * times.compute_infer_ms,
                     1e3 * times.compute_output_ms);
}

double NsToMs(double ns) { return 1e-6 * ns; }

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
std::string SlowestText(const SlowestRequests& slowest, const Split& all, double percentile) {
  constexpr size_t kMost = 4;
  constexpr double kWorthTelling = 0.03;  // of what they take longer
  const double longer = slowest.mean.response - all.response;
  std::vector<std::pair<double, SplitPart>> added;
  for (int i = 0; i < kParts; ++i) {
    const auto part = static_cast<SplitPart>(i);
    const double more = slowest.mean.of(part) - all.of(part);
    if (more > kWorthTelling * longer) added.emplace_back(more, part);
  }
  std::ranges::sort(added, std::greater());
  if (added.size() > kMost) added.resize(kMost);
  std::string text = fmt::format("  {:<10} the {} above p{:g} took {} ms on average, {} more than all",
                                 "slowest", Count(slowest.requests), percentile,
                                 Short(NsToMs(slowest.mean.response)), Short(NsToMs(longer)));
  for (size_t i = 0; i < added.size(); ++i) {
    text += fmt::format("{}{} {}", i == 0 ? ": " : ", ", ToString(added[i].second),
                        Short(NsToMs(added[i].first)));
  }
  return text + "\n";
}

std::string HostsText(const LevelResult& level) {
  std::string text;
  for (const HostPart& part : level.hosts) {
    text += fmt::format("  {:<10} {}: {} requests/s, p50 {}, p99 {} ms", text.empty() ? "hosts" : "",
                        EscapeForTerminal(part.name), Short(part.throughput),
                        Ms(QuantileMs(part.tally.response, 0.5)), Ms(QuantileMs(part.tally.response, 0.99)));
    if (part.lost) text += fmt::format("; lost: {}", EscapeForTerminal(*part.lost));
    text += "\n";
  }
  return text;
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

}  // namespace

std::string PlanText(const TextStyle& style, const LoadSummary& result) {
  const LevelLength& length = result.length;
  return fmt::format("{}, {}\n", style.Bold(result.target.Title()),
                     length.requests > 0
                         ? fmt::format("{} requests a level", Count(length.requests))
                         : fmt::format("{:g} s a level", Seconds(length.length) * length.repeats));
}

std::vector<std::string> PlanNotes(const LoadSummary& result, const std::vector<Level>& levels) {
  std::vector<std::string> notes;
  if (!result.length.note.empty()) notes.push_back(result.length.note);
  const int connections = result.options.connections;
  const bool waits = std::ranges::any_of(levels, [&](const Level& level) {
    const auto* closed = std::get_if<Concurrency>(&level.scenario);
    return closed && connections > 0 && connections < closed->in_flight;
  });
  if (waits) {
    notes.push_back(fmt::format(
        "at most {} requests are sent at a time; the others wait for a connection. Their response times "
        "include this wait, as slip",
        connections));
  }
  return notes;
}

std::string ProgressText(const Progress& progress) {
  std::string text = fmt::format(", {}/s", Short(progress.rate));
  if (progress.p99) text += fmt::format(", p99 {} ms", Short(Milliseconds(*progress.p99)));
  if (progress.failed > 0) text += fmt::format(", {} failed", Count(progress.failed));
  return text;
}

std::string LevelText(const TextStyle& style, const LoadSummary& result, const LevelResult& level) {
  std::string text = fmt::format("{}\n", style.Bold(level.level.name));
  const auto spread = stats::Summarise(Throughputs(level));
  text += fmt::format("  {:<10} {} requests/s", "throughput", Short(level.throughput()));
  if (result.batch > 1) text += fmt::format(", {} rows/s", Short(level.throughput() * result.batch));
  if (spread && spread->standard_error)
    text += fmt::format(" (standard error {}, {} repeats)", Short(*spread->standard_error), spread->n);
  text += level.measured_s > 0
              ? fmt::format("; {} answers in {} s\n", Count(level.answered()), Short(level.measured_s))
              : fmt::format("; nothing was measured in {} s\n", Short(level.elapsed_s()));
  if (result.verbose && level.repeats.size() > 1) {
    for (const RunOutcome& played : level.repeats) {
      text +=
          fmt::format("  {:<10} {} requests/s, mean {}, p50 {} ms\n", "repeat", Short(played.throughput()),
                      Ms(ScaledMs(played.tally.response.Mean())), Ms(QuantileMs(played.tally.response, 0.5)));
    }
  }
  text += TimesLine("response", level.tally.response);
  if (const auto half = MeanHalfWidthMs(level)) {
    text += fmt::format("  {:<10} the mean to within {} ms (95 %)", "", Short(*half));
    if (!level.tally.send.empty())
      text += fmt::format(", and the server alone up to {} ms less", Short(OutsideOfServerMs(level)));
    text += "\n";
  }
  text += TimesLine("service", level.tally.service);
  if (IsOpen(level)) text += TimesLine("slip", level.tally.slip);
  text += HostsText(level);
  text += SplitText(level, SlowPercentile(result.options));
  if (const auto shares = oip::SharesOf(result.options.balance, level.calls))
    text += ServerSharesText(*shares);
  if (level.cpu_s > 0 && level.answered() > 0) {
    text += fmt::format("  {:<10} {} us of CPU a request",
                        result.target.protocol() == "in-process" ? "process" : "client",
                        Short(CpuMicroseconds(level)));
    if (level.spin_s > 0) text += fmt::format(", and {} s of waiting on the spot", Short(level.spin_s));
    text += "\n";
  }
  text += TraceText(level);
  text += ErrorsText(level);
  if (const int64_t lost = SamplesLost(level); lost > 0)
    text += fmt::format("  {:<10} {} requests are missing from --samples: the file is written too slowly\n",
                        "samples", Count(lost));
  if (level.below_threshold) {
    constexpr std::array kAnswers = {"yes", "no", "undecided: more requests would tell"};
    text += fmt::format("  {:<10} p{:g} of the response time below {} ms? {}\n", "target",
                        result.options.percentile > 0 ? result.options.percentile : 50,
                        Short(result.options.latency_threshold_ms),
                        style.Bold(kAnswers.at(static_cast<size_t>(*level.below_threshold))));
    if (level.claims.latency.standing >= results::Standing::kInvalid)
      text += fmt::format("  {:<10} not to be trusted: the latency is INVALID\n", "");
  }
  if (level.mlperf) {
    text += fmt::format("  {:<10} {} {}: {}\n", "mlperf", level.mlperf->metric,
                        level.mlperf->value ? Short(*level.mlperf->value) : "-",
                        level.mlperf->valid ? "valid" : "not valid");
    for (const std::string& shortfall : level.mlperf->shortfalls)
      text += fmt::format("  {:<10} {}\n", "", shortfall);
  }
  return text + VerdictText(style, level.claims);
}

std::string CeilingText(const LoadSummary& result) {
  if (!result.ceiling) return "";
  std::string text =
      fmt::format("the generator itself can send {} of these requests a second to a server that does nothing",
                  Short(result.ceiling->per_s));
  if (result.ceiling->floor_ms)
    text +=
        fmt::format(", and the median time of one alone is {} ms there", Short(*result.ceiling->floor_ms));
  return text + "\n";
}

std::string PeakText(const TextStyle& style, const LoadSummary& result) {
  if (!result.outcome.peak) return "";
  const PeakSearch::Outcome& peak = *result.outcome.peak;
  const std::string bound = fmt::format("p{:g} of the response time below {} ms",
                                        result.options.percentile > 0 ? result.options.percentile : 50,
                                        Short(result.options.latency_threshold_ms));
  if (result.outcome.peak_spoiled)
    return fmt::format(
        "\n{}: not known: the generator or the machine spoiled the last runs of {}, and so ended the "
        "search\n",
        style.Bold("peak"), result.outcome.levels.size());
  if (!peak.rate) return fmt::format("\n{}: no rate that was tried has {}\n", style.Bold("peak"), bound);
  return fmt::format("\n{} {} requests/s with {}: {} after {} runs\n", style.Bold("peak"), Short(*peak.rate),
                     bound,
                     peak.confirmed ? "confirmed by fresh runs" : "NOT confirmed: too many runs disagreed",
                     result.outcome.levels.size());
}

std::string TableText(const LoadSummary& result) {
  if (result.outcome.levels.size() < 2) return "";
  const double percentile = SlowPercentile(result.options);
  double most = 0;
  size_t width = 5;
  for (const LevelResult& level : result.outcome.levels) {
    most = std::max(most, level.throughput());
    width = std::max(width, level.level.name.size());
  }
  std::string text = fmt::format("\n{:<{}} {:>10} {:>9} {:>9} {:>9} {:>13}  {:<18} {}\n", "level", width,
                                 "requests/s", "mean ms", "p50", fmt::format("p{:g}", percentile),
                                 "client CPU us", "throughput/latency", "");
  for (const LevelResult& level : result.outcome.levels) {
    text += fmt::format("{:<{}} {:>10} {:>9} {:>9} {:>9} {:>13}  {:<18} {}\n", level.level.name, width,
                        Short(level.throughput()), Ms(ScaledMs(level.tally.response.Mean())),
                        Ms(QuantileMs(level.tally.response, 0.5)),
                        Ms(QuantileMs(level.tally.response, percentile / 100)), Short(CpuMicroseconds(level)),
                        fmt::format("{}/{}", ToString(level.claims.throughput.standing),
                                    ToString(level.claims.latency.standing)),
                        TextStyle::Bar(most > 0 ? level.throughput() / most : 0, 20));
  }
  return text;
}

// https://github.com/triton-inference-server/perf_analyzer, report_writer.cc: times in microseconds.
std::string ResultCsv(const LoadSummary& result) {
  const bool open = !result.outcome.levels.empty() && IsOpen(result.outcome.levels.front());
  std::string csv = fmt::format(
      "{},Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,Server Compute Input,"
      "Server Compute Infer,Server Compute Output,Client Recv,p50 latency,p90 latency,p95 latency,p99 "
      "latency,Avg latency\n",
      open ? "Request Rate" : "Concurrency");
  for (const LevelResult& level : result.outcome.levels) {
    const double service = MeanServiceMs(level).value_or(0);
    const double send = ScaledMs(level.tally.send.Mean()).value_or(0);
    const double receive = service - ScaledMs(level.tally.first_byte.Mean()).value_or(0);
    csv += fmt::format("{:g},{:.6g},{:.0f},{},{:.0f}", SettingOf(level), level.throughput() * result.batch,
                       1e3 * send, ServerColumns(ServerAccountOf(level), service - send - receive),
                       1e3 * receive);
    for (const double p : {0.5, 0.9, 0.95, 0.99}) {
      const auto ms = QuantileMs(level.tally.response, p);
      csv += ms ? fmt::format(",{:.0f}", 1e3 * *ms) : ",";
    }
    const auto mean = ScaledMs(level.tally.response.Mean());
    csv += (mean ? fmt::format(",{:.0f}", 1e3 * *mean) : ",") + "\n";
  }
  return csv;
}

}  // namespace weir::load
