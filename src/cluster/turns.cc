#include "cluster/turns.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weir::cluster {
namespace {

std::unexpected<Error> OutOfOrder(const Word& word, const char* why) {
  return Fail(ErrorCode::kCorrupt, fmt::format("it says \"{}\" out of order: {}", KindOf(word), why));
}

}  // namespace

Result<AgentTurns::Turn> AgentTurns::Take(Word word, Instant now) {
  if (over_) return OutOfOrder(word, "it has said goodbye");
  if (const auto* welcome = std::get_if<word::Welcome>(&word)) {
    if (welcomed_) return OutOfOrder(word, "this agent has its rank");
    if ((rank_ && *rank_ != welcome->rank) || (world_ > 0 && world_ != welcome->world))
      return OutOfOrder(word, "this agent was started with another rank, or as one of another number");
    welcomed_ = true;
    return *welcome;
  }
  if (auto* refuse = std::get_if<word::Refuse>(&word)) {
    if (welcomed_) return OutOfOrder(word, "this agent has its rank");
    over_ = true;
    return std::move(*refuse);
  }
  if (!welcomed_) return OutOfOrder(word, "the agent has no rank yet");
  if (const auto* ping = std::get_if<word::Ping>(&word))
    return word::Pong{.n = ping->n, .at = now.time_since_epoch().count()};
  if (const auto* release = std::get_if<word::Release>(&word)) return TakeRelease(*release, now);
  if (auto* call = std::get_if<word::Call>(&word)) {
    if (called_) return OutOfOrder(word, "the call before is not answered");
    if (last_id_ && call->id <= *last_id_) return OutOfOrder(word, "its number was used before");
    last_id_ = call->id;
    called_ = true;
    return std::move(*call);
  }
  if (std::holds_alternative<word::Stop>(word)) return called_ ? Turn(word::Stop()) : Turn();
  if (std::holds_alternative<word::Beat>(word)) return Turn();
  if (std::holds_alternative<word::Bye>(word)) {
    over_ = true;
    return word::Bye();
  }
  return OutOfOrder(word, "only an agent says this");
}

Result<AgentTurns::Turn> AgentTurns::TakeRelease(const word::Release& release, Instant now) {
  if (arrivals_.empty() || arrivals_.front().step != release.step) {
    if (past_ == 0) return OutOfOrder(release, "this rank has not come to that step");
    --past_;
    return Turn();
  }
  const Instant arrived = std::exchange(arrivals_.front().at, {});
  arrivals_.pop_front();
  return PassedStep{.step = release.step,
                    .at = now,
                    .last = release.last,
                    .cost = std::max(Duration{}, now - arrived - Duration(release.waited_ns))};
}

void AgentTurns::EndSteps() {
  past_ += std::ssize(arrivals_);
  arrivals_.clear();
}

Result<RankTurns::Turn> RankTurns::Take(Word word) {
  if (auto* hello = std::get_if<word::Hello>(&word)) {
    if (std::exchange(greeted_, true)) return OutOfOrder(word, "it has its rank");
    return std::move(*hello);
  }
  if (!greeted_) return OutOfOrder(word, "its first word is \"hello\"");
  if (const auto* pong = std::get_if<word::Pong>(&word)) {
    if (pong->n <= ponged_ || pong->n > pinged_) return OutOfOrder(word, "no such ping is open");
    ponged_ = pong->n;
    return ponged_ == pinged_ ? Turn(*pong) : Turn();  // an earlier one is not awaited any more
  }
  if (auto* answer = std::get_if<word::Answer>(&word)) {
    if (called_ != answer->id) return OutOfOrder(word, "no such call is open");
    called_.reset();
    return std::move(*answer);
  }
  if (auto* fault = std::get_if<word::Fault>(&word)) {
    if (called_ != fault->id) return OutOfOrder(word, "no such call is open");
    called_.reset();
    return std::move(*fault);
  }
  if (const auto* arrive = std::get_if<word::Arrive>(&word)) {
    if (!called_) return OutOfOrder(word, "no call is open");
    return *arrive;
  }
  if (std::holds_alternative<word::Beat>(word)) return Turn();
  return OutOfOrder(word, "only rank 0 says this");
}

}  // namespace weir::cluster
