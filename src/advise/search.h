// The search of weir advise: which trial to play next, and when the answer is clear. A pure state machine:
// the caller plays the trials. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace weir::advise {

// One candidate: the index of its level of every factor.
using Point = std::vector<int>;

struct SearchOptions {
  double screening_share = 0.08;  // of the candidates, tried once each; at least 8 candidates
  int starts = 3;                 // the best of the screening from which the region is explored
  int finalists = 4;              // at most, in the confirmation
  double near = 0.10;             // a finalist is at most this much worse than the winner, relative
  // One trial may miss a target by chance. Misses by at most this much, relative, are looked at again where
  // their score is above the best that meets: `near_starts` of them in the region, `near_finalists` fresh.
  double near_miss = 0.15;
  int near_starts = 1, near_finalists = 2;
  int least_blocks = 4, most_blocks = 12;  // of the confirmation
  double margin = 0.02;                    // a difference that is shown to be below this does not matter
  double alpha = 0.05;
  // The confirmation ends before a block that would exceed it; 0: no cap. The least blocks are always played.
  int64_t most_trials = 0;
  uint64_t seed = 1;
};

// One trial's result. `score` is above 0 and higher is better: images/s, or images per unit of money.
struct SearchResult {
  double score = 0;   // 0: the trial failed, or its figures do not count
  bool meets = true;  // the targets; false without a score
  double miss = 0;    // how far the worst target is missed, relative to its limit; 0 where it meets

  bool counts() const { return score > 0; }
};

enum class Phase { kScreening, kRegion, kConfirmation, kDone };
std::string_view ToString(Phase phase);  // "screening", "promising region", "confirmation", "done"

enum class Ending {
  kClear,         // the winner is significantly better than every other finalist, or there is no other
  kEquivalent,    // every other finalist is worse, or within the margin
  kBlocksUsedUp,  // neither, after the most blocks
  kNoneMeets,     // no candidate meets the targets
};

std::string_view ToString(Ending ending);  // "clear", "equivalent", "blocks used up", "none meets"

struct SearchAnswer {
  size_t winner = 0;                                      // index of the candidate
  std::optional<size_t> runner_up;                        // by the confirmation's means
  bool significant = false;                               // winner against runner-up
  std::optional<double> difference_low, difference_high;  // ratio winner / runner-up, at 1 - alpha
  Ending ending = Ending::kClear;
  std::vector<double> scores;  // the winner's, of the confirmation alone
};

// Screening: a space-filling subset, one trial each. Promising region: from the best of those, every
// candidate one step away in one factor, until no step is better; near misses of a target too. Then the
// neighbours of the best once more, because one disturbed trial may have hidden a better one. Candidates that
// are no more than the finalists skip both: nothing is to be chosen among them. Confirmation: the winner and
// its near neighbours again, in shuffled blocks, on fresh trials only, because the trials that chose a winner
// favour it. A finalist that met the targets in none of the least blocks leaves. After each block from
// `least_blocks` on, paired t tests at alpha / (looks x finalists) decide whether to stop (Bonferroni: valid
// whenever it stops).
class Search {
 public:
  // kInvalidArgument without candidates, or where points differ in length or are double.
  static Result<Search> Create(std::vector<Point> candidates, SearchOptions options = {});

  // Returns the candidate to play next; nullopt once the search is done. Returns the same until Take is
  // called.
  std::optional<size_t> Next();
  // Takes the result of the candidate that Next named. REQUIRES: Next returned a value.
  void Take(const SearchResult& result);

  Phase phase() const { return phase_; }
  int64_t trials() const { return trials_; }
  // REQUIRES: phase() is kDone.
  const SearchAnswer& answer() const { return answer_; }

 private:
  Search(std::vector<Point> candidates, SearchOptions options);
  bool Better(size_t a, size_t b) const;
  std::vector<size_t> Neighbours(size_t candidate) const;
  std::vector<size_t> ByRank() const;
  std::vector<size_t> NearMisses() const;
  void TakeExploration(size_t candidate, const SearchResult& result);
  void Explore(size_t candidate);
  void Advance();
  void ExploreRegion();
  void LookAgain();
  void BeginConfirmation();
  void QueueBlock();
  void JudgeConfirmation();

  std::vector<Point> candidates_;
  SearchOptions options_;
  std::map<Point, size_t> index_;
  std::vector<size_t> queue_;  // the next is at the back
  std::map<size_t, SearchResult> tried_;
  std::set<size_t> explored_;
  std::set<size_t> again_;  // tried a second time
  std::vector<size_t> finalists_;
  std::map<size_t, std::vector<SearchResult>> confirmed_;
  Phase phase_ = Phase::kScreening;
  int64_t trials_ = 0;
  int blocks_ = 0;
  SearchAnswer answer_;
};

}  // namespace weir::advise
