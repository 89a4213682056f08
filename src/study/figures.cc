#include "study/figures.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "study/factor.h"

namespace weir::study {
namespace {

constexpr int64_t kMostDots = 10;  // trials drawn one by one; more hide each other
constexpr size_t kMostMemoryBars = 12;
constexpr size_t kMostBars = 60;  // more are no longer read side by side

// Factors in which the configurations at `indices` differ, but `x`.
std::vector<std::string> Varying(const Design& design, const std::vector<size_t>& indices,
                                 std::string_view x) {
  std::map<std::string, std::set<std::string>> named;  // the levels that the study spells out
  for (const Combination& one : design.combinations) {
    for (const auto& [factor, level] : one.factors.items()) named[factor].insert(DumpJson(level));
  }
  std::set<std::string>
      spelled;  // one that only a rule changes, such as in_flight in sync mode, names no line
  for (const auto& [factor, levels] : named) {
    if (levels.size() > 1) spelled.insert(factor);
  }
  std::vector<std::string> varying;
  for (const Factor& factor : Factors()) {
    if (factor.name == x) continue;
    std::set<std::string> levels;
    for (const size_t i : indices) {
      const Json& factors = design.configurations[i].factors;
      const auto level = factors.find(std::string(factor.name));
      levels.insert(level == factors.end() ? "" : DumpJson(*level));
    }
    if (levels.size() > 1 && spelled.contains(std::string(factor.name))) varying.emplace_back(factor.name);
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

// Draws the metrics of the study's configurations.
class Drawer {
 public:
  Drawer(const StudyFile& study, const Design& design, const Analysis& analysis, const Measured& measured)
      : study_(study), design_(design), analysis_(analysis), measured_(measured) {}

  std::vector<ChartData> Draw(const Figure& figure) const;

 private:
  std::optional<ChartPoint> PointOf(size_t index, const std::string& metric) const;
  std::vector<ChartSeries> Bars(const std::vector<size_t>& indices, const std::string& metric) const;
  std::optional<std::vector<ChartSeries>> Lines(const std::vector<size_t>& indices, const std::string& metric,
                                                const std::string& x,
                                                const std::vector<std::string>& by) const;
  void AddLines(const ChartData& chart, const std::vector<size_t>& indices, std::vector<std::string> by,
                std::vector<ChartData>& charts) const;

  const StudyFile& study_;
  const Design& design_;
  const Analysis& analysis_;
  const Measured& measured_;
};

std::optional<ChartPoint> Drawer::PointOf(size_t index, const std::string& metric) const {
  const ConfigurationResult& result = analysis_.configurations[index];
  const study::Figures* const found = FindFigures(result, metric);
  if (found == nullptr) return std::nullopt;
  ChartPoint point{.mean = found->summary.mean,
                   .low = found->summary.low,
                   .high = found->summary.high,
                   .n = found->summary.n,
                   .suspect = result.tally.suspect};
  if (point.n > kMostDots) return point;
  for (const Measured::Value& one : measured_.TrialsOf(index, metric))
    point.trials.push_back(
        {.value = one.value, .suspect = one.played->record.verdict.standing == results::Standing::kSuspect});
  return point;
}

// The best first; real engines and emulated accelerators are series of their own.
std::vector<ChartSeries> Drawer::Bars(const std::vector<size_t>& indices, const std::string& metric) const {
  std::vector<ChartSeries> groups{{.name = "real engines"}, {.name = "emulated accelerators"}};
  for (const size_t i : indices) {
    auto point = PointOf(i, metric);
    if (!point) continue;
    point->name = design_.configurations[i].label;
    groups[IsEmulated(design_.configurations[i]) ? 1 : 0].points.push_back(std::move(*point));
  }
  std::erase_if(groups, [](const ChartSeries& one) { return one.points.empty(); });
  if (groups.size() == 1) groups[0].name = metric;
  const bool higher = metric != study_.objective.metric || study_.objective.better == Better::kHigher;
  for (ChartSeries& group : groups) {
    std::ranges::stable_sort(group.points, [higher](const ChartPoint& a, const ChartPoint& b) {
      return higher ? a.mean > b.mean : a.mean < b.mean;
    });
  }
  return groups;
}

// Returns nullopt where two configurations fall on one point: the series are then too few to tell them apart.
std::optional<std::vector<ChartSeries>> Drawer::Lines(const std::vector<size_t>& indices,
                                                      const std::string& metric, const std::string& x,
                                                      const std::vector<std::string>& by) const {
  std::vector<ChartSeries> series;
  std::set<std::pair<std::string, double>> taken;
  for (const size_t i : indices) {
    const Json& factors = design_.configurations[i].factors;
    if (!factors.contains(x) || !factors[x].is_number()) continue;
    auto point = PointOf(i, metric);
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

// Splits by one factor after another until the lines are few enough to tell apart.
void Drawer::AddLines(const ChartData& chart, const std::vector<size_t>& indices, std::vector<std::string> by,
                      std::vector<ChartData>& charts) const {
  const auto lines = Lines(indices, chart.metric, chart.x, by);
  if (!lines || lines->empty()) return;
  if (lines->size() <= kMostSeries || by.empty()) {
    charts.push_back(chart);
    charts.back().series = *lines;
    return;
  }
  const std::string factor = by.front();
  by.erase(by.begin());
  std::vector<std::pair<std::string, std::vector<size_t>>> groups;
  for (const size_t i : indices) {
    const Json& factors = design_.configurations[i].factors;
    const std::string level = factors.contains(factor) ? NamedLevelText(factor, factors[factor]) : "";
    auto group = std::ranges::find(groups, level, &std::pair<std::string, std::vector<size_t>>::first);
    if (group == groups.end()) group = groups.emplace(groups.end(), level, std::vector<size_t>{});
    group->second.push_back(i);
  }
  for (const auto& [level, members] : groups) {
    ChartData part = chart;
    if (!level.empty()) part.title += ": " + level;
    AddLines(part, members, by, charts);
  }
}

std::vector<ChartData> Drawer::Draw(const Figure& figure) const {
  std::vector<size_t> indices;
  for (size_t i = 0; i < design_.configurations.size(); ++i) {
    const Configuration& one = design_.configurations[i];
    if (!one.waterfall_only && Shows(figure.where, one.factors)) indices.push_back(i);
  }
  ChartData chart{.title = figure.title,
                  .metric = figure.metric.empty() ? study_.objective.metric : figure.metric,
                  .x = figure.x.value_or("")};
  if (!figure.x) {
    chart.series = Bars(indices, chart.metric);
    return {std::move(chart)};
  }
  const std::vector<std::string> all = Varying(design_, indices, chart.x);
  std::vector<ChartData> charts;
  if (!figure.series.empty()) AddLines(chart, indices, figure.series, charts);
  if (charts.empty()) AddLines(chart, indices, all, charts);
  return charts;
}

// Returns the factor of numbers with the most levels that the study varies by itself, which excludes one that
// only a rule changes.
std::optional<std::string> BestX(const Design& design) {
  std::optional<std::string> best;
  size_t most = 1;
  for (const Factor& factor : Factors()) {
    std::set<double> levels;
    for (const Combination& one : design.combinations) {
      const auto level = one.factors.find(std::string(factor.name));
      if (one.configuration && level != one.factors.end() && level->is_number())
        levels.insert(level->get<double>());
    }
    if (levels.size() > most) {
      most = levels.size();
      best = factor.name;
    }
  }
  return best;
}

std::string InWords(std::string name) {
  if (name == "throughput_images_per_s") return "Throughput";
  std::ranges::replace_if(name, [](char c) { return c == '_' || c == '.'; }, ' ');
  return name;
}

std::vector<Figure> Usual(const StudyFile& study, const Design& design) {
  std::vector<Figure> figures;
  const std::string objective = InWords(study.objective.metric);
  if (const auto x = BestX(design))
    figures.push_back({.title = objective + " against " + InWords(*x), .x = x});
  if (design.configurations.size() <= kMostBars)
    figures.push_back({.title = objective + " of all configurations"});
  return figures;
}

}  // namespace

std::vector<size_t> BestFirst(const Design& design, const Analysis& analysis, const std::string& metric) {
  std::vector<size_t> order;
  const auto add = [&](size_t index) {
    const bool fits = !design.configurations[index].waterfall_only &&
                      FindFigures(analysis.configurations[index], metric) != nullptr;
    if (fits && std::ranges::find(order, index) == order.end()) order.push_back(index);
  };
  for (const Answer& answer : analysis.answers.answers) {
    add(answer.best);
    for (const Comparison& other : answer.others) add(other.configuration);
  }
  for (size_t i = 0; i < design.configurations.size(); ++i) add(i);
  return order;
}

bool Shows(const std::vector<LevelLists>& where, const Json& factors) {
  const auto fits = [&factors](const LevelLists& lists) {
    return std::ranges::all_of(lists, [&factors](const FactorLevels& one) {
      const auto level = factors.find(one.factor);
      return level == factors.end() || std::ranges::find(one.levels, *level) != one.levels.end();
    });
  };
  return where.empty() || std::ranges::any_of(where, fits);
}

std::vector<ChartData> DrawFigures(const StudyFile& study, const Design& design, const Analysis& analysis,
                                   const Measured& measured) {
  const Drawer drawer(study, design, analysis, measured);
  std::vector<ChartData> charts;
  for (const Figure& figure : study.figures.empty() ? Usual(study, design) : study.figures) {
    for (ChartData& chart : drawer.Draw(figure)) {
      if (!chart.series.empty()) charts.push_back(std::move(chart));
    }
  }
  return charts;
}

std::vector<ChartData> DrawMemory(const Design& design, const Analysis& analysis) {
  const std::string metric = "resources.process_memory_bytes.max";
  const std::vector<size_t> order = BestFirst(design, analysis, metric);
  const auto point = [&](size_t i) {
    const stats::Summary& summary = FindFigures(analysis.configurations[i], metric)->summary;
    return ChartPoint{.mean = summary.mean,
                      .low = summary.low,
                      .high = summary.high,
                      .n = summary.n,
                      .suspect = analysis.configurations[i].tally.suspect};
  };
  std::set<double> depths;
  for (const Combination& one : design.combinations) {
    const auto level = one.factors.find("in_flight");
    if (level != one.factors.end() && level->is_number()) depths.insert(level->get<double>());
  }
  ChartData chart{.title = "Memory of the client's processes, greatest", .metric = metric};
  if (depths.size() > 1) {
    chart.title = "Memory of the client's processes against batches in flight";
    chart.x = "in_flight";
    for (const size_t i : order) {
      const Json& factors = design.configurations[i].factors;
      if (!factors.contains("in_flight")) continue;
      const std::string name = SeriesName(factors, Varying(design, order, "in_flight"));
      auto line = std::ranges::find(chart.series, name, &ChartSeries::name);
      if (line == chart.series.end()) {
        if (chart.series.size() == kMostSeries) continue;
        line = chart.series.insert(chart.series.end(), {.name = name});
      }
      line->points.push_back(point(i));
      line->points.back().x = factors["in_flight"].get<double>();
    }
    std::erase_if(chart.series, [](const ChartSeries& one) { return one.points.size() < 2; });
    for (ChartSeries& line : chart.series)
      std::ranges::sort(line.points, {}, [](const ChartPoint& p) { return *p.x; });
  } else {
    chart.series.push_back({.name = metric});
    for (const size_t i : order) {
      if (chart.series[0].points.size() == kMostMemoryBars) break;
      chart.series[0].points.push_back(point(i));
      chart.series[0].points.back().name = design.configurations[i].label;
    }
    if (chart.series[0].points.empty()) chart.series.clear();
  }
  if (chart.series.empty()) return {};
  return {std::move(chart)};
}

std::vector<ChartData> DrawStability(const Measured& measured, const std::string& metric) {
  ChartData chart{
      .title = "The reference over the blocks: how still the machine held", .metric = metric, .x = "block"};
  for (const auto& [role, name] :
       {std::pair{Role::kReferenceStart, "at the block's start"},
        std::pair{Role::kReferenceMiddle, "in its middle"}, std::pair{Role::kReferenceEnd, "at its end"}}) {
    ChartSeries series{.name = name};
    for (const auto& [block, value] : measured.References(role, metric))
      series.points.push_back({.x = block + 1, .mean = value, .n = 1});
    if (series.points.size() > 1) chart.series.push_back(std::move(series));
  }
  if (chart.series.empty()) return {};
  return {std::move(chart)};
}

}  // namespace weir::study
