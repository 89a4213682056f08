#include "trial/study_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/count.h"
#include "base/json.h"
#include "study/figures.h"
#include "study/measured.h"
#include "trial/study_folder.h"

namespace weir::trial {

std::string DesignText(const TextStyle& style, const study::StudyFile& file, const study::Design& design) {
  std::string text = fmt::format("{}: {} in {} blocks, {} trials\n", style.Bold(file.name),
                                 Count(std::ssize(design.configurations), "configuration"), design.blocks,
                                 Count(std::ssize(design.trials)));
  for (const study::Combination& combination : design.combinations) {
    if (!combination.dropped.empty())
      text += fmt::format("  left out: {} ({})\n", DumpJson(combination.factors), combination.dropped);
  }
  return text;
}

std::string TrialsText(const study::Design& design) {
  std::string text;
  for (const study::Trial& trial : design.trials) {
    text += fmt::format("  {:>4} {:>3} {:<17} {}\n", trial.block + 1, trial.position + 1,
                        ToString(trial.role), design.configurations[trial.configuration].label);
  }
  return text;
}

std::string InabilityText(const TrialRunner::Inability& inability, const study::Design& design) {
  return fmt::format("{} of {} cannot be played here and will be skipped: {}",
                     Count(inability.configurations),
                     Count(std::ssize(design.configurations), "configuration"), EscapeBytes(inability.why));
}

std::string ProgressText(const study::Progress& progress, const study::PlayedTrials& last,
                         const study::Design& design) {
  std::string text = fmt::format(", {}", design.configurations[last.trial.configuration].label);
  if (progress.failed > 0) text += fmt::format(", {} failed", progress.failed);
  if (progress.skipped > 0) text += fmt::format(", {} skipped", progress.skipped);
  if (progress.left_s) text += fmt::format(", {:.0f} min left", std::ceil(*progress.left_s / 60));
  return text;
}

StudyNotes::StudyNotes(const study::StudyFile& study, const study::Design& design,
                       std::function<void(const std::string&)> note)
    : design_(design), note_(std::move(note)), wanted_(study::WantedMetrics(study)) {}

void StudyNotes::Add(const std::vector<TrialRunner::Inability>& inabilities) {
  for (const TrialRunner::Inability& one : inabilities) {
    noted_.insert(EscapeBytes(one.why));
    note_(InabilityText(one, design_) + " (--resume plays them once that is mended)");
  }
}

void StudyNotes::Add(const study::PlayedTrials& played) {
  const results::Verdict& verdict = played.record.verdict;
  const std::string& label = design_.configurations[played.trial.configuration].label;
  const bool is_bad =
      verdict.standing == results::Standing::kFailed || verdict.standing == results::Standing::kSkipped;
  if (is_bad && noted_.insert(verdict.message).second)
    note_(fmt::format("{} {}: {}", ToString(verdict.standing), label, verdict.message));
  if (study::Counts(played)) AddMissing(played);
}

void StudyNotes::AddMissing(const study::PlayedTrials& played) {
  const study::Configuration& configuration = design_.configurations[played.trial.configuration];
  const auto due = std::ranges::stable_partition(wanted_, [&](const study::WantedMetric& one) {
    return !study::Shows(one.where, configuration.factors);
  });
  if (due.empty()) return;
  std::vector<std::string> names;
  for (const auto& [name, value] : study::Flatten(played.record.metrics).numbers) names.push_back(name);
  for (const study::MissingMetric& one : study::FindMissing(due, names)) {
    note_(
        fmt::format("{}: the first trial that should have it ({}) has no metric \"{}\"{}; {} lists the names",
                    one.wanted_by, configuration.label, one.metric,
                    one.nearest ? fmt::format(", did you mean {}?", *one.nearest) : "", kJournalFile));
  }
  wanted_.erase(due.begin(), due.end());
}

}  // namespace weir::trial
