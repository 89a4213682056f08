#include "trial/answers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/csv.h"

namespace weir::trial {

Result<Answers> ReadAnswers(std::string_view text) {
  const auto csv = ParseCsv(text, {.max_rows = 100'000'000});
  if (!csv) return Fail(ErrorCode::kCorrupt, "the predictions file: " + csv.error().message);
  const auto column = [&](std::string_view name) {
    return static_cast<size_t>(std::ranges::find(csv->columns, name) - csv->columns.begin());
  };
  const size_t status = column("status"), rank = column("rank"), best = column("class");
  if (std::max({status, rank, best}) >= csv->columns.size())
    return Fail(ErrorCode::kCorrupt, "the predictions file lacks status, rank or class");
  Answers answers;
  for (int64_t i = 0; i < csv->rows(); ++i) {
    const auto row = csv->row(i);
    if (row[status] != "ok")
      answers.best.push_back(row[status]);
    else if (row[rank] == "1")
      answers.best.push_back(row[best]);
  }
  return answers;
}

Result<int64_t> CountDifferences(const Answers& reference, const Answers& trial) {
  const size_t once = reference.best.size();
  if (once == 0 || trial.best.empty() || trial.best.size() % once != 0)
    return Fail(ErrorCode::kCorrupt,
                fmt::format("it answered {} pictures, and the reference has {}", trial.best.size(), once));
  int64_t differ = 0;
  for (size_t i = 0; i < trial.best.size(); ++i) differ += trial.best[i] != reference.best[i % once] ? 1 : 0;
  return differ;
}

}  // namespace weir::trial
