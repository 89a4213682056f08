// The configurations side by side, and what each factor does.
#include <fmt/format.h>

#include <set>
#include <utility>

#include "report/number.h"
#include "report/study_report.h"
#include "report/study_text.h"
#include "report/unit.h"

namespace weir::report {
namespace {

std::optional<double> Times(const std::optional<double>& value, double scale) {
  return value ? std::optional(*value * scale) : std::nullopt;
}

std::string Optional(const std::optional<double>& value) { return value ? Number(*value) : "-"; }

std::string RelativeError(const results::Figures& figures) {
  return figures.standard_error && figures.mean != 0 ? Percent(*figures.standard_error / figures.mean) : "-";
}

std::string MedianText(const results::Figures& figures, double scale) {
  return WithInterval(figures.median * scale, Times(figures.median_low, scale),
                      Times(figures.median_high, scale));
}

// The commonest, and how common it is where others were named too.
std::string BottleneckText(const std::optional<StudyResult::Word>& bottleneck) {
  if (!bottleneck) return "-";
  return bottleneck->times == bottleneck->of
             ? bottleneck->word
             : fmt::format("{} ({} of {})", bottleneck->word, bottleneck->times, bottleneck->of);
}

// Explains the bottlenecks that the tables name.
std::string BottlenecksNote(const StudyResult& study) {
  std::string note;
  std::set<std::string> told;
  for (size_t i = 0; i < study.configurations.size(); ++i) {
    const auto bottleneck = study.CommonestWord(i, "bottleneck");
    if (!bottleneck || !told.insert(bottleneck->word).second) continue;
    if (const auto meaning = BottleneckMeaning(bottleneck->word); !meaning.empty())
      note += fmt::format("{}{}: {}", note.empty() ? "" : "; ", bottleneck->word, meaning);
  }
  return note.empty() ? note : "Bottleneck: the part that holds the others back. " + note + ".";
}

std::string TrialsText(const results::TrialCounts& trials) {
  std::string text = fmt::format("{}", trials.valid + trials.suspect);
  const std::pair<int64_t, results::Standing> kinds[] = {{trials.suspect, results::Standing::kSuspect},
                                                         {trials.invalid, results::Standing::kInvalid},
                                                         {trials.failed, results::Standing::kFailed},
                                                         {trials.skipped, results::Standing::kSkipped}};
  std::string more;
  for (const auto& [count, standing] : kinds) {
    if (count > 0) more += fmt::format("{}{} {}", more.empty() ? "" : ", ", count, ToString(standing));
  }
  return more.empty() ? text : fmt::format("{} ({})", text, more);
}

}  // namespace

Section ConfigurationsSection(const StudyResult& study) {
  Section section{.title = "Configurations side by side"};
  const Unit unit = UnitOf(study.study.metric);
  Table table{
      .caption = WithUnit(MetricWords(study.study.metric), unit.name),
      .columns = {"configuration", "bottleneck", "trials", "mean", "deviation", "error", "of the mean",
                  "median", "over the reference", "significant difference", "smallest difference seen"},
      .text_columns = 2};
  for (size_t i = 0; i < study.configurations.size(); ++i) {
    if (study.configurations[i].design.waterfall_only) continue;
    std::vector<std::string> row{study.label(i) + (i == study.reference ? " (reference)" : ""),
                                 BottleneckText(study.CommonestWord(i, "bottleneck")),
                                 TrialsText(study.configurations[i].trials)};
    if (const results::Figures* figures = study.FindFigures(i, study.study.metric)) {
      row.insert(row.end(),
                 {IntervalText(figures, unit.scale), Optional(Times(figures->standard_deviation, unit.scale)),
                  Optional(Times(figures->standard_error, unit.scale)), RelativeError(*figures),
                  MedianText(*figures, unit.scale)});
    }
    if (const StudyResult::Comparison* one = study.FindComparison(i, study.study.metric)) {
      const auto& smallest = one->tested.smallest_difference;
      row.resize(table.columns.size() - 3, "-");
      row.insert(row.end(), {IntervalText(one->tested.ratio), ToldText(one->tested),
                             smallest ? Percent(*smallest) : "-"});
    }
    row.resize(table.columns.size(), "-");
    table.rows.push_back(std::move(row));
  }
  const StudyResult::Options& options = study.options;
  table.notes = {
      fmt::format("In brackets {} intervals: of the mean Student's t over the repeats, of the median order "
                  "statistics, of the ratio Student's t over the logarithms of the blocks' ratios. One of "
                  "the mean that would reach below 0, where no such figure can be, begins at 0; JSON and "
                  "CSV have it whole.",
                  Percent(options.confidence)),
      fmt::format(
          "The intervals of the ratios are simultaneous over the compared figures of this report "
          "(Bonferroni). "
          "Higher or lower: the interval leaves 1 out, and the ratio is above the margin of {}. The limit is "
          "the largest difference that the interval leaves open. The smallest difference is the one that the "
          "same test would have found with probability {}.",
          Percent(options.margin), options.power)};
  if (std::string bottlenecks = BottlenecksNote(study); !bottlenecks.empty())
    table.notes.push_back(std::move(bottlenecks));
  section.blocks.emplace_back(std::move(table));
  return section;
}

Section ComparedSection(const StudyResult& study) {
  Section section{.title = "Beside the other study"};
  const StudyResult::Compared& compared = *study.compared;
  const Unit unit = UnitOf(compared.metric);
  Table table{.caption = WithUnit(compared.metric, unit.name),
              .columns = {"configuration", "significant difference", "before", "now", "now over before"},
              .text_columns = 2};
  for (const StudyResult::ComparedConfiguration& one : compared.configurations) {
    table.rows.push_back({one.label, one.tested ? one.tested->told : "-",
                          IntervalText(one.before ? &*one.before : nullptr, unit.scale),
                          IntervalText(one.now ? &*one.now : nullptr, unit.scale),
                          one.tested ? IntervalText(one.tested->ratio) : "-"});
  }
  table.notes = {
      "The two share no blocks: the interval is Welch's, and what differs between the two machines or days "
      "is in the ratio."};
  section.blocks.emplace_back(std::move(table));
  List differences{compared.differences};
  for (const std::string& label : compared.only_before) differences.items.push_back("only before: " + label);
  for (const std::string& label : compared.only_now) differences.items.push_back("only now: " + label);
  if (!differences.items.empty()) {
    section.blocks.emplace_back(Paragraph{"What is not the same:"});
    section.blocks.emplace_back(std::move(differences));
  }
  return section;
}

}  // namespace weir::report
