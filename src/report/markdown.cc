#include "report/markdown.h"

#include <fmt/format.h>

#include "report/chart_table.h"
#include "report/escape.h"

namespace weir::report {
namespace {

// Longer than any run of backticks inside.
std::string Fence(std::string_view text) {
  std::string fence = "```";
  while (text.find(fence) != std::string_view::npos) fence += '`';
  return fence;
}

std::string Markdown(const Paragraph& paragraph) {
  const std::string text = EscapeMarkdown(paragraph.text);
  switch (paragraph.tone) {
    case Paragraph::Tone::kPlain:
      return text + "\n\n";
    case Paragraph::Tone::kAnswer:
      return fmt::format("**{}**\n\n", text);
    case Paragraph::Tone::kWarning:
    case Paragraph::Tone::kFailure:
      return fmt::format("> {}\n\n", text);
    case Paragraph::Tone::kCommand:
      break;
  }
  const std::string fence = Fence(paragraph.text);
  return fmt::format("{0}\n{1}\n{0}\n\n", fence, paragraph.text);
}

std::string Markdown(const List& list) {
  std::string out;
  for (const std::string& item : list.items) out += fmt::format("- {}\n", EscapeMarkdown(item));
  return out + "\n";
}

std::string Row(const std::vector<std::string>& cells) {
  std::string out = "|";
  for (const std::string& cell : cells) out += fmt::format(" {} |", EscapeMarkdown(cell));
  return out + "\n";
}

std::string Markdown(const Table& table) {
  std::string out;
  if (!table.caption.empty()) out += fmt::format("*{}*\n\n", EscapeMarkdown(table.caption));
  out += Row(table.columns) + "|";
  for (size_t i = 0; i < table.columns.size(); ++i) out += i < table.text_columns ? " --- |" : " ---: |";
  out += "\n";
  for (const auto& row : table.rows) out += Row(row);
  out += "\n";
  for (const std::string& note : table.notes) out += EscapeMarkdown(note) + "\n\n";
  return out;
}

std::string Markdown(const Chart& chart) { return Markdown(ToTable(chart)); }

}  // namespace

std::string ToMarkdown(const Document& document) {
  std::string out = fmt::format("# {}\n\n", EscapeMarkdown(document.title));
  if (!document.subtitle.empty()) out += EscapeMarkdown(document.subtitle) + "\n\n";
  for (const Section& section : document.sections) {
    out += fmt::format("## {}\n\n", EscapeMarkdown(section.title));
    for (const Block& block : section.blocks)
      out += std::visit([](const auto& one) { return Markdown(one); }, block);
  }
  return out;
}

}  // namespace weir::report
