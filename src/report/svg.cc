#include "report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "report/axis.h"
#include "report/escape.h"
#include "report/number.h"
#include "report/unit.h"

namespace weir::report {
namespace {

constexpr double kWidth = 760, kLeft = 70, kRight = 20, kTop = 14;
constexpr double kPlotHeight = 300, kLegendLine = 20;

// Told apart by people who see no colours too (Okabe and Ito, Color Universal Design, 2008); on both light
// and dark ground.
constexpr std::array<std::string_view, 7> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                   "#e69f00", "#56b4e9", "#8c8c8c"};
// After the seventh line the colours begin anew with another stroke.
constexpr std::array<std::string_view, 4> kStrokes{"none", "7 4", "2 3", "9 3 2 3"};

std::string_view Colour(size_t index) { return kColours[index % kColours.size()]; }
std::string_view Stroke(size_t index) { return kStrokes[index / kColours.size() % kStrokes.size()]; }

struct Extent {
  double highest = 0;      // of values and error bars, for the axis
  std::vector<double> xs;  // all of them, sorted, each once
};

Extent ExtentOf(const Chart& chart) {
  Extent extent;
  for (const Series& series : chart.series) {
    for (const Point& point : series.points) {
      extent.highest = std::max({extent.highest, point.value, point.high.value_or(point.value)});
      for (const Dot& dot : point.dots) extent.highest = std::max(extent.highest, dot.value);
      if (point.x) extent.xs.push_back(*point.x);
    }
  }
  std::ranges::sort(extent.xs);
  const auto [from, to] = std::ranges::unique(extent.xs);
  extent.xs.erase(from, to);
  if (!(extent.highest > 0)) extent.highest = 1;
  return extent;
}

std::string Text(double x, double y, std::string_view anchor, std::string_view text,
                 std::string_view more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more,
                     EscapeHtml(text));
}

// As much of a name as goes into `width`; the tip and the table have all of it. 6.4 is the width of a letter
// of 12 pixels, on the safe side of the average of sans-serif fonts.
std::string Fitting(std::string_view name, double width) {
  const auto most = static_cast<size_t>(width / 6.4);
  size_t letters = 0, end = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    if ((name[i] & 0xc0) == 0x80) continue;  // within a letter of several bytes
    if (++letters == most) end = i;
    if (letters > most) return std::string(name.substr(0, end)) + "…";
  }
  return std::string(name);
}

std::string LineFrom(double x1, double y1, double x2, double y2, std::string_view how) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2,
                     how);
}

std::string Tip(const Point& point, std::string_view unit, std::string_view where) {
  std::string tip = fmt::format("{}: {}{}{}", where, WithInterval(point.value, point.low, point.high),
                                unit.empty() ? "" : " ", unit);
  if (!point.note.empty()) tip += ", " + point.note;
  return fmt::format("<title>{}</title>", EscapeHtml(tip));
}

std::string Open(const Chart& chart, const std::string& id, double height) {
  size_t points = 0;
  for (const Series& series : chart.series) points += series.points.size();
  const std::string what = chart.kind == Chart::Kind::kLines
                               ? fmt::format("{} lines of {} over {}, {} points with error bars.",
                                             chart.series.size(), chart.y_label, chart.x_label, points)
                               : fmt::format("{} bars of {}, with error bars.", points, chart.y_label);
  return fmt::format(
      "<svg class=\"chart\" role=\"img\" aria-labelledby=\"{0}-title {0}-desc\" viewBox=\"0 0 {1:.0f} "
      "{2:.0f}\" "
      "xmlns=\"http://www.w3.org/2000/svg\">\n<title id=\"{0}-title\">{3}</title>\n<desc id=\"{0}-desc\">{4} "
      "The table "
      "below has the numbers. {5}</desc>\n",
      EscapeHtml(id), kWidth, height, EscapeHtml(chart.title), EscapeHtml(what), EscapeHtml(chart.note));
}

// An upright error bar with its feet.
std::string UprightError(double x, const Point& point, const Scale& y, std::string_view colour) {
  if (!point.low || !point.high) return "";
  const std::string how = fmt::format("stroke=\"{}\" stroke-width=\"1.4\"", colour);
  const double low = y(std::max(0.0, *point.low)), high = y(*point.high);
  return LineFrom(x, low, x, high, how) + LineFrom(x - 4, low, x + 4, low, how) +
         LineFrom(x - 4, high, x + 4, high, how);
}

std::string DrawLine(const Chart& chart, size_t index, const Scale& x, const Scale& y) {
  const Series& series = chart.series[index];
  const std::string_view colour = Colour(index);
  std::string path, marks;
  for (const Point& point : series.points) {
    if (!point.x) continue;
    const double at = x(*point.x), height = y(std::max(0.0, point.value));
    path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", at, height);
    marks += UprightError(at, point, y, colour);
    marks += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.4\" fill=\"{}\">{}</circle>\n", at,
                         height, colour,
                         Tip(point, chart.y_unit,
                             fmt::format("{}{}{} {}", series.name, series.name.empty() ? "" : ", ",
                                         chart.x_label, Number(*point.x))));
  }
  return fmt::format(
             "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\" "
             "stroke-dasharray=\"{}\"/>\n",
             path, colour, Stroke(index)) +
         marks;
}

std::string Legend(const Chart& chart, double top) {
  std::string svg;
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const double y = top + static_cast<double>(i) * kLegendLine;
    svg += LineFrom(
        kLeft, y, kLeft + 34, y,
        fmt::format("stroke=\"{}\" stroke-width=\"2.4\" stroke-dasharray=\"{}\"", Colour(i), Stroke(i)));
    svg += Text(kLeft + 42, y + 4, "start", Fitting(chart.series[i].name, kWidth - kRight - kLeft - 42));
  }
  return svg;
}

