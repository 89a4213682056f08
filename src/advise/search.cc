#include "advise/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <ranges>
#include <utility>

#include "base/seed.h"
#include "base/shuffle.h"
#include "stats/paired.h"

namespace weir::advise {
namespace {

constexpr size_t kLeastScreened = 8;

// Returns the greatest number of a level of each factor, at least 1.
std::vector<double> Ranges(const std::vector<Point>& points) {
  std::vector<double> ranges(points[0].size(), 1);
  for (const Point& point : points) {
    for (size_t i = 0; i < point.size(); ++i) ranges[i] = std::max(ranges[i], double(point[i]));
  }
  return ranges;
}

double Distance(const Point& a, const Point& b, const std::vector<double>& ranges) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]) / ranges[i];
  return sum;
}

// Picks points one after another, each as far from those picked as any is; ties by the shuffled order
// (Johnson, Moore and Ylvisaker 1990, maximin designs, greedily).
std::vector<size_t> SpreadOut(const std::vector<Point>& points, size_t count, std::vector<size_t> order) {
  const std::vector<double> ranges = Ranges(points);
  std::vector<double> nearest(points.size(), std::numeric_limits<double>::infinity());
  std::vector<size_t> picked;
  while (picked.size() < count) {
    const size_t next = *std::ranges::max_element(order, {}, [&](size_t i) { return nearest[i]; });
    picked.push_back(next);
    for (size_t i = 0; i < points.size(); ++i)
      nearest[i] = std::min(nearest[i], Distance(points[i], points[next], ranges));
    nearest[next] = -1;
  }
  return picked;
}

// REQUIRES: a result that counts.
double MeanLog(const std::vector<SearchResult>& results) {
  double sum = 0;
  int64_t count = 0;
  for (const SearchResult& one : results) {
    if (!one.counts()) continue;
    sum += std::log(one.score);
    ++count;
  }
  return sum / static_cast<double>(count);
}

// Returns whether the first is better. The nearer of two that miss a target is: it leads to those that meet
// it.
bool IsBetter(const SearchResult& one, const SearchResult& other) {
  if (one.counts() != other.counts()) return one.counts();
  if (one.meets != other.meets) return one.meets;
  if (!one.meets && one.miss != other.miss) return one.miss < other.miss;
  return one.score > other.score;
}

// A finalist meets the targets if most of its fresh trials did.
bool MostlyMeets(const std::vector<SearchResult>& results) {
  return 2 * std::ranges::count_if(results, &SearchResult::meets) > std::ssize(results);
}

// Returns one for each block in which both have a trial that counts.
std::vector<double> LogRatios(const std::vector<SearchResult>& over, const std::vector<SearchResult>& under) {
  std::vector<double> logs;
  for (size_t i = 0; i < std::min(over.size(), under.size()); ++i) {
    if (over[i].counts() && under[i].counts()) logs.push_back(std::log(over[i].score / under[i].score));
  }
  return logs;
}

}  // namespace

std::string_view ToString(Ending ending) {
  switch (ending) {
    case Ending::kClear:
      return "clear";
    case Ending::kEquivalent:
      return "equivalent";
    case Ending::kBlocksUsedUp:
      return "blocks used up";
    case Ending::kNoneMeets:
      return "none meets";
  }
  return "";
}

std::string_view ToString(Phase phase) {
  switch (phase) {
    case Phase::kScreening:
      return "screening";
    case Phase::kRegion:
      return "promising region";
    case Phase::kConfirmation:
      return "confirmation";
    case Phase::kDone:
      return "done";
  }
  return "";
}

Result<Search> Search::Create(std::vector<Point> candidates, SearchOptions options) {
  if (candidates.empty()) return Fail(ErrorCode::kInvalidArgument, "the search has no candidate");
  const std::set<Point> different(candidates.begin(), candidates.end());
  if (different.size() != candidates.size())
    return Fail(ErrorCode::kInvalidArgument, "the search has a candidate twice");
  for (const Point& one : candidates) {
    if (one.size() != candidates[0].size())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("a candidate of the search has {} levels, another {}", one.size(),
                              candidates[0].size()));
  }
  return Search(std::move(candidates), options);
}

