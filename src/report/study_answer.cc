// The first thing a reader sees: which configuration is best, by how much, how sure that is, and its limits.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/count.h"
#include "report/number.h"
#include "report/study_report.h"
#include "report/study_text.h"
#include "report/unit.h"

namespace weir::report {
namespace {

constexpr size_t kMostListed = 10;

std::string SuspectText(const StudyResult& study, size_t index) {
  const int64_t suspect = study.configurations[index].trials.suspect;
  return suspect == 0 ? "" : fmt::format("; SUSPECT: {} of them", suspect);
}

std::string FigureText(const StudyResult& study, size_t index, const std::string& metric) {
  const results::Figures* figures = study.FindFigures(index, metric);
  const Unit unit = UnitOf(metric);
  const std::string text = IntervalText(figures, unit.scale);
  return unit.name.empty() || figures == nullptr ? text : fmt::format("{} {}", text, unit.name);
}

std::string TargetsText(const StudyResult::Targets& targets) {
  std::string text;
  if (targets.p99_ms) text += fmt::format("p99 at most {} ms", Number(targets.p99_ms->at_most));
  if (targets.images_per_s)
    text += fmt::format("{}at least {} images/s", text.empty() ? "" : ", ",
                        Number(targets.images_per_s->at_least));
  return text;
}

std::string PriceText(const StudyResult::Targets& targets) {
  if (!targets.price_per_million_images) return "";
  const auto& interval = targets.price_interval;
  if (!interval) return Number(*targets.price_per_million_images);
  if (!interval->high)
    return fmt::format("{} ({} or more: the interval has no upper end)",
                       Number(*targets.price_per_million_images), Number(interval->low));
  return WithInterval(*targets.price_per_million_images, interval->low, interval->high);
}

// First sentence: the best configuration, with its figures and their spread.
std::string BestText(const StudyResult& study, const StudyResult::Answer& answer, size_t best) {
  const std::string& objective = study.study.metric;
  const results::Figures* figures = study.FindFigures(best, objective);
  const StudyResult::Targets& targets = study.configurations[best].targets;
  const std::string wanted = TargetsText(targets), price = PriceText(targets);
  const std::string of = answer.among.empty() ? "" : fmt::format("Among {}: ", answer.among);
  const std::string trials =
      fmt::format("{}{}", Count(figures == nullptr ? 0 : figures->n, "trial"), SuspectText(study, best));
  const std::string which =
      answer.ranked_by == StudyResult::Answer::kByPrice
          ? "the cheapest configuration"
          : fmt::format("the configuration with the {} {}",
                        study.study.higher_is_better ? "highest" : "lowest", MetricWords(objective));
  return fmt::format("{}{} is {}{}: {} over {}{}.", of, study.label(best), which,
                     wanted.empty() ? "" : fmt::format(" that meets the targets ({})", wanted),
                     FigureText(study, best, objective), trials,
                     price.empty() ? "" : fmt::format(", {} for a million pictures", price));
}

std::string FindingText(const results::TestedRatio& tested) {
  if (tested.told == results::TestedRatio::kNothing) return ToldText(tested);
  if (tested.told == results::TestedRatio::kTooFew) return "too few blocks to compare";
  return fmt::format("the difference is significant (adjusted p {})", Number(tested.adjusted_p));
}

// Second sentence: the runner-up.
std::string RunnerUpText(const StudyResult& study, const StudyResult::Answer& answer) {
  if (answer.others.empty()) return " No other configuration can be ranked beside it.";
  const StudyResult::Comparison& next = answer.others[0];
  const bool price = answer.ranked_by == StudyResult::Answer::kByPrice;
  return fmt::format(" The runner-up is {}, at {} of its {}: {}.", study.label(next.configuration),
                     IntervalText(next.tested.ratio), price ? "price" : MetricWords(study.study.metric),
                     FindingText(next.tested));
}

// Third sentence: the bottleneck, the next one, and the gain before it takes over.
std::string BottleneckText(const StudyResult& study, size_t best) {
  if (!study.configurations[best].bottleneck) return "";
  const StudyResult::Bottleneck& bottleneck = *study.configurations[best].bottleneck;
  const auto meaning = BottleneckMeaning(bottleneck.stage);
  std::string text =
      fmt::format(" Its bottleneck is {}{}{} (in {} of {})", bottleneck.stage, meaning.empty() ? "" : ", ",
                  meaning, bottleneck.times, Count(bottleneck.of, "trial"));
  if (bottleneck.gain) {
    text += fmt::format("; relieving it gives at most {} times the rate{}", IntervalText(*bottleneck.gain),
                        bottleneck.next.empty() ? "" : fmt::format(", then {} holds back", bottleneck.next));
  } else {
    text += "; what relieving it would give is unknown";
  }
  text += ".";
  if (!bottleneck.contradiction.empty())
    text += fmt::format(" The bounds contradict that: {}.", bottleneck.contradiction);
  return text;
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

void AddRunnersUp(const StudyResult& study, const StudyResult::Answer& answer, Section& section) {
  std::vector<std::string> alike, unknown;
  for (const StudyResult::Comparison& other : answer.others) {
    const std::string& told = other.tested.told;
    const std::string line =
        fmt::format("{}: {} of it", study.label(other.configuration), IntervalText(other.tested.ratio));
    if (told == results::TestedRatio::kTooFew) unknown.push_back(line);
    if (told == results::TestedRatio::kSmall) alike.push_back(line + ", a small difference");
    if (told == results::TestedRatio::kNothing)
      alike.push_back(fmt::format("{}, {}", line, ToldText(other.tested)));
  }
  AddList("Could be as good:", std::move(alike), section);
  AddList("Too few blocks to tell:", std::move(unknown), section);
  if (answer.others.size() > 1)
    section.blocks.emplace_back(Paragraph{fmt::format(
        "It was picked as the best of {}, so its mean owes a little to chance. Measure it once more before a "
        "decision that depends on the last percent.",
        answer.others.size() + 1)});
}

// The best over the reference. Where the answer ranks both, that is the same test from the other side: two
// tests of one pair in different families could say different things.
std::optional<results::TestedRatio> Against(const StudyResult& study, const StudyResult::Answer& answer) {
  for (const StudyResult::Comparison& other : answer.others) {
    if (other.configuration != study.reference || answer.ranked_by == StudyResult::Answer::kByPrice) continue;
    results::TestedRatio tested = other.tested;
    tested.ratio.ratio = 1 / other.tested.ratio.ratio;
    if (other.tested.ratio.low) tested.ratio.high = 1 / *other.tested.ratio.low;
    if (other.tested.ratio.high) tested.ratio.low = 1 / *other.tested.ratio.high;
    if (other.tested.told == results::TestedRatio::kHigher) tested.told = results::TestedRatio::kLower;
    if (other.tested.told == results::TestedRatio::kLower) tested.told = results::TestedRatio::kHigher;
    return tested;
  }
  const StudyResult::Comparison* comparison = study.FindComparison(answer.best, study.study.metric);
  return comparison == nullptr ? std::nullopt : std::optional(comparison->tested);
}

void AddReference(const StudyResult& study, const StudyResult::Answer& answer, Section& section) {
  const size_t best = answer.best;
  if (best == study.reference) {
    section.blocks.emplace_back(Paragraph{"It is the reference configuration itself."});
    return;
  }
  const auto found = Against(study, answer);
  if (!found) return;
  const results::TestedRatio& tested = *found;
  const auto& smallest = tested.smallest_difference;
  section.blocks.emplace_back(Paragraph{fmt::format(
      "It has {} times the {} of the reference ({}), paired in {}; {}{}.", IntervalText(tested.ratio),
      MetricWords(study.study.metric), study.label(study.reference), Count(tested.ratio.n, "block"),
      FindingText(tested),
      smallest
          ? fmt::format(". Only a difference of {} or more would reliably have shown", Percent(*smallest))
          : "")});
}

void AddOneAnswer(const StudyResult& study, const StudyResult::Answer& answer, Section& section) {
  const size_t best = answer.best;
  section.blocks.emplace_back(
      Paragraph{BestText(study, answer, best) + RunnerUpText(study, answer) + BottleneckText(study, best),
                Paragraph::Tone::kAnswer});
  const results::Figures* figures = study.FindFigures(best, study.study.metric);
  if (figures == nullptr || figures->n < 2)
    section.blocks.emplace_back(
        Paragraph{"A single trial does not tell how far off it may be: ask for more repeats.",
                  Paragraph::Tone::kWarning});
}

// The configurations that are measured, but not ranked.
void AddUnranked(const StudyResult& study, Section& section) {
  std::vector<std::string> items;
  for (const StudyResult::Configuration& one : study.configurations) {
    if (study.FindFigures(one.index, study.study.metric) == nullptr || one.most_trials_valid ||
        one.design.waterfall_only)
      continue;
    const results::TrialCounts& trials = one.trials;
    const int64_t all = trials.valid + trials.suspect + trials.invalid + trials.failed;
    items.push_back(fmt::format("{}: {} of {} VALID", one.design.label, trials.valid, Count(all, "trial")));
  }
  AddList("Not ranked, as most of their trials are not VALID:", std::move(items), section);
}

// Asked for in the study file, and measured by no trial that counts.
void AddMissing(const StudyResult& study, Section& section) {
  for (const StudyResult::Missing& one : study.missing_metrics) {
    section.blocks.emplace_back(Paragraph{
        fmt::format(
            "The {} wants the metric \"{}\", which no trial has{}. The columns of results.csv have the "
            "names of all.",
            one.wanted_by, one.metric,
            one.nearest.empty() ? "" : fmt::format("; {} is near it", one.nearest)),
        Paragraph::Tone::kWarning});
  }
}

void AddTargets(const StudyResult& study, Section& section) {
  Table table{
      .caption = "Targets and cost",
      .columns = {"configuration", "p99", "p99 target", "rate target", "price of a million pictures"}};
  const auto verdict = [](const auto& target) { return target ? target->verdict : std::string("-"); };
  bool any_p99 = false;
  for (const StudyResult::Configuration& one : study.configurations) {
    if (one.targets == StudyResult::Targets{} || one.design.waterfall_only) continue;
    const StudyResult::Targets& targets = one.targets;
    const std::string price = PriceText(targets);
    any_p99 = any_p99 || targets.p99_ms;
    table.rows.push_back({one.design.label, FigureText(study, one.index, "response_ms.p99"),
                          verdict(targets.p99_ms), verdict(targets.images_per_s),
                          price.empty() ? "-" : price});
  }
  if (table.rows.empty()) return;
  table.notes.push_back(
      "met or missed: the whole interval of the mean is on that side of the target; undecided: the interval "
      "holds the target.");
  section.blocks.emplace_back(std::move(table));
}

// Where the machine did not hold still, every figure is to be read with that in mind: it stands above them.
void AddDrift(const StudyResult& study, Section& section) {
  const StudyResult::Drift& drift = study.drift;
  if (!drift.flagged) return;
  std::string text = "The machine did not hold still.";
  if (drift.shown && drift.change && drift.low && drift.high)
    text += fmt::format(" The reference configuration changed by {} over the study ({} to {}).",
                        Percent(*drift.change), Percent(*drift.low), Percent(*drift.high));
  for (const StudyResult::RestlessBlock& block : drift.restless_blocks)
    text += fmt::format(
        " Block {} lies at {} times the median of all{}.", block.block + 1, Number(block.ratio),
        block.evidence.empty() ? ", without a recorded cause" : fmt::format(" ({})", block.evidence));
  section.blocks.emplace_back(Paragraph{text + " Ratios within blocks are little touched by that; means are.",
                                        Paragraph::Tone::kWarning});
}

void AddCommand(const StudyResult& study, Section& section) {
  const std::string command = study.command();
  if (command.empty()) return;
  section.blocks.emplace_back(Paragraph{"Repeat it with:"});
  section.blocks.emplace_back(Paragraph{command, Paragraph::Tone::kCommand});
}

// The command that plays the SUSPECT trials again, where they leave no answer.
void AddReplay(const StudyResult& study, Section& section) {
  std::string command = study.command();
  const bool any_suspect =
      std::ranges::any_of(study.configurations, [](const auto& one) { return one.trials.suspect > 0; });
  if (command.empty() || !any_suspect) return;
  constexpr std::string_view kNever = " --no-replay";
  if (const size_t at = command.find(kNever); at != std::string::npos) command.erase(at, kNever.size());
  for (const char* flag : {" --resume", " --wait-quiet 10m"}) {
    if (const std::string_view text = flag; !command.contains(text.substr(0, text.find(' ', 1))))
      command += text;
  }
  section.blocks.emplace_back(Paragraph{
      "Play the SUSPECT trials again when the machine is quiet (weir doctor names what disturbs it):"});
  section.blocks.emplace_back(Paragraph{std::move(command), Paragraph::Tone::kCommand});
}

}  // namespace

// Configurations that were skipped, grouped by the reason, which has the remedy.
std::vector<std::string> SkippedByReason(const StudyResult& study) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const StudyResult::Configuration& one : study.configurations) {
    const std::string& why = one.skipped_why;
    if (why.empty()) continue;
    auto group = groups.begin();
    while (group != groups.end() && group->first != why) ++group;
    if (group == groups.end()) group = groups.insert(groups.end(), {why, {}});
    group->second.push_back(one.design.label);
  }
  std::vector<std::string> lines;
  for (const auto& [why, labels] : groups) {
    std::string names;
    for (size_t i = 0; i < labels.size() && i < 3; ++i) names += (i > 0 ? "; " : "") + labels[i];
    if (labels.size() > 3) names += fmt::format("; and {} more", labels.size() - 3);
    lines.push_back(
        fmt::format("{}: {} ({})", Count(static_cast<int64_t>(labels.size()), "configuration"), why, names));
  }
  return lines;
}

