#include "report/live_page.h"

#include <fmt/format.h>

#include <cmath>

#include "base/count.h"
#include "report/escape.h"
#include "report/number.h"
#include "report/unit.h"

namespace weir::report {
namespace {

constexpr int kRefreshSeconds = 3;

constexpr std::string_view kStyle =
    "<style>:root{color-scheme:light dark}body{font:16px/1.5 "
    "system-ui,sans-serif;max-width:60rem;margin:2rem "
    "auto;padding:0 "
    "1rem}progress{width:100%;height:1.4rem}table{border-collapse:collapse}th,td{padding:.2rem "
    ".8rem;border-bottom:1px solid "
    "#8888;text-align:right}th:first-child,td:first-child{text-align:left}</style>";

std::string StateText(const LiveState& state) {
  std::string text = fmt::format("{} of {} trials", Count(state.done), Count(state.total));
  if (state.suspect > 0) text += fmt::format(", {} SUSPECT", Count(state.suspect));
  if (state.failed > 0) text += fmt::format(", {} failed", Count(state.failed));
  if (state.skipped > 0) text += fmt::format(", {} skipped", Count(state.skipped));
  if (state.finished) return text + ". The study has ended: its report is written.";
  if (state.left_s) text += fmt::format(", about {:.0f} min left", std::ceil(*state.left_s / 60));
  return text + ".";
}

}  // namespace

std::string LivePage(const LiveState& state) {
  const std::string title = EscapeHtml("Study " + state.study);
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n{}<title>{}</title>\n{}\n</head>\n<body>\n<main>\n"
      "<h1>{}</h1>\n<progress value=\"{}\" max=\"{}\" aria-label=\"trials played\"></progress>\n<p>{}</p>\n",
      state.finished ? "" : fmt::format("<meta http-equiv=\"refresh\" content=\"{}\">\n", kRefreshSeconds),
      title, kStyle, title, state.done, std::max<int64_t>(1, state.total), EscapeHtml(StateText(state)));
  if (!state.now.empty()) page += fmt::format("<p>Now: {}</p>\n", EscapeHtml(state.now));
  const Unit unit = UnitOf(state.metric);
  page += fmt::format(
      "<table><caption>Results so far</caption>\n<thead><tr><th scope=\"col\">configuration</th><th "
      "scope=\"col\">{}</th>"
      "<th scope=\"col\">trials</th></tr></thead>\n<tbody>\n",
      EscapeHtml(WithUnit(MetricWords(state.metric), unit.name)));
  for (const LiveResult& one : state.results) {
    const auto scaled = [&](const std::optional<double>& value) {
      return value ? std::optional(*value * unit.scale) : std::nullopt;
    };
    page += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", EscapeHtml(one.label),
                        EscapeHtml(WithInterval(one.mean * unit.scale, scaled(one.low), scaled(one.high))),
                        one.n);
  }
  return page + "</tbody></table>\n</main>\n</body>\n</html>\n";
}

}  // namespace weir::report
