#include "advise/goal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <utility>

namespace weir::advise {
namespace {

struct Quantity {
  std::string_view name, metric;
  enum class Kind { kTime, kRate, kBytes } kind;
  int64_t responses = 0;  // ten beyond the percentile (stats::Supports)
  double percentile = 0;
};
constexpr Quantity kQuantities[] = {
    {"p50", "response_ms.p50", Quantity::Kind::kTime, 20, 50},
    {"p90", "response_ms.p90", Quantity::Kind::kTime, 100, 90},
    {"p95", "response_ms.p95", Quantity::Kind::kTime, 200, 95},
    {"p99", kP99Metric, Quantity::Kind::kTime, 1000, 99},
    {"p99.9", "response_ms.p99_9", Quantity::Kind::kTime, 10'000, 99.9},
    {"throughput", kThroughputMetric, Quantity::Kind::kRate},
    {"memory", kMemoryMetric, Quantity::Kind::kBytes},
};

struct Scale {
  std::string_view unit;
  double factor;
};
// The first is meant where none is written.
constexpr Scale kTimes[] = {{"ms", 1}, {"us", 1e-3}, {"s", 1e3}};
constexpr Scale kRates[] = {{"images/s", 1}, {"/s", 1}};
constexpr Scale kBytes[] = {{"bytes", 1}, {"B", 1}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}};

std::span<const Scale> ScalesOf(Quantity::Kind kind) {
  if (kind == Quantity::Kind::kTime) return kTimes;
  if (kind == Quantity::Kind::kRate) return kRates;
  return kBytes;
}

std::unexpected<Error> Wrong(std::string_view text, std::string_view why) {
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("target \"{}\": {}, as in p99<15ms, throughput>400 or memory<2GB", text, why));
}

// Gives the number at the front of `text` and leaves the rest; nullopt without a finite one above 0.
std::optional<double> TakeNumber(std::string_view& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value) || value <= 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

}  // namespace

std::string_view ToString(Objective objective) {
  switch (objective) {
    case Objective::kCost:
      return "cost";
    case Objective::kThroughput:
      return "throughput";
    case Objective::kMemory:
      return "memory";
  }
  return "";
}

Result<Target> ParseTarget(std::string_view text) {
  const size_t sign = text.find_first_of("<>");
  if (sign == std::string_view::npos) return Wrong(text, "it has neither < nor >");
  const std::string_view name = text.substr(0, sign);
  const Quantity* quantity = nullptr;
  for (const Quantity& one : kQuantities) {
    if (one.name == name) quantity = &one;
  }
  if (quantity == nullptr)
    return Wrong(text, fmt::format("\"{}\" is none of p50, p90, p95, p99, p99.9, throughput, memory", name));
  std::string_view rest = text.substr(sign + 1);
  if (rest.starts_with('=')) rest.remove_prefix(1);
  const auto value = TakeNumber(rest);
  if (!value) return Wrong(text, "the limit is no number above 0");
  const bool at_most = text[sign] == '<';
  if (at_most == (quantity->kind == Quantity::Kind::kRate))
    return Wrong(text,
                 at_most ? "a throughput wants > and a least value" : "it wants < and a greatest value");
  const std::span<const Scale> scales = ScalesOf(quantity->kind);
  std::string written(text);
  if (rest.empty()) {
    rest = scales.front().unit;
    written += fmt::format("{}{}", quantity->kind == Quantity::Kind::kTime ? "" : " ", rest);
  }
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  for (const Scale& scale : scales) {
    if (scale.unit == rest)
      return Target{.text = std::move(written),
                    .metric = std::string(quantity->metric),
                    .limit = *value * scale.factor,
                    .at_most = at_most,
                    .responses = quantity->responses,
                    .percentile = quantity->percentile};
  }
  return Wrong(text, fmt::format("\"{}\" is no unit of {}", rest, name));
}

std::optional<int64_t> ResponsesFor(const Goal& goal) {
  int64_t most = 0;
  for (const Target& target : goal.targets) most = std::max(most, target.responses);
  return most > 0 ? std::optional(most) : std::nullopt;
}

Result<std::pair<std::string, double>> ParsePrice(std::string_view text) {
  const size_t sign = text.find('=');
  if (sign != std::string_view::npos && sign > 0) {
    std::string_view rest = text.substr(sign + 1);
    const auto value = TakeNumber(rest);
    if (value && rest.empty()) return std::pair{std::string(text.substr(0, sign)), *value};
  }
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("price \"{}\": wants NAME=VALUE with a value above 0, as in microservice=2.5", text));
}

}  // namespace weir::advise
