#include "monitor/prometheus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

namespace weir::monitor {
namespace {

constexpr std::array<std::string_view, 5> kTypes = {"counter", "gauge", "histogram", "summary", "untyped"};

bool IsBlank(char c) { return c == ' ' || c == '\t'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

enum class NameOf { kMetric, kLabel };

bool IsName(std::string_view name, NameOf of) {
  const auto fits = [of](char c) { return IsLetter(c) || (c == ':' && of == NameOf::kMetric); };
  return !name.empty() && fits(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return fits(c) || IsDigit(c); });
}

// As Go's ParseFloat writes and reads numbers, less its hexadecimal ones.
std::optional<double> ParseValue(std::string_view word) {
  if (word.starts_with('+')) {
    word.remove_prefix(1);
    if (word.starts_with('-')) return std::nullopt;
  }
  if (word.find('(') != std::string_view::npos) return std::nullopt;  // from_chars takes "nan(7)"
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> ParseTimestamp(std::string_view word) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

// One line, read from its beginning.
class Line {
 public:
  Line(std::string_view text, size_t number) : rest_(text), number_(number) {}

  void SkipBlanks() {
    while (!rest_.empty() && IsBlank(rest_.front())) rest_.remove_prefix(1);
  }
  bool at_end() {
    SkipBlanks();
    return rest_.empty();
  }
  bool Take(char c) {
    SkipBlanks();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // Up to the next blank, or the next of `ends`.
  std::string_view Word(std::string_view ends = "") {
    SkipBlanks();
    const auto end = std::ranges::find_if(
        rest_, [&](char c) { return IsBlank(c) || ends.find(c) != std::string_view::npos; });
    const std::string_view word = rest_.substr(0, static_cast<size_t>(end - rest_.begin()));
    rest_.remove_prefix(word.size());
    return word;
  }
  Result<std::string> QuotedText();
  std::unexpected<Error> Refuse(std::string_view why) const {
    return Fail(ErrorCode::kCorrupt, fmt::format("metrics, line {}: {}", number_, why));
  }

 private:
  std::string_view rest_;
  const size_t number_;
};

Result<std::string> Line::QuotedText() {
  if (!Take('"')) return Refuse("a label's value wants quotes");
  std::string text;
  while (true) {
    const size_t plain = rest_.find_first_of("\\\"");
    if (plain == std::string_view::npos) return Refuse("a label's value has no end");
    text += rest_.substr(0, plain);
    const char stop = rest_[plain];
    rest_.remove_prefix(plain + 1);
    if (stop == '"') return text;
    const char escaped = rest_.empty() ? '\0' : rest_.front();
    if (escaped != '\\' && escaped != '"' && escaped != 'n')
      return Refuse("only \\\\, \\\" and \\n are escapes");
    text += escaped == 'n' ? '\n' : escaped;
    rest_.remove_prefix(1);
  }
}

class Parser {
 public:
  explicit Parser(const PrometheusLimits& limits) : limits_(limits) {}

  Result<std::vector<Metric>> Parse(std::string_view text);

 private:
  Status ParseComment(Line line);
  Status ParseMetric(Line line);
  Status ParseLabels(Line& line, Metric& metric) const;

  const PrometheusLimits& limits_;
  std::set<std::string_view> typed_, helped_;  // names, in the text
  std::set<std::string_view> seen_;            // that had a sample
  std::vector<Metric> metrics_;
};

Result<std::vector<Metric>> Parser::Parse(std::string_view text) {
  if (text.size() > limits_.bytes) {
    return Fail(ErrorCode::kCorrupt, fmt::format("metrics: more than {} bytes", limits_.bytes));
  }
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos)
      return Line(text, number).Refuse("it has no end: the text was cut off");
    Line line(text.substr(0, end), number);
    text.remove_prefix(end + 1);
    if (line.at_end()) continue;
    TRY_STATUS(line.Take('#') ? ParseComment(line) : ParseMetric(line));
  }
  return std::move(metrics_);
}

// Parses the text after the "#". Only TYPE and HELP have a meaning.
Status Parser::ParseComment(Line line) {
  const std::string_view what = line.Word();
  if (what != "TYPE" && what != "HELP") return {};
  const std::string_view name = line.Word();
  if (!IsName(name, NameOf::kMetric)) return line.Refuse(fmt::format("{} wants a metric's name", what));
  if (!(what == "TYPE" ? typed_ : helped_).insert(name).second) {
    return line.Refuse(fmt::format("a second {} for {}", what, name));
  }
  if (what == "HELP") return {};
  if (seen_.contains(name)) return line.Refuse(fmt::format("TYPE of {} after its samples", name));
  if (const std::string_view type = line.Word();
      std::ranges::find(kTypes, type) == kTypes.end() || !line.at_end()) {
    return line.Refuse("TYPE wants one of counter, gauge, histogram, summary, untyped");
  }
  return {};
}

Status Parser::ParseMetric(Line line) {
  if (metrics_.size() >= limits_.metrics) {
    return line.Refuse(fmt::format("more than {} metrics", limits_.metrics));
  }
  const std::string_view name = line.Word("{");
  if (!IsName(name, NameOf::kMetric)) return line.Refuse("it does not begin with a metric's name");
  Metric metric{.name = std::string(name)};
  if (line.Take('{')) TRY_STATUS(ParseLabels(line, metric));
  const auto value = ParseValue(line.Word());
  if (!value) return line.Refuse(fmt::format("the value of {} is no number", name));
  metric.value = *value;
  if (!line.at_end()) {
    metric.timestamp_ms = ParseTimestamp(line.Word());
    if (!metric.timestamp_ms || !line.at_end()) {
      return line.Refuse(fmt::format("behind the value of {} only a time in milliseconds may stand", name));
    }
  }
  seen_.insert(name);
  metrics_.push_back(std::move(metric));
  return {};
}

// Parses the text after the "{", up to the "}".
Status Parser::ParseLabels(Line& line, Metric& metric) const {
  while (!line.Take('}')) {
    const std::string_view name = line.Word("=");
    if (!IsName(name, NameOf::kLabel)) return line.Refuse("a label has no proper name");
    if (!line.Take('=')) return line.Refuse(fmt::format("label {} has no value", name));
    std::string value = TRY(line.QuotedText());
    if (std::ranges::any_of(metric.labels, [&](const auto& label) { return label.first == name; })) {
      return line.Refuse(fmt::format("label {} twice", name));
    }
    if (metric.labels.size() >= limits_.labels) {
      return line.Refuse(fmt::format("more than {} labels", limits_.labels));
    }
    metric.labels.emplace_back(name, std::move(value));
    if (line.Take(',')) continue;  // one may stand before the } as well
    if (line.Take('}')) return {};
    return line.Refuse("labels want a comma between them and a } at their end");
  }
  return {};
}

}  // namespace

Result<std::vector<Metric>> ParsePrometheus(std::string_view text, const PrometheusLimits& limits) {
  return Parser(limits).Parse(text);
}

}  // namespace weir::monitor
