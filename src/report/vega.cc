#include "report/vega.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/csv.h"
#include "report/axis.h"
#include "report/number.h"
#include "report/svg.h"
#include "report/unit.h"

#ifdef WEIR_VEGA_BUNDLE
// The assembler puts the file's bytes into the program as they are.
asm(".section .rodata\n"
    ".global weir_vega_bundle_begin\nweir_vega_bundle_begin:\n.incbin \"" WEIR_VEGA_BUNDLE
    "\"\n"
    ".global weir_vega_bundle_end\nweir_vega_bundle_end:\n.byte 0\n.previous\n");
extern "C" const char weir_vega_bundle_begin[], weir_vega_bundle_end[];
#endif

namespace weir::report {
namespace {

std::string SeriesOf(const Series& series) { return series.name; }

Json DataOf(const Chart& chart) {
  Json values = Json::array();
  int64_t order = 0;
  for (const Series& series : chart.series) {
    for (const Point& point : series.points) {
      Json row{
          {"series", SeriesOf(series)}, {"value", point.value}, {"note", point.note}, {"order", order++}};
      if (!point.name.empty()) row["name"] = point.name;
      PutIfAny(row, "x", point.x);
      PutIfAny(row, "from", point.from);
      PutIfAny(row, "low", point.low ? std::optional(std::max(0.0, *point.low)) : std::nullopt);
      PutIfAny(row, "high", point.high);
      row["text"] = WithInterval(point.value, point.low, point.high);
      values.push_back(std::move(row));
    }
  }
  return values;
}

Json DotsOf(const Chart& chart) {
  Json values = Json::array();
  for (const Series& series : chart.series) {
    for (const Point& point : series.points) {
      for (const Dot& dot : point.dots) {
        Json row{{"series", SeriesOf(series)},
                 {"value", dot.value},
                 {"verdict", dot.suspect ? "SUSPECT" : "VALID"}};
        if (!point.name.empty()) row["name"] = point.name;
        PutIfAny(row, "x", point.x);
        values.push_back(std::move(row));
      }
    }
  }
  return values;
}

Json Colours(const Chart& chart) {
  Json domain = Json::array(), range = Json::array();
  for (size_t i = 0; i < chart.series.size(); ++i) {
    domain.push_back(SeriesOf(chart.series[i]));
    range.push_back(SeriesColour(i));
  }
  return {{"domain", domain}, {"range", range}};
}

Json Quantitative(const char* field, const std::string& title) {
  return {{"field", field}, {"type", "quantitative"}, {"title", title}};
}

// A dot for each trial; hollow where it is SUSPECT.
Json DotLayer(const Chart& chart, const char* where, const Json& place) {
  Json layer{{"data", {{"values", DotsOf(chart)}}},
             {"mark", {{"type", "point"}, {"size", 40}, {"strokeWidth", 1.5}}},
             {"encoding",
              {{"shape",
                {{"field", "verdict"},
                 {"type", "nominal"},
                 {"legend", nullptr},
                 {"scale", {{"domain", {"VALID", "SUSPECT"}}, {"range", {"circle", "cross"}}}}}},
               {"tooltip", {{{"field", "value"}, {"title", "trial"}}, {{"field", "verdict"}}}}}}};
  layer["encoding"].update(place);
  layer["encoding"][where] = Quantitative("value", WithUnit(chart.y_label, chart.y_unit));
  return layer;
}

// A layer without a mark would make the script warn of a scale without an extent.
bool HasIntervals(const Chart& chart) {
  return std::ranges::any_of(chart.series, [](const Series& series) {
    return std::ranges::any_of(series.points, [](const Point& point) { return point.low && point.high; });
  });
}

bool HasDots(const Chart& chart) {
  return std::ranges::any_of(chart.series, [](const Series& series) {
    return std::ranges::any_of(series.points, [](const Point& point) { return !point.dots.empty(); });
  });
}

Json LinesSpec(const Chart& chart) {
  const std::string y_title = WithUnit(chart.y_label, chart.y_unit);
  std::vector<double> xs;
  for (const Series& series : chart.series) {
    for (const Point& point : series.points) {
      if (point.x) xs.push_back(*point.x);
    }
  }
  Json x = Quantitative("x", WithUnit(chart.x_label, chart.x_unit));
  if (KindFor(xs) == Scale::Kind::kLogarithmic) x["scale"] = {{"type", "log"}, {"base", 2}};
  std::ranges::sort(xs);
  const auto [from, to] = std::ranges::unique(xs);
  xs.erase(from, to);
  x["axis"] = {{"values", TicksOver(xs)}, {"format", "~g"}, {"labelOverlap", true}};
  Json y = Quantitative("value", y_title);
  y["scale"] = {{"zero", true}};
  const Json tooltip{{{"field", "series"}, {"title", "series"}},
                     {{"field", "x"}, {"title", chart.x_label}},
                     {{"field", "text"}, {"title", y_title}},
                     {{"field", "note"}, {"title", "trials"}}};
  const Json opacity{{"condition", {{"param", "pick"}, {"value", 1}}}, {"value", 0.12}};
  const Json colour{
      {"field", "series"},
      {"type", "nominal"},
      {"title", nullptr},
      {"scale", Colours(chart)},
      {"legend", chart.series.size() > 1 ? Json{{"orient", "bottom"}, {"columns", 1}, {"labelLimit", 600}}
                                         : Json(nullptr)}};
  Json layers = Json::array();
  layers.push_back(
      {{"params",
        {{{"name", "pick"}, {"select", {{"type", "point"}, {"fields", {"series"}}}}, {"bind", "legend"}}}},
       {"mark", {{"type", "line"}, {"point", {{"size", 50}}}}},
       {"encoding", {{"y", y}, {"tooltip", tooltip}, {"opacity", opacity}}}});
  if (HasIntervals(chart))
    layers.push_back(
        {{"transform", {{{"filter", "isValid(datum.low) && isValid(datum.high)"}}}},
         {"mark", {{"type", "rule"}, {"strokeWidth", 1.5}}},
         {"encoding",
          {{"y", Quantitative("low", y_title)}, {"y2", {{"field", "high"}}}, {"opacity", opacity}}}});
  if (HasDots(chart)) layers.push_back(DotLayer(chart, "y", {{"x", x}}));
  return {{"encoding", {{"x", x}, {"color", colour}}}, {"layer", std::move(layers)}, {"height", 300}};
}

Json BarsSpec(const Chart& chart) {
  const std::string title = WithUnit(chart.y_label, chart.y_unit);
  size_t count = 0;
  for (const Series& series : chart.series) count += series.points.size();
  const Json place{{"y",
                    {{"field", "name"},
                     {"type", "nominal"},
                     {"sort", nullptr},
                     {"title", nullptr},
                     {"axis", {{"labelLimit", 260}}}}}};
  const Json tooltip{{{"field", "name"}, {"title", "configuration"}},
                     {{"field", "text"}, {"title", title}},
                     {{"field", "note"}, {"title", "note"}}};
  Json length = Quantitative("value", title);
  length["axis"] = {{"labelOverlap", true}};
  Json bar{{"mark", {{"type", "bar"}, {"height", 14}, {"opacity", HasDots(chart) ? 0.6 : 1.0}}},
           {"encoding",
            {{"x", length},
             {"tooltip", tooltip},
             {"color",
              {{"field", "series"},
               {"type", "nominal"},
               {"title", nullptr},
               {"scale", Colours(chart)},
               {"legend", chart.series.size() > 1 ? Json{{"orient", "bottom"}} : Json(nullptr)}}}}}};
  const bool floats = std::ranges::any_of(chart.series, [](const Series& series) {
    return std::ranges::any_of(series.points, [](const Point& point) { return point.from.has_value(); });
  });
  if (floats) bar["encoding"]["x2"] = {{"field", "from"}};
  Json layers = Json::array({std::move(bar)});
  if (HasIntervals(chart))
    layers.push_back({{"transform", {{{"filter", "isValid(datum.low) && isValid(datum.high)"}}}},
                      {"mark", {{"type", "rule"}, {"strokeWidth", 1.5}}},
                      {"encoding", {{"x", Quantitative("low", title)}, {"x2", {{"field", "high"}}}}}});
  if (HasDots(chart)) layers.push_back(DotLayer(chart, "x", place));
  return {{"encoding", place},
          {"layer", std::move(layers)},
          {"height", std::max<int64_t>(60, 26 * static_cast<int64_t>(count))}};
}

}  // namespace

Json ToVegaLite(const Chart& chart) {
  Json spec = chart.kind == Chart::Kind::kLines ? LinesSpec(chart) : BarsSpec(chart);
  spec["$schema"] = "https://vega.github.io/schema/vega-lite/v6.json";
  spec["description"] = fmt::format("{}. {} The table below has the numbers.", chart.title, chart.note);
  spec["width"] = "container";
  spec["background"] = nullptr;
  spec["autosize"] = {{"type", "fit-x"}, {"contains", "padding"}};
  spec["data"] = {{"values", DataOf(chart)}};
  return spec;
}

std::string_view VegaBundle() {
#ifdef WEIR_VEGA_BUNDLE
  return {weir_vega_bundle_begin, static_cast<size_t>(weir_vega_bundle_end - weir_vega_bundle_begin)};
#else
  return {};
#endif
}

std::string ChartCsv(const Chart& chart) {
  const bool lines = chart.kind == Chart::Kind::kLines;
  std::string csv =
      CsvLine(std::vector<std::string>{"series", lines ? "x" : "name", "value", "low", "high", "note"});
  const auto number = [](const std::optional<double>& value) {
    return value ? Exact(*value) : std::string();
  };
  for (const Series& series : chart.series) {
    for (const Point& point : series.points)
      csv += CsvLine(std::vector<std::string>{series.name, lines ? number(point.x) : point.name,
                                              Exact(point.value), number(point.low), number(point.high),
                                              point.note});
  }
  return csv;
}

}  // namespace weir::report