Search::Search(std::vector<Point> candidates, SearchOptions options)
    : candidates_(std::move(candidates)), options_(options) {
  for (size_t i = 0; i < candidates_.size(); ++i) index_[candidates_[i]] = i;
  std::vector<size_t> order(candidates_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (std::ssize(candidates_) <= options_.finalists) {
    finalists_ = order;
    phase_ = Phase::kConfirmation;
    QueueBlock();
    return;
  }
  Random random = Seed(options_.seed).Stream("screening").MakeRandom();
  Shuffle(order, random);
  const auto share = static_cast<size_t>(options_.screening_share * static_cast<double>(order.size()));
  queue_ = SpreadOut(candidates_, std::min(order.size(), std::max(kLeastScreened, share)), order);
  std::ranges::reverse(queue_);
}

bool Search::Better(size_t a, size_t b) const { return IsBetter(tried_.at(a), tried_.at(b)); }

std::vector<size_t> Search::ByRank() const {
  std::vector<size_t> order;
  for (const auto& [candidate, result] : tried_) order.push_back(candidate);
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return Better(a, b); });
  return order;
}

// The nearest candidate up and the nearest down in each factor: levels between them may be no combination.
std::vector<size_t> Search::Neighbours(size_t candidate) const {
  std::vector<size_t> neighbours;
  const std::vector<double> ranges = Ranges(candidates_);
  for (size_t factor = 0; factor < ranges.size(); ++factor) {
    for (const int step : {-1, 1}) {
      Point point = candidates_[candidate];
      for (point[factor] += step; point[factor] >= 0 && point[factor] <= int(ranges[factor]);
           point[factor] += step) {
        const auto found = index_.find(point);
        if (found == index_.end()) continue;
        neighbours.push_back(found->second);
        break;
      }
    }
  }
  return neighbours;
}

std::optional<size_t> Search::Next() {
  if (phase_ == Phase::kDone) return std::nullopt;
  return queue_.back();
}

void Search::Take(const SearchResult& result) {
  const size_t candidate = queue_.back();
  queue_.pop_back();
  ++trials_;
  if (phase_ == Phase::kConfirmation)
    confirmed_[candidate].push_back(result);
  else
    TakeExploration(candidate, result);
  if (queue_.empty()) Advance();
}

// The better of two trials counts: a disturbance makes a trial worse.
void Search::TakeExploration(size_t candidate, const SearchResult& result) {
  const auto [place, is_new] = tried_.try_emplace(candidate, result);
  SearchResult& known = place->second;
  if (!is_new && IsBetter(result, known)) known = result;
}

void Search::Advance() {
  if (phase_ == Phase::kConfirmation) {
    JudgeConfirmation();
    return;
  }
  phase_ = Phase::kRegion;
  ExploreRegion();
  if (queue_.empty()) LookAgain();
  if (queue_.empty()) BeginConfirmation();
}

// The best first: those whose score is above that of the best that meets the targets.
std::vector<size_t> Search::NearMisses() const {
  const std::vector<size_t> order = ByRank();
  const SearchResult& best = tried_.at(order[0]);
  std::vector<size_t> near;
  if (!best.meets) return near;  // the ranks have them
  for (const size_t one : order) {
    const SearchResult& result = tried_.at(one);
    if (!result.meets && result.miss <= options_.near_miss && result.score > best.score) near.push_back(one);
  }
  return near;
}

void Search::Explore(size_t candidate) {
  if (!explored_.insert(candidate).second) return;
  for (const size_t neighbour : Neighbours(candidate)) {
    if (!tried_.contains(neighbour) && std::ranges::find(queue_, neighbour) == queue_.end())
      queue_.push_back(neighbour);
  }
}

void Search::ExploreRegion() {
  const auto first = [](const std::vector<size_t>& order, int count) {
    return std::views::take(order, count);
  };
  const std::vector<size_t> order = ByRank(), near = NearMisses();
  for (const size_t one : first(order, options_.starts)) Explore(one);
  for (const size_t one : first(near, options_.near_starts)) Explore(one);
}

