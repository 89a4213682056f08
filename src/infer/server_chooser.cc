#include "infer/server_chooser.h"

#include <algorithm>

namespace weir::infer {

bool ServerChooser::IsBetter(size_t candidate, size_t than) const {
  return balance_ == Balance::kLeastInFlight && servers_[candidate].in_flight < servers_[than].in_flight;
}

size_t ServerChooser::Choose(Instant now, std::optional<size_t> failed) {
  std::optional<size_t> chosen;
  const auto look = [&](bool all) {
    for (size_t i = 0; i < servers_.size(); ++i) {
      const size_t candidate = (next_ + i) % servers_.size();
      if (candidate == failed && servers_.size() > 1) continue;
      if (!all && !in_service(candidate, now)) continue;
      if (!chosen || IsBetter(candidate, *chosen)) chosen = candidate;
      if (balance_ != Balance::kLeastInFlight) return;
    }
  };
  look(false);
  if (!chosen) look(true);
  Server& server = servers_[*chosen];
  next_ = (*chosen + 1) % servers_.size();
  server.in_flight += 1;
  if (server.rest > Duration{}) {
    server.on_trial = true;
    server.rests_until = now + server.rest;  // one call at a time
  }
  return *chosen;
}

void ServerChooser::Ended(size_t server, End end, Instant now) {
  Server& ended = servers_[server];
  ended.in_flight -= 1;
  if (end != End::kLost) {
    ended.rest = {};
    ended.rests_until = {};
    ended.on_trial = false;
    return;
  }
  if (ended.rest > Duration{} && !ended.on_trial) return;  // calls that were lost together count once
  ended.on_trial = false;
  ended.rest = std::clamp(2 * ended.rest, kShortestRest, kLongestRest);
  ended.rests_until = now + ended.rest;
}

}  // namespace weir::infer
