#include "advise/search_trials.h"

#include <algorithm>

namespace weir::advise {
namespace {

using results::Standing;

constexpr int kMostAttempts = 2;

std::pair<std::string, std::string> KeyOf(const study::Trial& trial, const Json& factors) {
  return {trial.id, DumpJson(factors)};
}

}  // namespace

Result<SearchTrials> SearchTrials::Open(const std::string& path, const study::Header& header,
                                        study::Begin begin, const Clock& clock) {
  study::Opened opened = TRY(study::OpenStudy(path, header, begin));
  SearchTrials trials(clock);
  trials.journal_ = std::move(opened.journal);
  for (const study::PlayedTrials& played : opened.so_far.played) {
    if (played.record.verdict.standing == Standing::kSkipped) continue;
    const auto place = trials.known_.try_emplace(KeyOf(played.trial, played.record.factors), played).first;
    study::PlayedTrials& known = place->second;
    const int attempt = std::max(known.attempt, played.attempt);
    if (played.record.verdict.standing <= known.record.verdict.standing) known = played;
    known.attempt = attempt;
  }
  return trials;
}

study::PlayedTrials SearchTrials::TryOnce(const study::Trial& trial, const Json& factors, int attempt,
                                          const study::TrialFn& play) const {
  const Instant begin = clock_->Now();
  auto result = play(trial);
  study::PlayedTrials played{.trial = trial, .attempt = attempt, .took_s = Seconds(clock_->Now() - begin)};
  if (result) {
    played.record = *std::move(result);
  } else {
    results::Verdict& verdict = played.record.verdict;
    verdict.standing =
        result.error().code == ErrorCode::kUnsupported ? Standing::kSkipped : Standing::kFailed;
    verdict.message = EscapeBytes(result.error().message);
  }
  played.record.factors = factors;
  return played;
}

Status SearchTrials::Keep(const study::PlayedTrials& played) {
  return journal_ ? journal_->Append(study::ToJson(played)) : Status();
}

bool SearchTrials::IsOver(const study::PlayedTrials& played, bool judges) const {
  if (played.attempt >= kMostAttempts) return true;
  switch (played.record.verdict.standing) {
    case Standing::kFailed:
      return false;
    case Standing::kSuspect:
      return !judges || vain_replays_ >= study::kMostVainReplays;
    default:
      return true;
  }
}

Result<study::PlayedTrials> SearchTrials::Play(const study::Trial& trial, const Json& factors,
                                               const study::TrialFn& play, bool judges) {
  std::optional<study::PlayedTrials> best;
  if (const auto found = known_.find(KeyOf(trial, factors)); found != known_.end()) best = found->second;
  while (!best || !IsOver(*best, judges)) {
    study::PlayedTrials played = TryOnce(trial, factors, best ? best->attempt + 1 : 1, play);
    TRY_STATUS(Keep(played));
    const Standing standing = played.record.verdict.standing;
    if (best && best->record.verdict.standing == Standing::kSuspect)
      vain_replays_ = standing >= Standing::kSuspect ? vain_replays_ + 1 : 0;
    if (best && standing > best->record.verdict.standing)
      best->attempt = played.attempt;
    else
      best = std::move(played);
  }
  return *std::move(best);
}

}  // namespace weir::advise
