#include "cli/load_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/load_split.h"
#include "load/verdict/judge.h"
#include "results/schema_version.h"
#include "stats/quantile.h"
#include "stats/summary.h"

namespace weir::cli {
namespace {

constexpr std::pair<const char*, double> kPercentiles[] = {
    {"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p99_9", 0.999}};
constexpr double kConfidence = 0.95;

// Milliseconds of a quantile, where the number of samples supports it.
std::optional<double> QuantileMs(const stats::Histogram& histogram, double p) {
  if (!stats::Supports(p, histogram.count())) return std::nullopt;
  const auto value = histogram.Quantile(p);
  return value ? std::optional(1e-6 * static_cast<double>(*value)) : std::nullopt;
}

std::optional<double> ScaledMs(const auto& value) {
  return value ? std::optional(1e-6 * static_cast<double>(*value)) : std::nullopt;
}

// `send`: of the same requests, where that is a part of `times`.
Json TimesJson(const stats::Histogram& times, const stats::Histogram& send = {}) {
  Json json = Json::object(), intervals = Json::object();
  PutIfAny(json, "mean", ScaledMs(times.Mean()));
  PutIfAny(json, "standard_deviation", ScaledMs(times.StandardDeviation()));
  PutIfAny(json, "min", ScaledMs(times.Min()));
  for (const auto& [name, p] : kPercentiles) {
    PutIfAny(json, name, QuantileMs(times, p));
    const auto ranks = stats::QuantileRanks(p, times.count(), kConfidence);
    if (!ranks || !json.contains(name)) continue;
    const double outside = load::OutsideOfServer(QuantileMs(send, p), ScaledMs(times.Min()));
    intervals[name] = {*ScaledMs(times.AtRank(ranks->low)) - outside, *ScaledMs(times.AtRank(ranks->high))};
  }
  PutIfAny(json, "max", ScaledMs(times.Max()));
  json["n"] = times.count();
  if (!intervals.empty()) json["intervals_95"] = std::move(intervals);
  return json;
}

Json VerdictJson(const load::Claims& claims) {
  return {{"throughput", record::ToString(claims.throughput.standing)},
          {"latency", record::ToString(claims.latency.standing)}};
}

// Of both claims, each once.
std::vector<record::Cause> CausesOf(const load::Claims& claims) {
  std::vector<record::Cause> causes = claims.throughput.causes;
  for (const record::Cause& cause : claims.latency.causes) {
    if (std::ranges::find(causes, cause) == causes.end()) causes.push_back(cause);
  }
  return causes;
}

Json ReasonsJson(const load::Claims& claims) {
  Json reasons = Json::array();
  for (const record::Cause& cause : CausesOf(claims)) {
    Json about = Json::array();
    if (std::ranges::find(claims.throughput.causes, cause) != claims.throughput.causes.end())
      about.push_back("throughput");
    if (std::ranges::find(claims.latency.causes, cause) != claims.latency.causes.end())
      about.push_back("latency");
    reasons.push_back({{"reason", record::ToString(cause.reason)},
                       {"about", std::move(about)},
                       {"evidence", cause.evidence}});
  }
  return reasons;
}

bool IsOpen(const LevelResult& level) { return std::holds_alternative<load::Rate>(level.level.scenario); }

int64_t SamplesLost(const LevelResult& level) {
  int64_t lost = 0;
  for (const load::RunOutcome& played : level.repeats) lost += played.samples_lost;
  return lost;
}

// The concurrency, or the rate.
double SettingOf(const LevelResult& level) {
  if (const auto* open = std::get_if<load::Rate>(&level.level.scenario)) return open->per_second;
  return std::get<load::Concurrency>(level.level.scenario).in_flight;
}

std::vector<double> Throughputs(const LevelResult& level) {
  std::vector<double> values;
  for (const load::RunOutcome& played : level.repeats) values.push_back(played.throughput());
  return values;
}

double CpuMicroseconds(const LevelResult& level) {
  const auto answers = static_cast<double>(std::max<int64_t>(1, level.answered()));
  return 1e6 * level.cpu_s / answers;
}

// Of the 95 % interval of the mean response time: by batch means within one run, by the runs' means over
// several.
std::optional<double> HalfWidthMs(const LevelResult& level) {
  if (level.repeats.size() == 1) {
    const auto interval = load::MeanResponse(level.repeats.front());
    return interval ? std::optional(500 * (interval->high - interval->low)) : std::nullopt;
  }
  std::vector<double> means;
  for (const load::RunOutcome& played : level.repeats) {
    if (const auto mean = ScaledMs(played.tally.response.Mean())) means.push_back(*mean);
  }
  const auto summary = stats::Summarise(means);
  if (!summary || !summary->low) return std::nullopt;
  return (*summary->high - *summary->low) / 2;
}

double OutsideOfServerMs(const LevelResult& level) {
  return load::OutsideOfServer(ScaledMs(level.tally.send.Mean()), ScaledMs(level.tally.response.Min()));
}

std::optional<double> MeanServiceMs(const LevelResult& level) { return ScaledMs(level.tally.service.Mean()); }

Json RepeatJson(const load::RunOutcome& played) {
  Json json = {{"throughput_per_s", played.throughput()}, {"measured_s", played.measured_s},
               {"answered", played.tally.answered()},     {"planned", played.tally.planned()},
               {"warm_up_s", played.warm_up_s},           {"warm_up_requests", played.warm_up_requests}};
  json["by_count"] = played.by_count;
  json["generator"] = {{"sent", played.tally.slip.count()},
                       {"late", played.tally.late},
                       {"sent_per_s", played.sent_per_s()},
                       {"empty_share", played.empty_share},
                       {"busiest_thread", played.busiest_thread}};
  json["response_ms"] = TimesJson(played.tally.response, played.tally.send);
  if (!played.tally.send.empty()) json["client_send_ms"] = TimesJson(played.tally.send);
  return json;
}

Json SettingJson(const LevelResult& level) {
  Json json = Json::object();
  if (const auto* closed = std::get_if<load::Concurrency>(&level.level.scenario)) {
    json["load_model"] = "closed";
    json["concurrency"] = closed->in_flight;
    json["mode"] = closed->wait == load::Concurrency::Wait::kSync ? "sync" : "async";
  } else {
    const auto& open = std::get<load::Rate>(level.level.scenario);
    constexpr std::array kNames = {"constant", "poisson", "gamma", "trace"};
    json["load_model"] = "open";
    json["request_rate"] = open.per_second;
    json["distribution"] = kNames.at(open.arrivals.index());
  }
  return json;
}

Json LevelJson(const LoadResult& result, const LevelResult& level) {
  Json json = SettingJson(level);
  json["verdict"] = VerdictJson(level.claims);
  json["reasons"] = ReasonsJson(level.claims);
  json["throughput_per_s"] = level.throughput();
  json["rows_per_s"] = level.throughput() * result.batch;
  if (const auto spread = stats::Summarise(Throughputs(level)); spread && spread->n > 1) {
    json["repeats"] = spread->n;
    PutIfAny(json, "throughput_standard_error", spread->standard_error);
  }
  json["measured_s"] = level.measured_s;
  json["elapsed_s"] = level.elapsed_s();
  json["planned"] = level.tally.planned();
  json["answered"] = level.tally.answered();
  json["failed"] = level.tally.failed();
  json["unsent"] = level.tally.of(load::Outcome::kUnsent);
  const stats::Histogram& send = level.tally.send;
  json["response_ms"] = TimesJson(level.tally.response, send);
  if (const auto half = HalfWidthMs(level)) {
    const double mean = 1e-6 * level.tally.response.Mean().value_or(0);
    json["response_ms"]["intervals_95"]["mean"] = {mean - *half - OutsideOfServerMs(level), mean + *half};
  }
  json["service_ms"] = TimesJson(level.tally.service, send);
  json["first_byte_ms"] = TimesJson(level.tally.first_byte, send);
  if (!send.empty()) json["client_send_ms"] = TimesJson(send);
  json["slip_ms"] = TimesJson(level.tally.slip);
  Json errors = Json::object();
  for (int i = 1; i < load::kOutcomes; ++i) {
    const auto outcome = static_cast<load::Outcome>(i);
    if (level.tally.of(outcome) > 0) errors[std::string(ToString(outcome))] = level.tally.of(outcome);
  }
  json["errors"] = std::move(errors);
  if (level.cpu_s > 0 && level.answered() > 0) json["client_cpu_us_per_request"] = CpuMicroseconds(level);
  json["spin_cpu_s"] = level.spin_s;
  AddSplit(level, load::SlowPercentile(result.flags), json);
  if (level.below_threshold) {
    constexpr std::array kAnswers = {"yes", "no", "undecided"};
    json["below_threshold"] = kAnswers.at(static_cast<size_t>(*level.below_threshold));
  }
  if (level.mlperf) {
    json["mlperf"] = {{"metric", level.mlperf->metric},
                      {"valid", level.mlperf->valid},
                      {"shortfalls", level.mlperf->shortfalls}};
    PutIfAny(json["mlperf"], "value", level.mlperf->value);
  }
  if (level.resources) json["resources"] = level.resources->ToJson();
  if (level.server_resources) json["server_resources"] = level.server_resources->ToJson();
  if (const int64_t lost = SamplesLost(level); lost > 0) json["samples_lost"] = lost;
  json["runs"] = Json::array();
  for (const load::RunOutcome& played : level.repeats) json["runs"].push_back(RepeatJson(played));
  Json words = Json::array();
  for (const load::RunOutcome& played : level.repeats) {
    for (const std::string& error : played.errors) words.push_back(EscapeBytes(error));
  }
  if (!words.empty()) json["error_messages"] = std::move(words);
  return json;
}

std::string Ms(const std::optional<double>& ms) { return ms ? Short(*ms) : "-"; }

std::string TimesLine(const char* what, const stats::Histogram& times) {
  std::string line = fmt::format("  {:<10} mean {}", what, Ms(ScaledMs(times.Mean())));
  for (const auto& [name, p] : kPercentiles) {
    const auto ms = QuantileMs(times, p);
    if (ms) line += fmt::format(", {} {}", p == 0.999 ? "p99.9" : name, Short(*ms));
  }
  return line + fmt::format(", max {} ms\n", Ms(ScaledMs(times.Max())));
}

std::string VerdictText(const Console& console, const load::Claims& claims) {
  std::string text = fmt::format("  {:<10} throughput {}, latency {}\n", "verdict",
                                 console.Bold(std::string(ToString(claims.throughput.standing))),
                                 console.Bold(std::string(ToString(claims.latency.standing))));
  for (const record::Cause& cause : CausesOf(claims))
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
  const auto spread = stats::Summarise(Throughputs(level));
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
  if (const auto half = HalfWidthMs(level)) {
    text += fmt::format("  {:<10} the mean to within {} ms (95 %)", "", Short(*half));
    if (!level.tally.send.empty())
      text += fmt::format(", and the server alone up to {} ms less", Short(OutsideOfServerMs(level)));
    text += "\n";
  }
  text += TimesLine("service", level.tally.service);
  if (IsOpen(level)) text += TimesLine("slip", level.tally.slip);
  text += SplitText(level, load::SlowPercentile(result.flags));
  if (level.cpu_s > 0 && level.answered() > 0) {
    text += fmt::format("  {:<10} {} us of CPU a request",
                        result.target.protocol() == "in-process" ? "process" : "client",
                        Short(CpuMicroseconds(level)));
    if (level.spin_s > 0) text += fmt::format(", and {} s of waiting on the spot", Short(level.spin_s));
    text += "\n";
  }
  text += ErrorsText(level);
  if (const int64_t lost = SamplesLost(level); lost > 0)
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
                        Ms(QuantileMs(level.tally.response, percentile / 100)), Short(CpuMicroseconds(level)),
                        fmt::format("{}/{}", ToString(level.claims.throughput.standing),
                                    ToString(level.claims.latency.standing)),
                        Console::Bar(most > 0 ? level.throughput() / most : 0, 20));
  }
  return text;
}

