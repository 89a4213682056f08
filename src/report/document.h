// The content of a report, apart from how it looks: sections of text, tables and charts as data.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace weir::report {

struct Paragraph {
  enum class Tone { kPlain, kAnswer, kWarning, kFailure, kCommand };
  std::string text;  // plain text, UTF-8; every format escapes it
  Tone tone = Tone::kPlain;
};

struct List {
  std::vector<std::string> items;
};

// Every row has as many cells as there are columns.
struct Table {
  std::string caption;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  size_t text_columns = 1;         // the first so many hold words and stand left; the others numbers
  std::vector<std::string> notes;  // below it
};

struct Dot {
  double value = 0;
  bool suspect = false;
};

struct Point {
  std::optional<double> x;  // of a line's
  std::string name;         // of a bar's
  double value = 0;
  std::optional<double> low, high;  // the error bar
  std::string note;                 // "20 trials"
  std::optional<double> from;       // of a bar: where it begins; absent: at 0
  std::vector<Dot> dots;            // single trials, where they are few
};

struct Series {
  std::string name;
  std::vector<Point> points;
};

struct Chart {
  enum class Kind { kLines, kBars };
  Kind kind = Kind::kLines;
  std::string title;
  std::string x_label, x_unit;  // of lines
  std::string y_label, y_unit;  // bars: of their length
  std::vector<Series> series;   // lines: points by rising x; bars: groups, a bar for each point
  std::string note;             // what the error bars are
};

using Block = std::variant<Paragraph, List, Table, Chart>;

struct Section {
  std::string title;
  std::vector<Block> blocks;
  bool folded = false;  // in HTML: opened by a click
};

struct Document {
  std::string title;
  std::string subtitle;
  std::vector<Section> sections;
};

}  // namespace weir::report
