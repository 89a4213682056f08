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

Json BlockJson(const Paragraph& paragraph) {
  constexpr const char* kTones[] = {"plain", "answer", "warning", "command"};
  return {
      {"kind", "paragraph"}, {"tone", kTones[static_cast<int>(paragraph.tone)]}, {"text", paragraph.text}};
}

Json BlockJson(const List& list) { return {{"kind", "list"}, {"items", list.items}}; }

Json BlockJson(const Table& table) {
  return {{"kind", "table"},
          {"caption", table.caption},
          {"columns", table.columns},
          {"rows", table.rows},
          {"notes", table.notes}};
}

Json BlockJson(const Chart& chart) {
  Json json{{"kind", chart.kind == Chart::Kind::kLines ? "lines" : "bars"},
            {"title", chart.title},
            {"x_label", chart.x_label},
            {"y_label", chart.y_label},
            {"note", chart.note},
            {"series", Json::array()}};
  for (const Series& series : chart.series) {
    Json points = Json::array();
    for (const Point& point : series.points) {
      Json one = Json::object();
      PutIfAny(one, "x", point.x);
      if (!point.name.empty()) one["name"] = point.name;
      one["value"] = point.value;
      PutIfAny(one, "low", point.low);
      PutIfAny(one, "high", point.high);
      if (!point.note.empty()) one["note"] = point.note;
      points.push_back(std::move(one));
    }
    json["series"].push_back({{"name", series.name}, {"points", std::move(points)}});
  }
  return json;
}

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

Json ToJson(const Document& document) {
  Json json{{"title", document.title}, {"subtitle", document.subtitle}, {"sections", Json::array()}};
  for (const Section& section : document.sections) {
    Json blocks = Json::array();
    for (const Block& block : section.blocks)
      blocks.emplace_back(std::visit([](const auto& one) { return BlockJson(one); }, block));
    json["sections"].push_back({{"title", section.title}, {"blocks", std::move(blocks)}});
  }
  return json;
}

}  // namespace weir::report
