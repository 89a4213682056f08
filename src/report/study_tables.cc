// The configurations side by side, and what each factor does.
#include <fmt/format.h>

#include <set>
#include <utility>

#include "report/number.h"
#include "report/study_report.h"
#include "report/unit.h"

namespace weir::report {
namespace {

std::string Optional(const std::optional<double>& value) { return value ? Number(*value) : "-"; }

std::string RelativeError(const Json& figures) {
  const auto error = NumberAt(figures, "standard_error"), mean = NumberAt(figures, "mean");
  return error && mean && *mean != 0 ? Percent(*error / *mean) : "-";
}

std::string MedianText(const Json& figures, double scale) {
  const auto median = NumberAt(figures, "median", scale);
  return median ? WithInterval(*median, NumberAt(figures, "median_low", scale),
                               NumberAt(figures, "median_high", scale))
                : "-";
}

// The commonest, and how common it is where others were named too.
std::string BottleneckText(const std::optional<StudyView::Word>& bottleneck) {
  if (!bottleneck) return "-";
  return bottleneck->times == bottleneck->of
             ? bottleneck->word
             : fmt::format("{} ({} of {})", bottleneck->word, bottleneck->times, bottleneck->of);
}

// Explains the bottlenecks that the tables name.
std::string BottlenecksNote(const StudyView& study) {
  std::string note;
  std::set<std::string> told;
  for (size_t i = 0; i < study.configurations(); ++i) {
    const auto bottleneck = study.CommonestWord(i, "bottleneck");
    if (!bottleneck || !told.insert(bottleneck->word).second) continue;
    if (const auto meaning = BottleneckMeaning(bottleneck->word); !meaning.empty())
      note += fmt::format("{}{}: {}", note.empty() ? "" : "; ", bottleneck->word, meaning);
  }
  return note.empty() ? note : "Bottleneck: the part that holds the others back. " + note + ".";
}

std::string ToldText(const Json& comparison) {
  const std::string told = comparison["told"].get<std::string>();
  const auto limit = NumberAt(comparison, "limit");
  return told == "no difference shown" && limit ? fmt::format("{} (limit {})", told, Percent(*limit)) : told;
}

std::string TrialsText(const Json& trials) {
  std::string text = fmt::format("{}", trials["valid"].get<int64_t>() + trials["suspect"].get<int64_t>());
  const std::pair<const char*, const char*> kinds[] = {
      {"suspect", "SUSPECT"}, {"invalid", "INVALID"}, {"failed", "failed"}, {"skipped", "skipped"}};
  std::string more;
  for (const auto& [key, word] : kinds) {
    if (const auto count = trials[key].get<int64_t>(); count > 0)
      more += fmt::format("{}{} {}", more.empty() ? "" : ", ", count, word);
  }
  return more.empty() ? text : fmt::format("{} ({})", text, more);
}

}  // namespace

Section ConfigurationsSection(const StudyView& study) {
  Section section{.title = "Configurations side by side"};
  const Unit unit = UnitOf(study.objective());
  Table table{
      .caption = WithUnit(MetricWords(study.objective()), unit.name),
      .columns = {"configuration", "bottleneck", "trials", "mean", "deviation", "error", "of the mean",
                  "median", "over the reference", "significant difference", "smallest difference seen"},
      .text_columns = 2};
  for (size_t i = 0; i < study.configurations(); ++i) {
    if (study.configuration(i).value("waterfall_only", false)) continue;
    const Json& figures = study.Metric(i, study.objective());
    const Json& comparison = study.Comparison(i, study.objective());
    const auto smallest = NumberAt(comparison, "smallest_difference");
    table.rows.push_back(
        {study.label(i) + (i == study.reference() ? " (reference)" : ""),
         BottleneckText(study.CommonestWord(i, "bottleneck")), TrialsText(study.configuration(i)["trials"]),
         IntervalText(figures, "mean", unit.scale),
         Optional(NumberAt(figures, "standard_deviation", unit.scale)),
         Optional(NumberAt(figures, "standard_error", unit.scale)), RelativeError(figures),
         MedianText(figures, unit.scale), IntervalText(comparison, "ratio"),
         comparison.is_null() ? "-" : ToldText(comparison), smallest ? Percent(*smallest) : "-"});
  }
  const Json& options = study.At("options");
  table.notes = {
      fmt::format("In brackets {} intervals: of the mean Student's t over the repeats, of the median order "
                  "statistics, of the ratio Student's t over the logarithms of the blocks' ratios. One of "
                  "the mean that would reach below 0, where no such figure can be, begins at 0; JSON and "
                  "CSV have it whole.",
                  Percent(options["confidence"].get<double>())),
      fmt::format(
          "Higher or lower: the difference is significant by Holm's method over the compared figures of this "
          "report, and above the margin of {}. The limit is the largest difference that the interval leaves "
          "open. The smallest difference is the one that a paired t test at the level {} would have found "
          "with probability {}.",
          Percent(options["margin"].get<double>()), options["alpha"].get<double>(),
          options["power"].get<double>())};
  if (std::string bottlenecks = BottlenecksNote(study); !bottlenecks.empty())
    table.notes.push_back(std::move(bottlenecks));
  section.blocks.emplace_back(std::move(table));
  return section;
}

Section ComparedSection(const StudyView& study) {
  Section section{.title = "Beside the other study"};
  const Json& compared = study.At("compared");
  const Unit unit = UnitOf(compared["metric"].get<std::string>());
  Table table{.caption = WithUnit(compared["metric"].get<std::string>(), unit.name),
              .columns = {"configuration", "significant difference", "before", "now", "now over before"},
              .text_columns = 2};
  for (const Json& one : compared["configurations"]) {
    table.rows.push_back({one["label"].get<std::string>(), one.value("told", "-"),
                          one.contains("before") ? IntervalText(one["before"], "mean", unit.scale) : "-",
                          one.contains("now") ? IntervalText(one["now"], "mean", unit.scale) : "-",
                          IntervalText(one, "ratio")});
  }
  table.notes = {
      "The two share no blocks: the interval is Welch's, and what differs between the two machines or days "
      "is in the ratio."};
  section.blocks.emplace_back(std::move(table));
  List differences;
  for (const Json& line : compared["differences"]) differences.items.push_back(line.get<std::string>());
  for (const Json& label : compared["only_before"])
    differences.items.push_back("only before: " + label.get<std::string>());
  for (const Json& label : compared["only_now"])
    differences.items.push_back("only now: " + label.get<std::string>());
  if (!differences.items.empty()) {
    section.blocks.emplace_back(Paragraph{"What is not the same:"});
    section.blocks.emplace_back(std::move(differences));
  }
  return section;
}

}  // namespace weir::report
