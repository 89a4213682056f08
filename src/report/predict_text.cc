#include "report/predict_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/count.h"

namespace weir::report {
namespace {

using results::PredictAnswers, results::PredictEngines;
using Answer = PredictAnswers::Answer;

// "62 % memory, 30 % tensor, 8 % launch": shares of the physical terms by name, largest first, those under
// 1 % left out.
std::string ShareText(const std::map<std::string, double>& shares) {
  std::vector<std::pair<double, std::string>> parts;
  for (const auto& [name, share] : shares) {
    if (share >= 0.01) parts.emplace_back(share, name);
  }
  std::ranges::sort(parts, std::greater());
  std::string text;
  for (const auto& [share, name] : parts)
    text += fmt::format("{}{:.0f} % {}", text.empty() ? "" : ", ", 100 * share, name);
  return text;
}

const std::string& HardwareOf(const PredictAnswers& answers, const AnswerColumns& columns,
                              const Answer& answer) {
  const auto found = answer.row.find(columns.hardware);
  return found == answer.row.end() ? answers.name : found->second;
}

std::string OneText(const PredictAnswers& answers, const AnswerColumns& columns) {
  const Answer& answer = answers.answers.front();
  const std::string& hardware = HardwareOf(answers, columns, answer);
  if (!answer.value) return fmt::format("{}: refused: {}\n", hardware, answer.outside);
  std::string text =
      fmt::format("{}: {} {} ({} to {}), {}{}\n  {}\n", hardware, Short(*answer.value), answers.target,
                  Short(*answer.low), Short(*answer.high), answer.regime,
                  answer.outside.empty() ? "" : ": " + answer.outside, ShareText(answer.shares));
  if (!answer.job) return text;
  text += fmt::format("  the whole job: {} h ({} to {})", Short(answer.job->hours),
                      Short(answer.job->low_hours), Short(answer.job->high_hours));
  if (answer.job->cost)
    text += fmt::format(", cost {} ({} to {})", Short(*answer.job->cost), Short(*answer.job->low_cost),
                        Short(*answer.job->high_cost));
  return text + "\n";
}

// Makes columns as wide as their widest cell; the first two and the last stand left, the others right.
std::string Aligned(const std::vector<std::vector<std::string>>& lines) {
  std::vector<size_t> widths(lines.front().size(), 0);
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const auto& line : lines) {
    std::string one;
    for (size_t i = 0; i < line.size(); ++i) {
      const bool left = i < 2 || i + 1 == line.size();
      one += left ? fmt::format("{:<{}}  ", line[i], widths[i]) : fmt::format("{:>{}}  ", line[i], widths[i]);
    }
    text += one.substr(0, one.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string TableText(const PredictAnswers& answers, const AnswerColumns& columns) {
  const bool jobs = std::ranges::any_of(answers.answers, [](const Answer& a) { return a.job.has_value(); });
  const bool costs =
      std::ranges::any_of(answers.answers, [](const Answer& a) { return a.job && a.job->cost; });
  std::vector<std::vector<std::string>> lines = {
      {"hardware", "regime", columns.batch, answers.target, "low", "high"}};
  if (jobs) lines.front().emplace_back("hours");
  if (costs) lines.front().emplace_back("cost");
  lines.front().emplace_back("time goes to");
  const auto number = [](const std::optional<double>& value) { return value ? Short(*value) : "-"; };
  for (const Answer& answer : answers.answers) {
    const auto batch = answer.row.find(columns.batch);
    std::vector<std::string>& line = lines.emplace_back();
    line = {HardwareOf(answers, columns, answer), answer.regime,
            batch == answer.row.end() ? "" : batch->second};
    for (const auto& value : {answer.value, answer.low, answer.high}) line.push_back(number(value));
    if (jobs) line.push_back(answer.job ? Short(answer.job->hours) : "-");
    if (costs) line.push_back(number(answer.job ? answer.job->cost : std::nullopt));
    line.push_back(answer.value ? ShareText(answer.shares) : answer.outside);
  }
  return Aligned(lines);
}

}  // namespace

std::string AnswersText(const PredictAnswers& answers, const AnswerColumns& columns) {
  return answers.answers.size() == 1 ? OneText(answers, columns) : TableText(answers, columns);
}

std::string EnginesText(const PredictEngines& engines) {
  std::string text;
  for (const PredictEngines::Engine& engine : engines.engines)
    text += fmt::format("{}{}\n", engines.engines.size() > 1 ? engine.hardware + ": " : "", engine.engine);
  return text;
}

std::vector<std::string> EngineNotes(const PredictEngines& engines) {
  std::vector<std::string> notes;
  for (const PredictEngines::Engine& engine : engines.engines) {
    notes.push_back(fmt::format("{}: at most {:.1f} % from the predicted times of batches {}",
                                engine.hardware, 100 * engine.greatest_error,
                                fmt::join(engine.batches, ", ")));
    if (engine.batches_outside > 0)
      notes.push_back(fmt::format("{}: {} of {} batches are outside the data: {}", engine.hardware,
                                  engine.batches_outside, engine.batches.size(), engine.outside));
  }
  return notes;
}

}  // namespace weir::report
