#include "study/run.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/file.h"
#include "study/difference.h"

namespace weir::study {
namespace {

using results::TrialResult, results::Standing;

constexpr int kMostAttempts = 2;

// The trials that have been played so far, and those that remain.
class Ledger {
 public:
  explicit Ledger(const Design& design)
      : took_(design.configurations.size()), count_(design.configurations.size()) {}

  void Add(const PlayedTrials& played) {
    State& state = states_[played.trial.id];
    // A second try that is worse than the first does not replace it (LastTries).
    const Standing standing = played.record.verdict.standing;
    const bool is_worse = state.attempts > 0 && standing > state.standing;
    state = {.attempts = played.attempt, .standing = is_worse ? state.standing : standing};
    const size_t configuration = played.trial.configuration;
    if (standing == Standing::kSkipped) {
      unsupported_.try_emplace(configuration, played.record.verdict.message);
    } else if (configuration < took_.size()) {
      took_[configuration] = took_[configuration].value_or(0) + played.took_s;
      ++count_[configuration];
    }
  }

  int Attempts(const Trial& trial) const {
    const auto found = states_.find(trial.id);
    return found == states_.end() ? 0 : found->second.attempts;
  }
  bool IsOver(const Trial& trial) const {
    const auto found = states_.find(trial.id);
    if (found == states_.end()) return false;
    return found->second.standing != Standing::kFailed || found->second.attempts >= kMostAttempts;
  }
  bool IsSuspectOnce(const Trial& trial) const {
    const auto found = states_.find(trial.id);
    return found != states_.end() && found->second.standing == Standing::kSuspect &&
           found->second.attempts < kMostAttempts;
  }
  bool IsSuspect(const Trial& trial) const { return states_.at(trial.id).standing == Standing::kSuspect; }
  // Why this machine cannot play it, as an earlier trial of it found.
  const std::string* WhyUnsupported(size_t configuration) const {
    const auto found = unsupported_.find(configuration);
    return found == unsupported_.end() ? nullptr : &found->second;
  }

  Progress Now(const Design& design) const {
    Progress progress{.total = std::ssize(design.trials)};
    std::vector<std::string> over;
    for (const Trial& trial : design.trials) {
      if (!IsOver(trial)) continue;
      const Standing standing = states_.at(trial.id).standing;
      progress.failed += standing == Standing::kFailed;
      progress.skipped += standing == Standing::kSkipped;
      over.push_back(trial.id);
    }
    progress.done = std::ssize(over);
    std::vector<std::optional<double>> mean(took_.size());
    for (size_t i = 0; i < took_.size(); ++i) {
      if (took_[i]) mean[i] = *took_[i] / static_cast<double>(count_[i]);
      if (unsupported_.contains(i)) mean[i] = 0;
    }
    progress.left_s = TimeNeeded(design, mean, over);
    return progress;
  }

