#include "cli/load_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/load_split.h"
#include "load/session/load_result.h"
#include "stats/summary.h"

namespace weir::cli {
namespace {

using load::QuantileMs;

std::optional<double> ScaledMs(const auto& value) {
  return value ? std::optional(1e-6 * static_cast<double>(*value)) : std::nullopt;
}

bool IsOpen(const LevelResult& level) { return std::holds_alternative<load::Rate>(level.level.scenario); }

// The concurrency, or the rate.
double SettingOf(const LevelResult& level) {
  if (const auto* open = std::get_if<load::Rate>(&level.level.scenario)) return open->per_second;
  return std::get<load::Concurrency>(level.level.scenario).in_flight;
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

std::string VerdictText(const Console& console, const load::Claims& claims) {
  std::string text = fmt::format("  {:<10} throughput {}, latency {}\n", "verdict",
                                 console.Bold(std::string(ToString(claims.throughput.standing))),
                                 console.Bold(std::string(ToString(claims.latency.standing))));
  for (const record::Cause& cause : load::CausesOf(claims))
    text += fmt::format("  {:<10} {}: {}\n", "", ToString(cause.reason), cause.evidence);
  return text;
}

std::string ErrorsText(const LevelResult& level) {
  std::string text;
  for (int i = 1; i < load::kOutcomes; ++i) {
    const auto outcome = static_cast<load::Outcome>(i);
    if (level.tally.of(outcome) > 0)
      text +=
          fmt::format("{}{} {}", text.empty() ? "" : ", ", Count(level.tally.of(outcome)), ToString(outcome));
  }
  if (text.empty()) return "";
  text = fmt::format("  {:<10} {} of {} planned\n", "errors", text, Count(level.tally.planned()));
  for (const load::RunOutcome& played : level.repeats) {
    for (const std::string& error : played.errors)
      text += fmt::format("  {:<10} {}\n", "", EscapeForTerminal(error));
    if (!played.errors.empty()) break;
  }
  return text;
}

// perf_analyzer's "Network+Server Send/Recv" to "Server Compute Output", in microseconds; empty where the
// server's account was left out. `between`: from the last byte sent to the first received, in milliseconds.
std::string ServerColumns(const load::ServerAccount& account, double between_ms) {
  if (!account.left_out.empty()) return ",,,,";
  const infer::MeanServerTimes times = account.times.value_or(infer::MeanServerTimes{});
  const double inside =
      times.queue_ms + times.compute_input_ms + times.compute_infer_ms + times.compute_output_ms;
  return fmt::format("{:.0f},{:.0f},{:.0f},{:.0f},{:.0f}", 1e3 * std::max(0.0, between_ms - inside),
                     1e3 * times.queue_ms, 1e3 * times.compute_input_ms, 1e3 * times.compute_infer_ms,
                     1e3 * times.compute_output_ms);
}

}  // namespace

std::string LevelText(const Console& console, const LoadResult& result, const LevelResult& level) {
  std::string text = fmt::format("{}\n", console.Bold(level.level.name));
  const auto spread = stats::Summarise(load::Throughputs(level));
  text += fmt::format("  {:<10} {} requests/s", "throughput", Short(level.throughput()));
  if (result.batch > 1) text += fmt::format(", {} rows/s", Short(level.throughput() * result.batch));
  if (spread && spread->standard_error)
    text += fmt::format(" (standard error {}, {} repeats)", Short(*spread->standard_error), spread->n);
  text += level.measured_s > 0
              ? fmt::format("; {} answers in {} s\n", Count(level.answered()), Short(level.measured_s))
              : fmt::format("; nothing was measured in {} s\n", Short(level.elapsed_s()));
  if (result.flags.verbose && level.repeats.size() > 1) {
    for (const load::RunOutcome& played : level.repeats) {
      text +=
          fmt::format("  {:<10} {} requests/s, mean {}, p50 {} ms\n", "repeat", Short(played.throughput()),
                      Ms(ScaledMs(played.tally.response.Mean())), Ms(QuantileMs(played.tally.response, 0.5)));
    }
  }
  text += TimesLine("response", level.tally.response);
  if (const auto half = load::MeanHalfWidthMs(level)) {
    text += fmt::format("  {:<10} the mean to within {} ms (95 %)", "", Short(*half));
    if (!level.tally.send.empty())
      text += fmt::format(", and the server alone up to {} ms less", Short(load::OutsideOfServerMs(level)));
    text += "\n";
  }
  text += TimesLine("service", level.tally.service);
  if (IsOpen(level)) text += TimesLine("slip", level.tally.slip);
  text += SplitText(level, load::SlowPercentile(result.flags));
  if (level.cpu_s > 0 && level.answered() > 0) {
    text += fmt::format("  {:<10} {} us of CPU a request",
                        result.target.protocol() == "in-process" ? "process" : "client",
                        Short(load::CpuMicroseconds(level)));
    if (level.spin_s > 0) text += fmt::format(", and {} s of waiting on the spot", Short(level.spin_s));
    text += "\n";
  }
  text += ErrorsText(level);
  if (const int64_t lost = load::SamplesLost(level); lost > 0)
    text += fmt::format("  {:<10} {} requests are missing from --samples: the file is written too slowly\n",
                        "samples", Count(lost));
  if (level.below_threshold) {
    constexpr std::array kAnswers = {"yes", "no", "undecided: more requests would tell"};
    text += fmt::format("  {:<10} p{:g} of the response time below {} ms? {}\n", "target",
                        result.flags.percentile > 0 ? result.flags.percentile : 50,
                        Short(result.flags.latency_threshold_ms),
                        console.Bold(kAnswers.at(static_cast<size_t>(*level.below_threshold))));
    if (level.claims.latency.standing >= record::Standing::kInvalid)
      text += fmt::format("  {:<10} not to be trusted: the latency is INVALID\n", "");
  }
  if (level.mlperf) {
    text += fmt::format("  {:<10} {} {}: {}\n", "mlperf", level.mlperf->metric,
                        level.mlperf->value ? Short(*level.mlperf->value) : "-",
                        level.mlperf->valid ? "valid" : "not valid");
    for (const std::string& shortfall : level.mlperf->shortfalls)
      text += fmt::format("  {:<10} {}\n", "", shortfall);
  }
  return text + VerdictText(console, level.claims);
}

std::string CeilingText(const LoadResult& result) {
  if (!result.ceiling) return "";
  std::string text =
      fmt::format("the generator itself can send {} of these requests a second to a server that does nothing",
                  Short(result.ceiling->per_s));
  if (result.ceiling->floor_ms)
    text +=
        fmt::format(", and the median time of one alone is {} ms there", Short(*result.ceiling->floor_ms));
  return text + "\n";
}

std::string PeakText(const Console& console, const LoadResult& result) {
  if (!result.outcome.peak) return "";
  const load::PeakSearch::Outcome& peak = *result.outcome.peak;
  const std::string bound = fmt::format("p{:g} of the response time below {} ms",
                                        result.flags.percentile > 0 ? result.flags.percentile : 50,
                                        Short(result.flags.latency_threshold_ms));
  if (result.outcome.peak_spoiled)
    return fmt::format(
        "\n{}: not known: the generator or the machine spoiled the last runs of {}, and so ended the "
        "search\n",
        console.Bold("peak"), result.outcome.levels.size());
  if (!peak.rate) return fmt::format("\n{}: no rate that was tried has {}\n", console.Bold("peak"), bound);
  return fmt::format("\n{} {} requests/s with {}: {} after {} runs\n", console.Bold("peak"),
                     Short(*peak.rate), bound,
                     peak.confirmed ? "confirmed by fresh runs" : "NOT confirmed: too many runs disagreed",
                     result.outcome.levels.size());
}

std::string TableText(const LoadResult& result) {
  if (result.outcome.levels.size() < 2) return "";
  const double percentile = load::SlowPercentile(result.flags);
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
                        Ms(QuantileMs(level.tally.response, percentile / 100)),
                        Short(load::CpuMicroseconds(level)),
                        fmt::format("{}/{}", ToString(level.claims.throughput.standing),
                                    ToString(level.claims.latency.standing)),
                        Console::Bar(most > 0 ? level.throughput() / most : 0, 20));
  }
  return text;
}

// https://github.com/triton-inference-server/perf_analyzer, report_writer.cc: times in microseconds.
std::string ResultCsv(const LoadResult& result) {
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
                       1e3 * send, ServerColumns(load::ServerAccountOf(level), service - send - receive),
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

}  // namespace weir::cli
