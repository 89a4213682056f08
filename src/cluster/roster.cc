#include "cluster/roster.h"

#include <fmt/format.h>

#include <algorithm>

namespace weir::cluster {

Result<int> Roster::Join(const std::string& name, std::optional<int> rank, int world, Instant now) {
  const auto refuse = [&](const std::string& why) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", name, why));
  };
  if (world > 0 && world != this->world())
    return refuse(fmt::format("it was started as one of {}, and {} are awaited here", world, this->world()));
  if (rank && (*rank < 0 || *rank >= this->world()))
    return refuse(
        fmt::format("its rank is {}, and {} are awaited here: ranks begin at 0", *rank, this->world()));
  if (!rank) {
    const auto missing = Missing();
    if (missing.empty()) return refuse(fmt::format("all {} are here already", this->world()));
    rank = missing.front();
  }
  Host& host = hosts_[static_cast<size_t>(*rank)];
  if (!host.name.empty())
    return refuse(fmt::format("its rank is {}, which {} has: give each another --rank", *rank, host.name));
  host.name = name.empty() ? fmt::format("rank {}", *rank) : name;
  host.heard = now;
  return *rank;
}

std::vector<int> Roster::Missing() const {
  std::vector<int> missing;
  for (int i = 0; i < world(); ++i)
    if (hosts_[static_cast<size_t>(i)].name.empty() || hosts_[static_cast<size_t>(i)].lost)
      missing.push_back(i);
  return missing;
}

void Roster::Heard(int rank, Instant now) { hosts_.at(static_cast<size_t>(rank)).heard = now; }

void Roster::Lose(int rank, const std::string& why) {
  Host& host = hosts_.at(static_cast<size_t>(rank));
  if (!host.lost) host.lost = why;
}

std::vector<int> Roster::LoseSilent(Instant now) {
  std::vector<int> silent;
  for (int i = 0; i < world(); ++i) {
    const Host& host = hosts_[static_cast<size_t>(i)];
    if (host.lost || !host.heard || now - *host.heard <= patience_) continue;
    Lose(i, fmt::format("no sign of it for {:.1f} s", Seconds(now - *host.heard)));
    silent.push_back(i);
  }
  return silent;
}

bool Roster::any_lost() const {
  return std::ranges::any_of(hosts_, [](const Host& host) { return host.lost.has_value(); });
}

std::string Roster::LostText() const {
  std::string text;
  for (int i = 0; i < world(); ++i) {
    const Host& host = hosts_[static_cast<size_t>(i)];
    if (!host.lost) continue;
    text += fmt::format("{}{} (rank {}): {}", text.empty() ? "" : "; ", host.name, i, *host.lost);
  }
  return text;
}

Result<std::vector<StepBarrier::Release>> StepBarrier::Arrive(int rank, int64_t step, bool last,
                                                              Instant now) {
  constexpr size_t kMostAhead = 4096;
  auto& waiting = ranks_.at(static_cast<size_t>(rank)).waiting;
  const int64_t next = released_ + std::ssize(waiting);
  if (step != next || waiting.size() >= kMostAhead)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("rank {} came to step {}; its next is {}", rank, step, next));
  waiting.push_back({.at = now, .last = last});
  std::vector<Release> releases;
  while (std::ranges::none_of(ranks_, [](const Rank& each) { return each.waiting.empty(); })) {
    Release release{.step = released_++, .waited = {}};
    Instant latest = ranks_.front().waiting.front().at;
    for (const Rank& each : ranks_) latest = std::max(latest, each.waiting.front().at);
    for (Rank& each : ranks_) {
      release.waited.push_back(latest - each.waiting.front().at);
      release.last |= each.waiting.front().last;
      each.waiting.pop_front();
    }
    releases.push_back(std::move(release));
  }
  return releases;
}

void StepBarrier::Restart() {
  for (Rank& rank : ranks_) rank.waiting.clear();
  released_ = 0;
}

}  // namespace weir::cluster