 private:
  struct State {
    int attempts = 0;
    Standing standing = Standing::kValid;
  };
  std::map<std::string, State> states_;      // by id
  std::vector<std::optional<double>> took_;  // seconds in all, by configuration
  std::vector<int64_t> count_;
  std::map<size_t, std::string> unsupported_;
};

PlayedTrials TryOnce(const RunInputs& inputs, const Trial& trial, int attempt) {
  if (inputs.before) inputs.before(trial);
  const Instant begin = inputs.clock.Now();
  Result<TrialResult> result = inputs.play(trial);
  PlayedTrials played{.trial = trial, .attempt = attempt, .took_s = Seconds(inputs.clock.Now() - begin)};
  if (result) {
    played.record = std::move(*result);
  } else {
    const Error& error = result.error();
    results::Verdict& verdict = played.record.verdict;
    verdict.standing = error.code == ErrorCode::kUnsupported ? Standing::kSkipped : Standing::kFailed;
    verdict.message = EscapeBytes(error.message);
  }
  played.record.factors = inputs.design.configurations[trial.configuration].factors;
  return played;
}

PlayedTrials Skipped(const Design& design, const Trial& trial, const std::string& why) {
  PlayedTrials played{.trial = trial};
  played.record.factors = design.configurations[trial.configuration].factors;
  played.record.verdict = {.standing = Standing::kSkipped, .message = why};
  return played;
}

// A journal without a trial is what a command left that was refused before it played any: a new study takes
// its place.
Result<record::Journal::Opened> OpenJournal(const std::string& path, Begin begin) {
  {
    auto opened = TRY(record::Journal::Open(path));
    if (begin != Begin::kNew || opened.contents.entries.size() != 1) return opened;
  }
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return record::Journal::Open(path);
}

}  // namespace

Status CheckSame(const Header& before, const Header& now) {
  std::string message;
  const auto add = [&message](const char* what, const std::vector<std::string>& lines) {
    for (const std::string& line : lines) message += fmt::format("\n  {}: {}", what, line);
  };
  add("study file", Differences(before.study, now.study));
  add("host and build", ProvenanceDifferences(before.provenance, now.provenance));
  if (message.empty()) return {};
  return Fail(ErrorCode::kInvalidArgument,
              "the study was begun under other conditions; its trials cannot be mixed with new ones:" +
                  message + "\nbring the old conditions back, or begin a new study in another folder");
}

Result<Opened> OpenStudy(const std::string& path, const Header& header, Begin begin) {
  auto opened = TRY(OpenJournal(path, begin));
  Opened study{.journal = std::move(opened.journal), .so_far = {.header = header}};
  if (opened.contents.entries.empty()) {  // new, or killed before its first line
    TRY_STATUS(study.journal.Append(ToJson(header)));
    return study;
  }
  if (begin == Begin::kNew) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: was begun before; --resume goes on with it, or give another folder", path));
  }
  study.so_far = TRY_CONTEXT(ReadEntries(opened.contents), fmt::format("journal {}", path));
  TRY_STATUS(CheckSame(study.so_far.header, header));
  return study;
}

Result<Ending> PlayStudy(const RunInputs& inputs, record::Journal& journal,
                         std::span<const PlayedTrials> so_far) {
  const Design& design = inputs.design;
  Ledger ledger(design);
  // Trials that were skipped before are tried again: the missing part may be there now. A trial that is
  // skipped again for the same reason is in the journal already.
  std::map<std::string, std::string> skipped_before;  // the reason, by the trial's id
  for (const PlayedTrials& played : so_far) {
    if (played.record.verdict.standing == Standing::kSkipped) {
      skipped_before[played.trial.id] = played.record.verdict.message;
    } else {
      skipped_before.erase(played.trial.id);
      ledger.Add(played);
    }
  }
  const auto is_known = [&](const PlayedTrials& played) {
    const auto before = skipped_before.find(played.trial.id);
    return played.record.verdict.standing == Standing::kSkipped && before != skipped_before.end() &&
           before->second == played.record.verdict.message;
  };
  const auto keep = [&](const PlayedTrials& played) -> Status {
    if (!is_known(played)) TRY_STATUS(journal.Append(ToJson(played)));
    ledger.Add(played);
    if (inputs.progress) inputs.progress(ledger.Now(design), played);
    return {};
  };
  bool any_new = false;
  for (const Trial& trial : design.trials) {
    if (const std::string* why = ledger.WhyUnsupported(trial.configuration); why && !ledger.IsOver(trial)) {
      TRY_STATUS(keep(Skipped(design, trial, *why)));
      continue;
    }
    while (!ledger.IsOver(trial)) {
      if (inputs.stop.stop_requested()) return Ending::kStopped;
      TRY_STATUS(keep(TryOnce(inputs, trial, ledger.Attempts(trial) + 1)));
      any_new = any_new || ledger.WhyUnsupported(trial.configuration) == nullptr;
    }
  }
  const bool replays =
      inputs.replay == Replay::kAlways || (inputs.replay == Replay::kAfterNewTrials && any_new);
  int vain = 0;
  for (const Trial& trial : design.trials) {
    if (!replays || vain == kMostVainReplays) break;
    if (!ledger.IsSuspectOnce(trial)) continue;
    if (inputs.stop.stop_requested()) return Ending::kStopped;
    TRY_STATUS(keep(TryOnce(inputs, trial, ledger.Attempts(trial) + 1)));
    vain = ledger.IsSuspect(trial) ? vain + 1 : 0;
  }
  return Ending::kDone;
}

}  // namespace weir::study
