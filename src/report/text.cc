#include "report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "report/chart_table.h"

namespace weir::report {
namespace {

size_t Columns(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

// Lines after the first begin with `indent` spaces.
std::string Wrap(const std::string& text, size_t width, size_t indent) {
  std::string out, word;
  size_t column = 0;
  std::istringstream words(text);
  while (words >> word) {
    const size_t length = Columns(word);
    if (column > 0 && column + 1 + length > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += length;
  }
  return out + "\n";
}

std::string Text(const Paragraph& paragraph, size_t width) {
  if (paragraph.tone == Paragraph::Tone::kCommand) return "  " + paragraph.text + "\n";
  const bool warns =
      paragraph.tone == Paragraph::Tone::kWarning || paragraph.tone == Paragraph::Tone::kFailure;
  return Wrap(warns ? "! " + paragraph.text : paragraph.text, width, 0);
}

std::string Text(const List& list, size_t width) {
  std::string out;
  for (const std::string& item : list.items) out += "  - " + Wrap(item, width - 4, 4);
  return out;
}

std::string Row(const std::vector<std::string>& cells, const std::vector<size_t>& widths,
                size_t text_columns) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string pad(widths[i] - Columns(cells[i]), ' ');
    if (i > 0) line += "  ";
    line += i < text_columns ? cells[i] + pad : pad + cells[i];
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string Text(const Table& table, size_t width) {
  std::vector<size_t> widths;
  for (const std::string& column : table.columns) widths.push_back(Columns(column));
  for (const auto& row : table.rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Columns(row[i]));
  }
  std::string out = table.caption.empty() ? "" : Wrap(table.caption, width, 0);
  out += Row(table.columns, widths, table.text_columns);
  for (const auto& row : table.rows) out += Row(row, widths, table.text_columns);
  for (const std::string& note : table.notes) out += Wrap(note, width, 2);
  return out;
}

std::string Text(const Chart& chart, size_t width) { return Text(ToTable(chart), width); }

}  // namespace

std::string ToText(const Section& section, size_t width) {
  std::string out;
  for (const Block& block : section.blocks) {
    if (!out.empty()) out += "\n";
    out += std::visit([&](const auto& one) { return Text(one, width); }, block);
  }
  return out;
}

}  // namespace weir::report
