#include "predict/whatif.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

namespace weir::predict {
namespace {

constexpr double kAlike = 0.02;  // of facts: batch normalisation may be folded away
constexpr int kFewestAlike = 3;

std::unexpected<Error> Refuse(std::string what) { return Fail(ErrorCode::kInvalidArgument, std::move(what)); }

// Returns ms of a step of `batch` items on one device.
double StepTime(const Spec& spec, double time_ms, double batch) {
  return spec.time_is_of_item ? time_ms * batch : time_ms;
}

// Returns the number in a column of the row, if it has one.
std::optional<double> NumberIn(const Settings& row, const std::string& column) {
  const auto found = row.find(column);
  if (found == row.end()) return std::nullopt;
  const auto number = ParseNumber(found->second);
  return number ? std::optional(*number) : std::nullopt;
}

// Returns the line of least relative error through times of batches, by the normal equations: least squares
// of base / t + per_item * b / t - 1. A negative part becomes 0.
results::PredictEngines::Line LineThrough(const std::vector<int>& batches, const std::vector<double>& times) {
  double aa = 0, ab = 0, bb = 0, a = 0, b = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    const double x = 1 / times[i], y = batches[i] / times[i];
    aa += x * x;
    ab += x * y;
    bb += y * y;
    a += x;
    b += y;
  }
  const double determinant = aa * bb - ab * ab;
  const bool is_line = determinant > 1e-12 * aa * bb;  // otherwise the batches are all but one
  double base = is_line ? (a * bb - b * ab) / determinant : 0;
  double per_item = is_line ? (b * aa - a * ab) / determinant : b / bb;
  if (base <= 0) {
    base = 0;
    per_item = b / bb;
  } else if (per_item < 0) {
    base = a / aa;
    per_item = 0;
  }
  return {.engine = fmt::format("emulated:base={:.6f}ms,per_item={:.6f}ms,batch={}", base, per_item,
                                std::ranges::max(batches)),
          .base_ms = base,
          .per_item_ms = per_item};
}

}  // namespace

Result<Settings> ParseSettings(const std::vector<std::string>& texts) {
  Settings settings;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return Refuse(fmt::format("\"{}\" sets nothing: write column=value", text));
    }
    if (!settings.emplace(text.substr(0, equals), text.substr(equals + 1)).second) {
      return Refuse(fmt::format("{} is set twice", text.substr(0, equals)));
    }
  }
  return settings;
}

Result<Table> MakeTable(const Spec& spec, const std::vector<Settings>& rows) {
  std::set<std::string> names = {spec.id};
  for (const Settings& row : rows) {
    for (const auto& [name, value] : row) names.insert(name);
  }
  std::string text = CsvLine(std::vector<std::string>(names.begin(), names.end()));
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::string> cells;
    for (const std::string& name : names) {
      const auto found = rows[i].find(name);
      cells.push_back(found != rows[i].end() ? found->second
                      : name == spec.id      ? fmt::format("{}", i + 1)
                                             : "");
    }
    text += CsvLine(cells);
  }
  return Table(TRY(ParseCsv(text)));
}

Result<std::string> KeyMeant(const Table& table, const std::string& text, std::string_view what) {
  if (table.RowOf(text) >= 0) return text;
  const std::vector<std::string> alike = table.KeysBeginning(text);
  if (alike.empty()) return text;
  if (alike.size() == 1) return alike.front();
  return Refuse(fmt::format("{} \"{}\" may be {}: say which", what, text, fmt::join(alike, ", ")));
}

std::vector<std::string> NetworksAlike(const Spec& spec, const Table& networks, const Settings& facts) {
  std::vector<std::string> keys;
  if (!spec.networks) return keys;
  const int key = networks.Column(spec.networks->table_key);
  for (int64_t row = 0; row < networks.rows() && key >= 0; ++row) {
    int alike = 0;
    bool other = false;
    for (const auto& [name, text] : facts) {
      const int column = networks.Column(name);
      if (column < 0) continue;
      const auto known = networks.At(row, column).number;
      const auto number = ParseNumber(text);
      if (!known || !number) continue;
      other = other || std::abs(*number - *known) > kAlike * std::abs(*known);
      ++alike;
    }
    if (!other && alike >= kFewestAlike) keys.emplace_back(networks.Cell(row, key));
  }
  return keys;
}

Status CheckSettings(const Spec& spec, const Settings& row) {
  const std::vector<std::string> columns = ColumnsOf(spec);
  for (const auto& [name, value] : row) {
    if (name == spec.id || std::ranges::binary_search(columns, name)) continue;
    return Refuse(
        fmt::format("the predictor uses no column \"{}\"; it uses {}", name, fmt::join(columns, ", ")));
  }
  return {};
}

