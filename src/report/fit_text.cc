#include "report/fit_text.h"

#include <fmt/format.h>

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace weir::report {
namespace {

using results::FitResult;

// Returns the bytes behind a text of a result; the console shows them safely.
std::string Plain(const std::string& text) { return UnescapeBytes(text).value_or(text); }

// Returns a line for each kind of fault: how many, and the first.
std::string FindingsText(const std::vector<FitResult::Finding>& findings) {
  std::map<std::string_view, std::pair<int64_t, std::string>> found;
  for (const FitResult::Finding& finding : findings) {
    auto& [count, first] = found[finding.fault];
    if (count++ == 0) {
      first = fmt::format("{}: {}", finding.rows.empty() ? "the tables" : Plain(finding.rows.front()),
                          Plain(finding.what));
    }
  }
  std::string text;
  for (const auto& [fault, entry] : found)
    text += fmt::format("  {:<16} {:>5}  e.g. {}\n", fault, entry.first, entry.second);
  return text;
}

// A line of the table of scores.
std::string ScoreText(std::string_view split, std::string_view name, const results::FitScore& score) {
  return fmt::format("{:<10} {:<24} {:>7.2f} {:>7.2f} {:>9.2f} {:>7.2f} {:>7}", split, name,
                     score.median_percent, score.p90_percent, score.log_mean_percent, score.mean_percent,
                     score.rows);
}

}  // namespace

std::string FitText(const FitResult& fit) {
  std::string text = fmt::format("{}: {} rows; {} skipped, {} unusable, {} left out\n{}", fit.name, fit.rows,
                                 fit.skipped, fit.unusable, fit.left_out, FindingsText(fit.findings));
  if (!fit.splits) return text;
  text +=
      "\nerror of time on left-out rows, %     median     p90  exp|log|    mape    rows   weight\n"
      "(exp|log|: exp(mean |log(predicted / measured)|) - 1)\n";
  for (const FitResult::Split& split : *fit.splits) {
    text +=
        fmt::format("{}   intervals hold {:.1f} %, half-width {:.1f} %, score {:.2f} of a constant width's\n",
                    ScoreText(split.name, "the mixture", split.score), split.interval_coverage_percent,
                    split.interval_half_width_percent, split.interval_score_of_constant);
    for (const auto& [score, name, weight] : split.candidates)
      text += fmt::format("{}   {}\n", ScoreText("", "  " + name, score),
                          weight > 0 ? fmt::format("{:.2f}", weight) : "");
    for (const auto& [score, without] : split.ablation)
      text += ScoreText("", without.empty() ? "  nested: all" : "  nested: no " + without, score) + "\n";
  }
  return text;
}

}  // namespace weir::report