Section AnswerSection(const StudyResult& study) {
  Section section{.title = "The answer"};
  std::vector<std::string> skipped = SkippedByReason(study);
  if (study.answers.empty()) {
    section.blocks.emplace_back(Paragraph{
        fmt::format("No answer: {}.", study.no_answer.empty() ? "no trial counts" : study.no_answer),
        Paragraph::Tone::kWarning});
    AddReplay(study, section);
    AddCommand(study, section);
    AddMissing(study, section);
    AddDrift(study, section);
    AddUnranked(study, section);
    AddList("Skipped:", std::move(skipped), section);
    AddTargets(study, section);
    return section;
  }
  for (const StudyResult::Answer& answer : study.answers) AddOneAnswer(study, answer, section);
  if (study.answers.size() > 1)
    section.blocks.emplace_back(
        Paragraph{"Real engines are not ranked against emulated accelerators: an emulated one takes the time "
                  "that it was told."});
  AddCommand(study, section);
  AddMissing(study, section);
  AddDrift(study, section);
  for (const StudyResult::Answer& answer : study.answers) {
    AddReference(study, answer, section);
    AddRunnersUp(study, answer, section);
  }
  AddUnranked(study, section);
  AddList("Skipped:", std::move(skipped), section);
  AddTargets(study, section);
  return section;
}

}  // namespace weir::report
