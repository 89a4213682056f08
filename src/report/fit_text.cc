#include "report/fit_text.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/count.h"
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

// Returns a line of the table of several fits: median error and exp(mean |log ratio|) - 1 by split.
std::string FitLine(const FitResult& fit) {
  const std::filesystem::path predictor(Plain(fit.predictor.value_or(fit.name)));
  std::string text = fmt::format("{:<18} {:>7} {:>6.0f}", predictor.stem().string(),
                                 Count(fit.fitted.value_or(0)), fit.wall_s.value_or(0));
  using Split = FitResult::Split;
  for (const char* name : {Split::kInside, Split::kCount, Split::kHardware, Split::kNetwork}) {
    std::string cell = "-";
    for (const Split& split : fit.splits.value_or(std::vector<Split>())) {
      if (split.name == name)
        cell = fmt::format("{:.1f} / {:.1f}", split.score.median_percent, split.score.log_mean_percent);
    }
    text += fmt::format("  {:>13}", cell);
  }
  return text + "\n";
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
  }
  return text;
}

std::string FitsText(const results::FitsResult& fits) {
  if (!fits.fits || fits.fits->empty()) return "";
  std::string text = fmt::format(
      "\nmedian error / exp(mean |log ratio|) - 1, %\n{:<18} {:>7} {:>6}  {:>13}  {:>13}  {:>13}  "
      "{:>13}\n",
      "", "rows", "s", "inside", "count", "hardware", "network");
  for (const FitResult& fit : *fits.fits) text += FitLine(fit);
  return text;
}

}  // namespace weir::report
