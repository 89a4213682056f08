#include "study/figures.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "study/factor.h"

namespace weir::study {
namespace {

constexpr size_t kMostBars = 60;  // more are no longer read side by side

// Factors in which the configurations at `indices` differ, but `x`.
std::vector<std::string> Varying(const Design& design, const std::vector<size_t>& indices,
                                 std::string_view x) {
  std::vector<std::string> varying;
  for (const Factor& factor : Factors()) {
    if (factor.name == x) continue;
    std::set<std::string> levels;
    for (const size_t i : indices) {
      const Json& factors = design.configurations[i].factors;
      const auto level = factors.find(std::string(factor.name));
      levels.insert(level == factors.end() ? "" : DumpJson(*level));
    }
    if (levels.size() > 1) varying.emplace_back(factor.name);
  }
  return varying;
}

std::string SeriesName(const Json& factors, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    if (factors.contains(name)) text += (text.empty() ? "" : ", ") + NamedLevelText(name, factors[name]);
  }
  return text;
}

std::optional<ChartPoint> PointOf(const ConfigurationResult& result, const std::string& metric) {
  const study::Figures* const found = FindFigures(result, metric);
  if (found == nullptr) return std::nullopt;
  return ChartPoint{.mean = found->summary.mean,
                    .low = found->summary.low,
                    .high = found->summary.high,
                    .n = found->summary.n,
                    .suspect = result.tally.suspect};
}

std::vector<ChartSeries> Bars(const Design& design, const Analysis& analysis,
                              const std::vector<size_t>& indices, const std::string& metric) {
  ChartSeries bars{.name = metric};
  for (const size_t i : indices) {
    auto point = PointOf(analysis.configurations[i], metric);
    if (!point) continue;
    point->name = design.configurations[i].label;
    bars.points.push_back(std::move(*point));
  }
  return bars.points.empty() ? std::vector<ChartSeries>{} : std::vector{std::move(bars)};
}

// Nothing where two configurations fall on one point: the series are then too few to tell them apart.
std::optional<std::vector<ChartSeries>> Lines(const Design& design, const Analysis& analysis,
                                              const std::vector<size_t>& indices, const std::string& metric,
                                              const std::string& x, const std::vector<std::string>& by) {
  std::vector<ChartSeries> series;
  std::set<std::pair<std::string, double>> taken;
  for (const size_t i : indices) {
    const Json& factors = design.configurations[i].factors;
    if (!factors.contains(x) || !factors[x].is_number()) continue;
    auto point = PointOf(analysis.configurations[i], metric);
    if (!point) continue;
    point->x = factors[x].get<double>();
    const std::string name = SeriesName(factors, by);
    if (!taken.emplace(name, *point->x).second) return std::nullopt;
    auto line = std::ranges::find(series, name, &ChartSeries::name);
    if (line == series.end()) line = series.insert(series.end(), {.name = name});
    line->points.push_back(std::move(*point));
  }
  for (ChartSeries& line : series)
    std::ranges::sort(line.points, {}, [](const ChartPoint& p) { return *p.x; });
  return series;
}

ChartData Draw(const Figure& figure, const StudyFile& study, const Design& design, const Analysis& analysis) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < design.configurations.size(); ++i) {
    if (Shows(figure.where, design.configurations[i].factors)) indices.push_back(i);
  }
  ChartData chart{.title = figure.title,
                  .metric = figure.metric.empty() ? study.objective.metric : figure.metric,
                  .x = figure.x.value_or("")};
  if (!figure.x) {
    chart.series = Bars(design, analysis, indices, chart.metric);
    return chart;
  }
  const std::vector<std::string> all = Varying(design, indices, chart.x);
  auto lines =
      Lines(design, analysis, indices, chart.metric, chart.x, figure.series.empty() ? all : figure.series);
  if (!lines) lines = Lines(design, analysis, indices, chart.metric, chart.x, all);
  if (lines) chart.series = std::move(*lines);
  return chart;
}

// The factor of numbers with the most levels.
std::optional<std::string> BestX(const Design& design) {
  std::optional<std::string> best;
  size_t most = 1;
  for (const Factor& factor : Factors()) {
    std::set<double> levels;
    for (const Configuration& one : design.configurations) {
      const auto level = one.factors.find(std::string(factor.name));
      if (level != one.factors.end() && level->is_number()) levels.insert(level->get<double>());
    }
    if (levels.size() > most) {
      most = levels.size();
      best = factor.name;
    }
  }
  return best;
}

std::vector<Figure> Usual(const StudyFile& study, const Design& design) {
  std::vector<Figure> figures;
  if (const auto x = BestX(design)) {
    std::string words = *x;
    std::ranges::replace(words, '_', ' ');
    figures.push_back({.title = study.objective.metric + " against " + words, .x = x});
  }
  if (design.configurations.size() <= kMostBars)
    figures.push_back({.title = study.objective.metric + ", all configurations side by side"});
  return figures;
}

}  // namespace

bool Shows(const std::vector<LevelLists>& where, const Json& factors) {
  const auto fits = [&factors](const LevelLists& lists) {
    return std::ranges::all_of(lists, [&factors](const FactorLevels& one) {
      const auto level = factors.find(one.factor);
      return level == factors.end() || std::ranges::find(one.levels, *level) != one.levels.end();
    });
  };
  return where.empty() || std::ranges::any_of(where, fits);
}

std::vector<ChartData> DrawFigures(const StudyFile& study, const Design& design, const Analysis& analysis) {
  std::vector<ChartData> charts;
  for (const Figure& figure : study.figures.empty() ? Usual(study, design) : study.figures) {
    ChartData chart = Draw(figure, study, design, analysis);
    if (!chart.series.empty()) charts.push_back(std::move(chart));
  }
  return charts;
}

Json ToJson(const ChartData& chart) {
  Json json{{"title", chart.title}, {"metric", chart.metric}, {"kind", chart.x.empty() ? "bars" : "lines"}};
  if (!chart.x.empty()) json["x"] = chart.x;
  json["series"] = Json::array();
  for (const ChartSeries& series : chart.series) {
    Json points = Json::array();
    for (const ChartPoint& point : series.points) {
      Json one = Json::object();
      PutIfAny(one, "x", point.x);
      if (!point.name.empty()) one["name"] = point.name;
      one["mean"] = point.mean;
      PutIfAny(one, "low", point.low);
      PutIfAny(one, "high", point.high);
      one["n"] = point.n;
      one["suspect"] = point.suspect;
      points.push_back(std::move(one));
    }
    json["series"].push_back({{"name", series.name}, {"points", std::move(points)}});
  }
  return json;
}

}  // namespace weir::study
