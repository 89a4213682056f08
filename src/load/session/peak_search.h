// Finds the largest rate at which a bound on the latency holds. Pure policy: no clock, no load; the caller
// plays what it asks for and tells the answer. Rates are requests a second. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "stats/early_stopping.h"

namespace weir::load {

// Doubles the rate while the bound holds (or halves it until it does), then bisects on the logarithm, then
// plays the answer again: a rate that a search has picked flatters itself, only fresh runs speak for it. A
// confirmation that fails lowers the answer by one step of 1 + bracket, and confirmation begins anew.
// An undecided answer is asked for once more, of a longer run; undecided again, it counts as a failure:
// the caller's runs must have requests enough to decide (stats::QueriesNeeded), at low rates too.
class PeakSearch {
 public:
  struct Options {
    double start_rate = 1;
    double bracket = 0.02;  // the search ends between two rates that are no further apart, relatively
    int confirmations = 3;  // runs at the answer that must hold, one after the other
    double most = 1e6;      // no rate above it is played
    double least = 0;       // and none below; 0: a thousandth of the first
    int most_probes = 64;
  };
  // kInvalidArgument names the bad option.
  static Result<PeakSearch> Create(Options options);

  struct Probe {
    double rate = 0;
    enum class Kind { kSearch, kConfirm } kind = Kind::kSearch;
    double length_factor = 1;  // of the usual length; more after an undecided answer
    uint64_t seed_index = 0;   // another one for each probe
  };
  // Returns the probe to play now: the same until Tell. Nothing: the search is over.
  std::optional<Probe> Next() const { return probe_; }
  // Whether the bound held in the run that Next asked for. REQUIRES: there is one.
  void Tell(stats::Answer holds);

  struct Outcome {
    // Nothing: no rate down to the least holds, or the probes were used up before one did.
    std::optional<double> rate;
    bool confirmed = false;  // without it the rate is a guess: the probes were used up
    int probes = 0;
    std::optional<double> failed_at;  // the lowest rate that failed; above `rate`
  };
  // Nothing before the search is over.
  std::optional<Outcome> outcome() const { return outcome_; }

 private:
  explicit PeakSearch(const Options& options);
  double least() const;
  void Ask(double rate, Probe::Kind kind, double length_factor = 1);
  void Search();
  void Confirm(double rate);
  void End(std::optional<double> rate, bool confirmed);

  Options options_;
  std::optional<double> low_;   // the highest rate that held in the search
  std::optional<double> high_;  // the lowest that failed
  int confirmed_ = 0;           // runs at the answer that held
  int told_ = 0;
  std::optional<Probe> probe_;
  std::optional<Outcome> outcome_;
};

}  // namespace weir::load
