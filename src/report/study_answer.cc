// The first thing a reader sees: what is best, by how much, how sure that is, and what stands against it.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/count.h"
#include "report/number.h"
#include "report/study_report.h"
#include "report/unit.h"

namespace weir::report {
namespace {

constexpr size_t kMostListed = 10;

std::string SuspectText(const StudyView& study, size_t index) {
  const auto suspect = study.configuration(index)["trials"]["suspect"].get<int64_t>();
  return suspect == 0 ? "" : fmt::format("; SUSPECT: {} of them", suspect);
}

bool HasBetterMean(const StudyView& study, size_t index, size_t than) {
  const auto mean = NumberAt(study.Metric(index, study.objective()), "mean");
  const auto other = NumberAt(study.Metric(than, study.objective()), "mean");
  return mean && other && (study.higher_is_better() ? *mean > *other : *mean < *other);
}

// Some mean is better, of a configuration without a VALID trial: the best is then the best of the others.
bool IsPassed(const StudyView& study, size_t best) {
  for (size_t i = 0; i < study.configurations(); ++i) {
    if (HasBetterMean(study, i, best)) return true;
  }
  return false;
}

Paragraph BestParagraph(const StudyView& study, size_t best) {
  const Json& figures = study.Metric(best, study.objective());
  const Unit unit = UnitOf(study.objective());
  std::string text =
      fmt::format("{} {}{}: {}, with {}{}{} over {}{}.", study.higher_is_better() ? "Highest" : "Lowest",
                  study.objective(), IsPassed(study, best) ? " of those with a VALID trial" : "",
                  study.label(best), IntervalText(figures, "mean", unit.scale), unit.name.empty() ? "" : " ",
                  unit.name, Count(figures["n"].get<int64_t>(), "trial"), SuspectText(study, best));
  if (const auto bottleneck = study.CommonestWord(best, "bottleneck")) {
    const auto meaning = BottleneckMeaning(bottleneck->word);
    text +=
        fmt::format(" Its bottleneck is {}{}{} (in {} of {}).", bottleneck->word, meaning.empty() ? "" : ", ",
                    meaning, bottleneck->times, Count(bottleneck->of, "trial"));
  }
  return {std::move(text), Paragraph::Tone::kAnswer};
}

// Adds the doubts about the headline.
void AddDoubts(const StudyView& study, size_t best, Section& section) {
  if (study.configuration(best)["trials"]["valid"].get<int64_t>() == 0) {
    section.blocks.emplace_back(
        Paragraph{"No configuration has a VALID trial: these figures are of SUSPECT ones, and no ground for "
                  "a decision.",
                  Paragraph::Tone::kWarning});
  }
  if (study.Metric(best, study.objective())["n"].get<int64_t>() < 2) {
    section.blocks.emplace_back(
        Paragraph{"A single trial does not tell how far off it may be: ask for more repeats.",
                  Paragraph::Tone::kWarning});
  }
}

std::string SeenText(const Json& comparison) {
  const auto smallest = NumberAt(comparison, "smallest_difference");
  return smallest ? fmt::format("; a difference of {} would have been seen", Percent(*smallest)) : "";
}

bool IsToldApart(const Json& comparison) {
  return comparison["told"] == "higher" || comparison["told"] == "lower";
}

// Better than what leads: its trials are SUSPECT alone, or its ratio and its mean do not agree.
bool IsAhead(const StudyView& study, const Json& comparison) {
  return comparison["told"] == (study.higher_is_better() ? "higher" : "lower");
}

void AddList(std::string title, std::vector<std::string> items, Section& section) {
  if (items.empty()) return;
  if (items.size() > kMostListed) {
    const size_t more = items.size() - kMostListed;
    items.resize(kMostListed);
    items.push_back(fmt::format("and {} more", more));
  }
  section.blocks.emplace_back(Paragraph{std::move(title)});
  section.blocks.emplace_back(List{std::move(items)});
}

// Who may be as good, and who comes first of those that are not.
void AddOthers(const StudyView& study, size_t best, const Json& others, Section& section) {
  std::vector<std::string> ahead, alike, unknown;
  const Json* next = nullptr;
  for (const Json& other : others) {
    const auto index = other["configuration"].get<size_t>();
    std::string line = fmt::format("{}: {} of it", study.label(index), IntervalText(other, "ratio"));
    if (IsAhead(study, other) || (other["told"] == "too few" && HasBetterMean(study, index, best))) {
      ahead.push_back(line + SuspectText(study, index));
    } else if (other["told"] == "too few") {
      unknown.push_back(std::move(line));
    } else if (!IsToldApart(other)) {
      alike.push_back(fmt::format("{}, {}{}", line, other["told"].get<std::string>(), SeenText(other)));
    } else if (!next) {
      next = &other;
    }
  }
  AddList("Ahead of it, but not to be relied on:", std::move(ahead), section);
  AddList("Not shown to be any worse than it by more than the margin:", std::move(alike), section);
  AddList("Too few blocks to tell from it:", std::move(unknown), section);
  if (next) {
    section.blocks.emplace_back(Paragraph{fmt::format("Next behind it: {}, at {} of it.",
                                                      study.label((*next)["configuration"].get<size_t>()),
                                                      IntervalText(*next, "ratio"))});
  }
  if (others.size() > 1) {
    section.blocks.emplace_back(Paragraph{fmt::format(
        "It was picked as the best of {}, so chance has helped its mean a little: measure it once more "
        "before a decision that hangs on the last percent.",
        others.size() + 1)});
  }
}

void AddReference(const StudyView& study, size_t best, Section& section) {
  if (best == study.reference()) {
    section.blocks.emplace_back(Paragraph{"It is the reference configuration itself."});
    return;
  }
  const Json& comparison = study.Comparison(best, study.objective());
  if (comparison.is_null()) return;
  section.blocks.emplace_back(Paragraph{fmt::format(
      "That is {} times the reference ({}), paired in {}{}.", IntervalText(comparison, "ratio"),
      study.label(study.reference()), Count(comparison["n"].get<int64_t>(), "block"), SeenText(comparison))});
}

void AddSkipped(const StudyView& study, Section& section) {
  List list;
  for (size_t i = 0; i < study.configurations(); ++i) {
    const std::string why = study.configuration(i).value("skipped_why", "");
    if (!why.empty()) list.items.push_back(fmt::format("{}: {}", study.label(i), why));
  }
  if (list.items.empty()) return;
  section.blocks.emplace_back(
      Paragraph{fmt::format("Not answered, as this machine could not try them: {} of the configurations.",
                            list.items.size()),
                Paragraph::Tone::kWarning});
  section.blocks.emplace_back(std::move(list));
}

// Asked for in the study file, and of no trial that counts.
void AddMissing(const StudyView& study, Section& section) {
  for (const Json& one : study.At("missing_metrics")) {
    const std::string nearest = one.value("nearest", "");
    section.blocks.emplace_back(Paragraph{
        fmt::format(
            "The {} wants the metric \"{}\", which no trial has{}. The columns of results.csv have the "
            "names of all.",
            one["wanted_by"].get<std::string>(), one["metric"].get<std::string>(),
            nearest.empty() ? "" : fmt::format("; {} is near it", nearest)),
        Paragraph::Tone::kWarning});
  }
}

void AddTargets(const StudyView& study, Section& section) {
  Table table{.caption = "Targets and cost",
              .columns = {"configuration", "p99 target", "rate target", "price of a million pictures"}};
  const auto verdict = [](const Json& targets, const char* key) {
    return targets.contains(key) ? targets[key]["verdict"].get<std::string>() : std::string("-");
  };
  for (size_t i = 0; i < study.configurations(); ++i) {
    const Json& one = study.configuration(i);
    if (!one.contains("targets")) continue;
    const Json& targets = one["targets"];
    const auto price = NumberAt(targets, "price_per_million_images");
    table.rows.push_back({study.label(i), verdict(targets, "p99_ms"), verdict(targets, "images_per_s"),
                          price ? Number(*price) : "-"});
  }
  if (table.rows.empty()) return;
  table.notes.push_back(
      "met or missed: the whole interval of the mean is on that side of the target; undecided: it holds the "
      "target.");
  section.blocks.emplace_back(std::move(table));
}

// Where the machine did not hold still, every figure is to be read with that in mind: it stands above them.
void AddDrift(const StudyView& study, Section& section) {
  const Json& drift = study.At("drift");
  if (!drift.is_object() || !drift["flagged"].get<bool>()) return;
  std::string text = "The machine did not hold still: the reference configuration";
  if (const auto change = NumberAt(drift, "change"))
    text += fmt::format(" changed by {} over the study", Percent(*change));
  const Json& restless = drift["restless_blocks"];
  if (!restless.empty()) {
    std::string blocks;
    for (const Json& block : restless)
      blocks += fmt::format("{}{}", blocks.empty() ? "" : ", ", block.get<int64_t>() + 1);
    text += fmt::format("; blocks off its middle by more than the margin: {}", blocks);
  }
  section.blocks.emplace_back(Paragraph{
      text + ". Ratios within blocks are little touched by that; means are.", Paragraph::Tone::kWarning});
}

}  // namespace

Section AnswerSection(const StudyView& study) {
  Section section{.title = "The answer"};
  const Json& answer = study.At("answer");
  if (answer.is_null()) {
    section.blocks.emplace_back(Paragraph{
        study.At("missing_metrics").is_null()
            ? "There is none: no trial counts. See the rejected and doubtful trials below."
            : fmt::format("There is none: no trial has the metric that decides, {}.", study.objective()),
        Paragraph::Tone::kWarning});
    AddMissing(study, section);
    AddSkipped(study, section);
    return section;
  }
  const auto best = answer["best"].get<size_t>();
  section.blocks.emplace_back(BestParagraph(study, best));
  AddDoubts(study, best, section);
  AddMissing(study, section);
  AddDrift(study, section);
  AddReference(study, best, section);
  AddOthers(study, best, answer["others"], section);
  AddSkipped(study, section);
  AddTargets(study, section);
  return section;
}

}  // namespace weir::report
