#include "report/html.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <variant>

#include "report/chart_table.h"
#include "report/escape.h"
#include "report/svg.h"
#include "report/vega.h"

namespace weir::report {
namespace {

// The policy makes the browser hold what the page promises: it loads nothing. Its only scripts are its own.
constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'{}">
)";

// Draws each chart in the place of its static drawing. Expressions are interpreted, not compiled: the policy
// allows no other code. Colours come from the page, light or dark; print has the static drawings.
constexpr std::string_view kDraw = R"js(
(() => {
  const draw = () => {
    const css = getComputedStyle(document.documentElement);
    const ink = css.getPropertyValue("--ink").trim(), line = css.getPropertyValue("--line").trim();
    const theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    for (const place of document.querySelectorAll("[data-chart]")) {
      const spec = JSON.parse(document.getElementById(place.dataset.chart).textContent);
      const axis = {labelColor: ink, titleColor: ink, gridColor: line, domainColor: ink, tickColor: ink};
      const actions = {export: {svg: true, png: false}, source: false, compiled: false, editor: false};
      const config = {axis, legend: {labelColor: ink, titleColor: ink}, rule: {color: ink}, point: {color: ink}, font: "system-ui, sans-serif"};
      place.hidden = false;
      vegaEmbed(place, spec, {renderer: "svg", ast: true, tooltip: {theme}, actions, config, downloadFileName: place.dataset.chart})
        .then(() => {
          place.parentElement.classList.add("drawn");
          const title = place.parentElement.querySelector("figcaption").textContent;
          for (const menu of place.querySelectorAll("summary")) menu.setAttribute("aria-label", "Save the chart: " + title);
        })
        .catch((error) => { place.hidden = true; console.error(error); });
    }
  };
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  // Paper has no clicks: sections that are folded are printed open.
  const folded = [...document.querySelectorAll("section > details")];
  addEventListener("beforeprint", () => { for (const one of folded) { one.dataset.was = one.open; one.open = true; } });
  addEventListener("afterprint", () => { for (const one of folded) one.open = one.dataset.was === "true"; });
})();
)js";

