// The first thing a reader sees: which configuration is best, by how much, how sure that is, and its limits.
#include <fmt/format.h>

#include <map>
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

std::string FigureText(const StudyView& study, size_t index, const std::string& metric) {
  const Json& figures = study.Metric(index, metric);
  const Unit unit = UnitOf(metric);
  const std::string text = IntervalText(figures, "mean", unit.scale);
  return unit.name.empty() || figures.is_null() ? text : fmt::format("{} {}", text, unit.name);
}

std::string TargetsText(const Json& targets) {
  std::string text;
  if (targets.contains("p99_ms"))
    text += fmt::format("p99 at most {} ms", Number(targets["p99_ms"]["at_most"].get<double>()));
  if (targets.contains("images_per_s"))
    text += fmt::format("{}at least {} images/s", text.empty() ? "" : ", ",
                        Number(targets["images_per_s"]["at_least"].get<double>()));
  return text;
}

std::string PriceText(const Json& targets) {
  const auto price = NumberAt(targets, "price_per_million_images");
  if (!price) return "";
  const Json interval = targets.value("price_interval", Json::object());
  return WithInterval(*price, NumberAt(interval, "low"), NumberAt(interval, "high"));
}

// First sentence: the best configuration, with its figures and their spread.
std::string BestText(const StudyView& study, const Json& answer, size_t best) {
  const Json& figures = study.Metric(best, study.objective());
  const Json targets = study.configuration(best).value("targets", Json::object());
  const std::string wanted = TargetsText(targets), price = PriceText(targets);
  const std::string among = answer.value("among", "");
  const std::string of = among.empty() ? "" : fmt::format("Among {}: ", among);
  const std::string trials =
      fmt::format("{}{}", Count(figures["n"].get<int64_t>(), "trial"), SuspectText(study, best));
  const std::string metric = MetricWords(study.objective());
  const std::string which = answer.value("ranked_by", "") == "price_per_million_images"
                                ? "the cheapest configuration"
                                : fmt::format("the configuration with the {} {}",
                                              study.higher_is_better() ? "highest" : "lowest", metric);
  return fmt::format("{}{} is {}{}: {} over {}{}.", of, study.label(best), which,
                     wanted.empty() ? "" : fmt::format(" that meets the targets ({})", wanted),
                     FigureText(study, best, study.objective()), trials,
                     price.empty() ? "" : fmt::format(", {} for a million pictures", price));
}

std::string ToldText(const Json& tested) {
  const std::string told = tested["told"].get<std::string>();
  const auto limit = NumberAt(tested, "limit");
  if (told == "no difference shown" && limit) return fmt::format("{} (limit {})", told, Percent(*limit));
  if (told == "too few") return "too few blocks to compare";
  return told == "no difference shown" ? told
                                       : fmt::format("the difference is significant (adjusted p {})",
                                                     Number(tested.value("adjusted_p", 1.0)));
}

// Second sentence: the runner-up.
std::string RunnerUpText(const StudyView& study, const Json& answer) {
  const Json& others = answer["others"];
  if (others.empty()) return " No other configuration can be ranked beside it.";
  const Json& next = others[0];
  const bool price = answer.value("ranked_by", "") == "price_per_million_images";
  return fmt::format(" The runner-up is {}, at {} of its {}: {}.",
                     study.label(next["configuration"].get<size_t>()), IntervalText(next, "ratio"),
                     price ? "price" : MetricWords(study.objective()), ToldText(next));
}