std::vector<std::string> UnknownColumns(const Predictor& predictor, const Settings& row) {
  std::vector<std::string> unknown;
  for (const std::string& column : ColumnsOf(predictor.spec())) {
    if (column == "vendor") continue;  // an answer asks for it where it matters
    const bool is_optional =
        std::ranges::find(predictor.spec().optional, column, &Named::name) != predictor.spec().optional.end();
    if (!is_optional && !row.contains(column) && predictor.hardware().Column(column) < 0 &&
        predictor.networks().Column(column) < 0)
      unknown.push_back(column);
  }
  return unknown;
}

Result<results::PredictAnswers::Job> TimeOfJob(const Spec& spec, const Settings& row,
                                               const Prediction& prediction, const Job& job) {
  if (!prediction.value || !prediction.time_ms)
    return Refuse(fmt::format("the row was refused: {}", prediction.outside));
  if (!(job.items > 0) || !(job.epochs > 0)) return Refuse("a job wants items and epochs above 0");
  const auto batch = spec.batch.empty() ? std::nullopt : NumberIn(row, spec.batch);
  if (!batch || !(*batch > 0)) {
    return Refuse(spec.batch.empty() ? "the SPEC names no batch, so a step is not known"
                                     : fmt::format("a job wants {} above 0", spec.batch));
  }
  const double devices = spec.devices.empty() ? 1 : NumberIn(row, spec.devices).value_or(1);
  const double steps = std::ceil(job.items / (*batch * devices)) * job.epochs;
  results::PredictAnswers::Job answer{.hours = steps * StepTime(spec, *prediction.time_ms, *batch) / 3.6e6};
  // The high end of a rate is the low end of a time.
  const double first = *prediction.low / *prediction.value, second = *prediction.high / *prediction.value;
  const bool rate = spec.target_kind == TargetKind::kRate;
  answer.low_hours = answer.hours * (rate ? 1 / second : first);
  answer.high_hours = answer.hours * (rate ? 1 / first : second);
  if (job.price_per_hour) {
    const double price = devices * *job.price_per_hour;  // of an hour of all
    answer.cost = answer.hours * price;
    answer.low_cost = answer.low_hours * price;
    answer.high_cost = answer.high_hours * price;
  }
  if (!(answer.low_hours > 0) ||
      !std::isfinite(answer.high_hours + answer.cost.value_or(0) + answer.high_cost.value_or(0)))
    return Refuse(
        fmt::format("{:g} items, {:g} epochs, {} {:g}, {:g} devices: the time of such a job is "
                    "no number: look at them",
                    job.items, job.epochs, spec.batch, *batch, devices));
  return answer;
}

Result<results::PredictEngines::Engine> AsEngine(const Predictor& predictor, const Settings& row,
                                                 const std::vector<int>& batches) {
  const Spec& spec = predictor.spec();
  if (spec.batch.empty()) return Refuse("the SPEC names no batch: it says nothing of latency against batch");
  if (std::set<int>(batches.begin(), batches.end()).size() < 2)
    return Refuse("an engine is a line through the times of batches: it wants two different ones at least");
  const auto devices = row.find(spec.devices);
  if (devices != row.end() && NumberIn(row, spec.devices) != 1)
    return Refuse(
        fmt::format("an engine is of one device: {} is {}: leave it out", spec.devices, devices->second));
  std::vector<Settings> rows;
  for (const int batch : batches) {
    rows.push_back(row);
    rows.back()[spec.batch] = fmt::format("{}", batch);
    if (!spec.devices.empty()) rows.back()[spec.devices] = fmt::format("{}", 1);
  }
  const auto predictions = TRY(predictor.Predict(TRY(MakeTable(spec, rows))));
  results::PredictEngines::Engine engine{.hardware = {}, .engine = {}, .batches = batches, .outside = {}};
  std::vector<double> times, fast, slow;
  for (size_t i = 0; i < predictions.size(); ++i) {
    const Prediction& p = predictions[i];
    if (!p.time_ms) return Refuse(fmt::format("batch {}: {}", batches[i], p.outside));
    times.push_back(StepTime(spec, *p.time_ms, batches[i]));
    // The high end of a rate is the low end of a time.
    const bool rate = spec.target_kind == TargetKind::kRate;
    fast.push_back(times.back() * (rate ? *p.value / *p.high : *p.low / *p.value));
    slow.push_back(times.back() * (rate ? *p.value / *p.low : *p.high / *p.value));
    if (p.regime == Regime::kOutside && engine.batches_outside++ == 0) engine.outside = p.outside;
  }
  const auto line = LineThrough(batches, times);
  engine.engine = line.engine;
  engine.base_ms = line.base_ms;
  engine.per_item_ms = line.per_item_ms;
  for (size_t i = 0; i < times.size(); ++i)
    engine.greatest_error = std::max(engine.greatest_error,
                                     std::abs((line.base_ms + line.per_item_ms * batches[i]) / times[i] - 1));
  engine.fast = LineThrough(batches, fast);
  engine.slow = LineThrough(batches, slow);
  return engine;
}

}  // namespace weir::predict