constexpr std::string_view kStyle = R"(<style>
:root { color-scheme: light dark; --ground: #fff; --ink: #1c2024; --soft: #5d666f; --line: #d8dde2; --band: #f4f6f8; --answer: #e8f3ec; --warning: #fdf1dc; --failure: #fbe3e1; }
@media (prefers-color-scheme: dark) { :root { --ground: #15181b; --ink: #e6e9ec; --soft: #a0a8b0; --line: #3a4148; --band: #1e2327; --answer: #1c3526; --warning: #42351a; --failure: #4a2320; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); max-width: 66rem; margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0; } .subtitle { color: var(--soft); margin-top: .2rem; } h2 { margin-top: 2.2rem; border-bottom: 1px solid var(--line); }
p.answer, p.warning, p.failure { padding: .7rem 1rem; border-radius: 6px; } p.answer { background: var(--answer); font-size: 1.1rem; } p.warning { background: var(--warning); } p.failure { background: var(--failure); }
pre { background: var(--band); padding: .6rem 1rem; border-radius: 6px; white-space: pre-wrap; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; margin: .6rem 0; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; } th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
th.words, td.words { text-align: left; } tbody tr:nth-child(even) { background: var(--band); } .note { color: var(--soft); font-size: 13px; }
summary { cursor: pointer; } details > summary > h2 { display: inline-block; border: 0; }
svg.chart { width: 100%; max-width: 760px; height: auto; font: 12px system-ui, sans-serif; } svg text { fill: var(--ink); } svg .label { font-weight: 600; }
svg .grid { stroke: var(--line); } svg .axis, svg .error { stroke: var(--ink); } svg .error { stroke-width: 1.4; }
figure { margin: 1.2rem 0; } figcaption { font-weight: 600; } figure .live { width: 100%; max-width: 760px; } figure.drawn > svg.chart { display: none; }
svg .dot { color: var(--ink); stroke: var(--ink); } .vega-embed details { z-index: 1; } .vega-embed summary { color: #1c2024; }
@media print { figure .live { display: none !important; } figure.drawn > svg.chart { display: block; } details > summary { list-style: none; } figure > details { display: none; } section > details::details-content { content-visibility: visible; block-size: auto; } }
@media (max-width: 700px) { th, td { white-space: nowrap; } th.words, td.words { white-space: normal; min-width: 7rem; } }
</style>
)";

// Writes blocks; charts are numbered, as their elements want names of their own.
class Writer {
 public:
  std::string Write(const Document& document, Charts charts) {
    scripts_ = charts == Charts::kInteractive && !VegaBundle().empty() && HasChart(document);
    out_ = fmt::format(fmt::runtime(kHead), scripts_ ? "; script-src 'unsafe-inline'; img-src data:" : "");
    Add("<title>{}</title>\n", EscapeHtml(document.title));
    out_ += kStyle;
    Add("</head>\n<body>\n<header>\n<h1>{}</h1>\n", EscapeHtml(document.title));
    if (!document.subtitle.empty()) Add("<p class=\"subtitle\">{}</p>\n", EscapeHtml(document.subtitle));
    out_ += "</header>\n<main>\n";
    for (const Section& section : document.sections) WriteSection(section);
    out_ += "</main>\n";
    if (scripts_) {
      out_ += "<script>";
      out_ += VegaBundle();
      out_ += "</script>\n<script>";
      out_ += kDraw;
      out_ += "</script>\n";
    }
    out_ += "</body>\n</html>\n";
    return std::move(out_);
  }

 private:
  template <typename... Values>
  void Add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Values>(values)...);
  }

  void WriteSection(const Section& section) {
    const std::string title = fmt::format("<h2>{}</h2>", EscapeHtml(section.title));
    Add("{}\n",
        section.folded ? fmt::format("<section><details><summary>{}</summary>", title) : "<section>" + title);
    for (const Block& block : section.blocks) std::visit([this](const auto& one) { WriteBlock(one); }, block);
    out_ += section.folded ? "</details></section>\n" : "</section>\n";
  }

  void WriteBlock(const Paragraph& paragraph) {
    const std::string text = EscapeHtml(paragraph.text);
    switch (paragraph.tone) {
      case Paragraph::Tone::kPlain:
        return Add("<p>{}</p>\n", text);
      case Paragraph::Tone::kAnswer:
        return Add("<p class=\"answer\">{}</p>\n", text);
      case Paragraph::Tone::kWarning:
        return Add("<p class=\"warning\" role=\"note\">{}</p>\n", text);
      case Paragraph::Tone::kFailure:
        return Add("<p class=\"failure\" role=\"note\">{}</p>\n", text);
      case Paragraph::Tone::kCommand:
        return Add("<pre>{}</pre>\n", text);
    }
  }

  void WriteBlock(const List& list) {
    out_ += "<ul>\n";
    for (const std::string& item : list.items) Add("<li>{}</li>\n", EscapeHtml(item));
    out_ += "</ul>\n";
  }

  void WriteBlock(const Table& table) {
    // A region that scrolls is reached by keyboard too, and has a name.
    const std::string name =
        table.caption.empty() ? "Table: " + fmt::format("{}", fmt::join(table.columns, ", ")) : table.caption;
    Add("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table>\n", EscapeHtml(name));
    if (!table.caption.empty()) Add("<caption>{}</caption>\n", EscapeHtml(table.caption));
    out_ += "<thead><tr>";
    for (size_t i = 0; i < table.columns.size(); ++i)
      Add("<th scope=\"col\"{}>{}</th>", i < table.text_columns ? " class=\"words\"" : "",
          EscapeHtml(table.columns[i]));
    out_ += "</tr></thead>\n<tbody>\n";
    for (const auto& row : table.rows) {
      out_ += "<tr>";
      for (size_t i = 0; i < row.size(); ++i)
        Add("<td{}>{}</td>", i < table.text_columns ? " class=\"words\"" : "", EscapeHtml(row[i]));
      out_ += "</tr>\n";
    }
    out_ += "</tbody></table></div>\n";
    for (const std::string& note : table.notes) Add("<p class=\"note\">{}</p>\n", EscapeHtml(note));
  }

  static bool HasChart(const Document& document) {
    return std::ranges::any_of(document.sections, [](const Section& section) {
      return std::ranges::any_of(section.blocks,
                                 [](const Block& block) { return std::holds_alternative<Chart>(block); });
    });
  }

  void WriteBlock(const Chart& chart) {
    Add("<figure>\n<figcaption>{}</figcaption>\n", EscapeHtml(chart.title));
    const std::string id = fmt::format("chart-{}", ++charts_);
    out_ += ToSvg(chart, id);
    if (scripts_) {
      // "<" begins no tag inside the script element.
      std::string spec = DumpJson(ToVegaLite(chart));
      for (size_t at = 0; (at = spec.find('<', at)) != std::string::npos;) spec.replace(at, 1, "\\u003c");
      Add("<div class=\"live\" data-chart=\"{0}-spec\" hidden></div>\n<script type=\"application/json\" "
          "id=\"{0}-spec\">{1}</script>\n",
          id, spec);
    }
    out_ += "<details><summary>The numbers</summary>\n";
    WriteBlock(ToTable(chart));
    Add("<p class=\"note\"><a download=\"{}.csv\" href=\"data:text/csv;charset=utf-8,{}\">Download these "
        "numbers "
        "(CSV)</a></p>\n",
        id, EscapeUrl(ChartCsv(chart)));
    out_ += "</details>\n</figure>\n";
  }

  std::string out_;
  int charts_ = 0;
  bool scripts_ = false;
};

}  // namespace

std::string ToHtml(const Document& document, Charts charts) { return Writer().Write(document, charts); }

}  // namespace weir::report