// Third sentence: the bottleneck, the next one, and the gain before it takes over.
std::string BottleneckText(const StudyView& study, size_t best) {
  const auto found = study.configuration(best).find("bottleneck");
  if (found == study.configuration(best).end()) return "";
  const Json& bottleneck = *found;
  const std::string stage = bottleneck["stage"].get<std::string>();
  const auto meaning = BottleneckMeaning(stage);
  std::string text =
      fmt::format(" Its bottleneck is {}{}{} (in {} of {})", stage, meaning.empty() ? "" : ", ", meaning,
                  bottleneck["times"].get<int64_t>(), Count(bottleneck["of"].get<int64_t>(), "trial"));
  if (bottleneck.contains("gain")) {
    const std::string next = bottleneck.value("next", "");
    text += fmt::format("; relieving it gives at most {} times the rate{}",
                        IntervalText(bottleneck["gain"], "ratio"),
                        next.empty() ? "" : fmt::format(", then {} holds back", next));
  }
  return text + ".";
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

void AddRunnersUp(const StudyView& study, const Json& answer, Section& section) {
  std::vector<std::string> alike, unknown;
  for (const Json& other : answer["others"]) {
    const std::string line = fmt::format("{}: {} of it", study.label(other["configuration"].get<size_t>()),
                                         IntervalText(other, "ratio"));
    if (other["told"] == "too few") unknown.push_back(line);
    if (other["told"] == "no difference shown" || other["told"] == "small difference")
      alike.push_back(fmt::format(
          "{}, {}", line, other["told"] == "small difference" ? "a small difference" : ToldText(other)));
  }
  AddList("Could be as good:", std::move(alike), section);
  AddList("Too few blocks to tell:", std::move(unknown), section);
  if (answer["others"].size() > 1)
    section.blocks.emplace_back(Paragraph{fmt::format(
        "It was picked as the best of {}, so its mean owes a little to chance. Measure it once more before a "
        "decision that depends on the last percent.",
        answer["others"].size() + 1)});
}

void AddReference(const StudyView& study, size_t best, Section& section) {
  if (best == study.reference()) {
    section.blocks.emplace_back(Paragraph{"It is the reference configuration itself."});
    return;
  }
  const Json& comparison = study.Comparison(best, study.objective());
  if (comparison.is_null()) return;
  const auto smallest = NumberAt(comparison, "smallest_difference");
  section.blocks.emplace_back(Paragraph{fmt::format(
      "It has {} times the {} of the reference ({}), paired in {}; {}{}.", IntervalText(comparison, "ratio"),
      MetricWords(study.objective()), study.label(study.reference()),
      Count(comparison["n"].get<int64_t>(), "block"), ToldText(comparison),
      smallest
          ? fmt::format(". Only a difference of {} or more would reliably have shown", Percent(*smallest))
          : "")});
}

void AddOneAnswer(const StudyView& study, const Json& answer, Section& section) {
  const auto best = answer["best"].get<size_t>();
  section.blocks.emplace_back(
      Paragraph{BestText(study, answer, best) + RunnerUpText(study, answer) + BottleneckText(study, best),
                Paragraph::Tone::kAnswer});
  if (study.Metric(best, study.objective())["n"].get<int64_t>() < 2)
    section.blocks.emplace_back(
        Paragraph{"A single trial does not tell how far off it may be: ask for more repeats.",
                  Paragraph::Tone::kWarning});
}

// The configurations that are measured, but not ranked.
void AddUnranked(const StudyView& study, Section& section) {
  std::vector<std::string> items;
  for (size_t i = 0; i < study.configurations(); ++i) {
    const Json& one = study.configuration(i);
    if (study.Metric(i, study.objective()).is_null() || one.value("most_trials_valid", true) ||
        one.value("waterfall_only", false))
      continue;
    const Json& trials = one["trials"];
    const int64_t valid = trials["valid"].get<int64_t>();
    const int64_t all = valid + trials["suspect"].get<int64_t>() + trials["invalid"].get<int64_t>() +
                        trials["failed"].get<int64_t>();
    items.push_back(fmt::format("{}: {} of {} VALID", study.label(i), valid, Count(all, "trial")));
  }
  AddList("Not ranked, as most of their trials are not VALID:", std::move(items), section);
}

// Asked for in the study file, and measured by no trial that counts.
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
  Table table{
      .caption = "Targets and cost",
      .columns = {"configuration", "p99", "p99 target", "rate target", "price of a million pictures"}};
  const auto verdict = [](const Json& targets, const char* key) {
    return targets.contains(key) ? targets[key]["verdict"].get<std::string>() : std::string("-");
  };
  bool any_p99 = false;
  for (size_t i = 0; i < study.configurations(); ++i) {
    const Json& one = study.configuration(i);
    if (!one.contains("targets") || one.value("waterfall_only", false)) continue;
    const Json& targets = one["targets"];
    const std::string price = PriceText(targets);
    any_p99 = any_p99 || targets.contains("p99_ms");
    table.rows.push_back({study.label(i), FigureText(study, i, "response_ms.p99"), verdict(targets, "p99_ms"),
                          verdict(targets, "images_per_s"), price.empty() ? "-" : price});
  }
  if (table.rows.empty()) return;
  table.notes.push_back(
      "met or missed: the whole interval of the mean is on that side of the target; undecided: the interval "
      "holds the target.");
  section.blocks.emplace_back(std::move(table));
}