Json ResultJson(const LoadResult& result, const record::Provenance& provenance) {
  Json json = {{results::kSchemaVersionKey, results::kSchemaVersion},
               {"model", result.target.info().name},
               {"protocol", result.target.protocol()},
               {"batch", result.batch}};
  json["claim"] = {{"percentile", result.flags.percentile > 0 ? result.flags.percentile : 50}};
  if (result.flags.latency_threshold_ms > 0)
    json["claim"]["latency_threshold_ms"] = result.flags.latency_threshold_ms;
  json["levels"] = Json::array();
  for (const LevelResult& level : result.outcome.levels) json["levels"].push_back(LevelJson(result, level));
  if (result.outcome.peak) {
    json["peak"] = {{"confirmed", result.outcome.peak->confirmed}, {"runs", result.outcome.levels.size()}};
    if (result.outcome.peak_spoiled) json["peak"]["spoiled"] = true;
    PutIfAny(json["peak"], "request_rate", result.outcome.peak->rate);
    PutIfAny(json["peak"], "failed_at", result.outcome.peak->failed_at);
  }
  if (result.ceiling) {
    json["generator"] = {{"ceiling_per_s", result.ceiling->per_s}};
    PutIfAny(json["generator"], "floor_ms", result.ceiling->floor_ms);
  }
  json["interrupted"] = result.interrupted;
  json["provenance"] = provenance.ToJson();
  return json;
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
