#include "report/chart_table.h"

#include "report/number.h"
#include "report/unit.h"

namespace weir::report {

Table ToTable(const Chart& chart) {
  const bool lines = chart.kind == Chart::Kind::kLines;
  Table table{.caption = chart.title, .text_columns = 1};
  table.columns = {"", WithUnit(chart.y_label, chart.y_unit), "low", "high", ""};
  if (lines) table.columns.insert(table.columns.begin() + 1, WithUnit(chart.x_label, chart.x_unit));
  const auto number = [](const std::optional<double>& value) { return value ? Number(*value) : "-"; };
  for (const Series& series : chart.series) {
    for (const Point& point : series.points) {
      std::vector<std::string> row{lines ? series.name : point.name};
      if (lines) row.push_back(number(point.x));
      for (const std::optional<double>& value : {std::optional(point.value), point.low, point.high})
        row.push_back(number(value));
      row.push_back(point.note);
      table.rows.push_back(std::move(row));
    }
  }
  if (!chart.note.empty()) table.notes.push_back(chart.note);
  return table;
}

}  // namespace weir::report