// Where the machine did not hold still, every figure is to be read with that in mind: it stands above them.
void AddDrift(const StudyView& study, Section& section) {
  const Json& drift = study.At("drift");
  if (!drift.is_object() || !drift["flagged"].get<bool>()) return;
  std::string text = "The machine did not hold still.";
  const auto change = NumberAt(drift, "change");
  if (drift.value("shown", false) && change)
    text +=
        fmt::format(" The reference configuration changed by {} over the study ({} to {}).", Percent(*change),
                    Percent(*NumberAt(drift, "low")), Percent(*NumberAt(drift, "high")));
  for (const Json& block : drift["restless_blocks"]) {
    const std::string evidence = block.value("evidence", "");
    text += fmt::format(" Block {} lies at {} times the median of all{}.", block["block"].get<int64_t>() + 1,
                        Number(block["ratio"].get<double>()),
                        evidence.empty() ? ", without a recorded cause" : fmt::format(" ({})", evidence));
  }
  section.blocks.emplace_back(Paragraph{text + " Ratios within blocks are little touched by that; means are.",
                                        Paragraph::Tone::kWarning});
}

void AddCommand(const StudyView& study, Section& section) {
  const Json& provenance = study.At("provenance");
  const std::string command = provenance.is_object() ? provenance.value("command", "") : "";
  if (command.empty()) return;
  section.blocks.emplace_back(Paragraph{"Repeat it with:"});
  section.blocks.emplace_back(Paragraph{command, Paragraph::Tone::kCommand});
}

}  // namespace

// Configurations that were skipped, grouped by the reason, which has the remedy.
std::vector<std::string> SkippedByReason(const StudyView& study) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (size_t i = 0; i < study.configurations(); ++i) {
    const std::string why = study.configuration(i).value("skipped_why", "");
    if (why.empty()) continue;
    auto group = groups.begin();
    while (group != groups.end() && group->first != why) ++group;
    if (group == groups.end()) group = groups.insert(groups.end(), {why, {}});
    group->second.push_back(study.label(i));
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

Section AnswerSection(const StudyView& study) {
  Section section{.title = "The answer"};
  const Json& answers = study.At("answers");
  std::vector<std::string> skipped = SkippedByReason(study);
  if (study.At("answer").is_null()) {
    section.blocks.emplace_back(Paragraph{
        fmt::format("No answer: {}.", study.json().value("no_answer", std::string("no trial counts"))),
        Paragraph::Tone::kWarning});
    AddMissing(study, section);
    AddDrift(study, section);
    AddUnranked(study, section);
    AddList("Skipped:", std::move(skipped), section);
    AddTargets(study, section);
    AddCommand(study, section);
    return section;
  }
  for (const Json& answer : answers) AddOneAnswer(study, answer, section);
  if (answers.size() > 1)
    section.blocks.emplace_back(
        Paragraph{"Real engines are not ranked against emulated accelerators: an emulated one takes the time "
                  "that it was told."});
  AddCommand(study, section);
  AddMissing(study, section);
  AddDrift(study, section);
  for (const Json& answer : answers) {
    AddReference(study, answer["best"].get<size_t>(), section);
    AddRunnersUp(study, answer, section);
  }
  AddUnranked(study, section);
  AddList("Skipped:", std::move(skipped), section);
  AddTargets(study, section);
  return section;
}

}  // namespace weir::report