std::string DrawLines(const Chart& chart, const std::string& id) {
  const Extent extent = ExtentOf(chart);
  const std::vector<double> ticks = TicksFromZero(extent.highest);
  const double bottom = kTop + kPlotHeight;
  const bool legend = chart.series.size() > 1 || !chart.series.front().name.empty();
  const double height = bottom + 56 + (legend ? static_cast<double>(chart.series.size()) * kLegendLine : 0);
  const double first = extent.xs.empty() ? 0 : extent.xs.front(),
               last = extent.xs.empty() ? 1 : extent.xs.back();
  const Scale x(KindFor(extent.xs), first, last > first ? last : first + 1, kLeft + 20, kWidth - kRight - 20);
  const Scale y(Scale::Kind::kLinear, 0, ticks.back(), bottom, kTop);

  std::string svg = Open(chart, id, height);
  for (const double tick : ticks) {
    svg +=
        LineFrom(kLeft, y(tick), kWidth - kRight, y(tick), tick == 0 ? "class=\"axis\"" : "class=\"grid\"");
    svg += Text(kLeft - 8, y(tick) + 4, "end", Number(tick));
  }
  double taken = -1e9;  // numbers that would run into each other are left out
  for (const double value : TicksOver(extent.xs)) {
    svg += LineFrom(x(value), bottom, x(value), bottom + 5, "class=\"axis\"");
    if (x(value) - taken < 30) continue;
    svg += Text(x(value), bottom + 18, "middle", Number(value));
    taken = x(value);
  }
  svg += Text((kLeft + kWidth - kRight) / 2, bottom + 36, "middle", WithUnit(chart.x_label, chart.x_unit),
              " class=\"label\"");
  svg += fmt::format(
      "<text class=\"label\" text-anchor=\"middle\" transform=\"translate(14 {:.1f}) "
      "rotate(-90)\">{}</text>\n",
      kTop + kPlotHeight / 2, EscapeHtml(WithUnit(chart.y_label, chart.y_unit)));
  for (size_t i = 0; i < chart.series.size(); ++i) svg += DrawLine(chart, i, x, y);
  if (legend) svg += Legend(chart, bottom + 56);
  return svg + "</svg>\n";
}

// Lying bars, their names above them: names of configurations are long.
std::string DrawBar(const Point& point, std::string_view unit, size_t series, double top, const Scale& x) {
  constexpr double kThick = 14;
  const double value = x(std::max(0.0, point.value)), from = x(std::max(0.0, point.from.value_or(0)));
  const double begin = std::min(value, from), length = std::max(value, from), middle = top + 18 + kThick / 2;
  std::string svg = Text(kRight, top + 13, "start", Fitting(point.name, kWidth - 2 * kRight));
  svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\">{}</rect>\n",
                     begin, top + 18, std::max(0.5, length - begin), kThick, Colour(series),
                     Tip(point, unit, point.name));
  double end = length;
  if (point.low && point.high) {
    const double low = x(std::max(0.0, *point.low)), high = x(*point.high);
    end = std::max(end, high);
    svg += LineFrom(low, middle, high, middle, "class=\"error\"");
    svg += LineFrom(low, middle - 4, low, middle + 4, "class=\"error\"") +
           LineFrom(high, middle - 4, high, middle + 4, "class=\"error\"");
  }
  for (const Dot& dot : point.dots) {
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\" "
        "class=\"dot\"><title>{}{}</title></circle>\n",
        x(std::max(0.0, dot.value)), middle, dot.suspect ? "none" : "currentColor", Number(dot.value),
        dot.suspect ? ", SUSPECT" : "");
    end = std::max(end, x(std::max(0.0, dot.value)));
  }
  return svg + Text(end + 8, middle + 4, "start", Number(point.value));
}

std::string DrawBars(const Chart& chart, const std::string& id) {
  constexpr double kRow = 40;
  const std::vector<double> ticks = TicksFromZero(ExtentOf(chart).highest);
  size_t count = 0;
  for (const Series& series : chart.series) count += series.points.size();
  const double bottom = kTop + static_cast<double>(count) * kRow;
  const Scale x(Scale::Kind::kLinear, 0, ticks.back(), kRight,
                kWidth - 90);  // behind the longest its number stands
  std::string svg = Open(chart, id, bottom + 44);
  for (const double tick : ticks) {
    svg += LineFrom(x(tick), kTop, x(tick), bottom, tick == 0 ? "class=\"axis\"" : "class=\"grid\"");
    svg += Text(x(tick), bottom + 16, "middle", Number(tick));
  }
  size_t row = 0;
  for (size_t i = 0; i < chart.series.size(); ++i) {
    for (const Point& point : chart.series[i].points)
      svg += DrawBar(point, chart.y_unit, i, kTop + kRow * static_cast<double>(row++), x);
  }
  return svg +
         Text((kRight + kWidth - 90) / 2, bottom + 36, "middle", WithUnit(chart.y_label, chart.y_unit),
              " class=\"label\"") +
         "</svg>\n";
}

}  // namespace

std::string_view SeriesColour(size_t index) { return Colour(index); }

std::string ToSvg(const Chart& chart, const std::string& id) {
  if (chart.series.empty()) return "";
  return chart.kind == Chart::Kind::kLines ? DrawLines(chart, id) : DrawBars(chart, id);
}

}  // namespace weir::report