void Search::LookAgain() {
  const size_t best = ByRank()[0];
  for (const size_t neighbour : Neighbours(best)) {
    if (again_.insert(neighbour).second) queue_.push_back(neighbour);
  }
}

void Search::BeginConfirmation() {
  const std::vector<size_t> order = ByRank();
  const SearchResult& first = tried_.at(order[0]);
  if (!first.meets && (!first.counts() || first.miss > options_.near_miss)) {
    answer_ = {.winner = order[0], .ending = Ending::kNoneMeets};
    phase_ = Phase::kDone;
    return;
  }
  if (first.meets) {
    const std::vector<size_t> near = NearMisses();
    for (const size_t one : std::views::take(near, options_.near_finalists)) finalists_.push_back(one);
  } else {
    for (const size_t one : order) {
      const bool is_near = tried_.at(one).counts() && tried_.at(one).miss <= options_.near_miss;
      if (is_near && std::ssize(finalists_) < options_.finalists) finalists_.push_back(one);
    }
  }
  const double best = first.score;
  for (const size_t one : order) {
    const SearchResult& result = tried_.at(one);
    if (finalists_.size() < static_cast<size_t>(options_.finalists) && result.meets &&
        result.score >= best * (1 - options_.near))
      finalists_.push_back(one);
  }
  phase_ = Phase::kConfirmation;
  QueueBlock();
}

void Search::QueueBlock() {
  queue_.clear();
  const bool may_leave = blocks_ >= options_.least_blocks;
  for (const size_t one : finalists_) {
    if (!may_leave || std::ranges::any_of(confirmed_[one], &SearchResult::meets)) queue_.push_back(one);
  }
  Random random = Seed(options_.seed).Stream(fmt::format("block-{}", blocks_)).MakeRandom();
  Shuffle(queue_, random);
  ++blocks_;
}

void Search::JudgeConfirmation() {
  if (blocks_ < options_.least_blocks) {
    QueueBlock();
    return;
  }
  std::vector<size_t> order;
  for (const size_t one : finalists_) {
    if (MostlyMeets(confirmed_[one])) order.push_back(one);
  }
  std::ranges::stable_sort(
      order, [&](size_t a, size_t b) { return MeanLog(confirmed_.at(a)) > MeanLog(confirmed_.at(b)); });
  const bool capped = options_.most_trials > 0 && trials_ + std::ssize(finalists_) > options_.most_trials;
  const bool last = blocks_ >= options_.most_blocks || capped;
  if (order.empty()) {
    const bool any_met = std::ranges::any_of(
        finalists_, [&](size_t one) { return std::ranges::any_of(confirmed_[one], &SearchResult::meets); });
    if (!last && any_met) return QueueBlock();
    answer_ = {.winner = finalists_[0], .ending = Ending::kNoneMeets};
    phase_ = Phase::kDone;
    return;
  }
  const int looks = options_.most_blocks - options_.least_blocks + 1;
  const double tests = static_cast<double>(looks) * std::max(1.0, double(finalists_.size() - 1));
  bool all_clear = true, all_settled = true;
  answer_ = {.winner = order[0]};
  for (size_t i = 1; i < order.size(); ++i) {
    const auto ratio =
        stats::RatioOfLogs(LogRatios(confirmed_[order[0]], confirmed_[order[i]]), 1 - options_.alpha / tests);
    const bool known = ratio && ratio->low && ratio->high;  // two blocks with both
    const bool clear = known && *ratio->low > 1;
    all_clear = all_clear && clear;
    all_settled = all_settled && (clear || (known && *ratio->high <= 1 + options_.margin));
    if (i > 1) continue;
    answer_.runner_up = order[1];
    answer_.significant = clear;
    if (!known) continue;
    answer_.difference_low = ratio->low;
    answer_.difference_high = ratio->high;
  }
  if (!all_settled && !last) return QueueBlock();
  answer_.ending = all_clear ? Ending::kClear : all_settled ? Ending::kEquivalent : Ending::kBlocksUsedUp;
  for (const SearchResult& one : confirmed_[answer_.winner]) answer_.scores.push_back(one.score);
  phase_ = Phase::kDone;
}

}  // namespace weir::advise
