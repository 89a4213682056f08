#include "stats/early_stopping.h"

#include "stats/distributions.h"

namespace weir::stats {
namespace {

// The probability that at most `over` of n samples are over, when each is with 1 - p (NIST DLMF 8.17.5).
double AtMostOver(double p, int64_t n, int64_t over) {
  if (over >= n) return 1;
  return IncompleteBeta(static_cast<double>(n - over), static_cast<double>(over + 1), p);
}

double AtLeastOver(double p, int64_t n, int64_t over) {
  if (over <= 0) return 1;
  return IncompleteBetaRest(static_cast<double>(n - over + 1), static_cast<double>(over), p);
}

bool IsBelow(double p, int64_t n, int64_t over, double confidence) {
  return AtMostOver(p, n, over) <= 1 - confidence;
}

// The least number in (no, yes] of which `holds` is true; it is at yes, and stays true once it is.
template <typename Predicate>
int64_t FirstWhere(int64_t no, int64_t yes, Predicate holds) {
  while (yes - no > 1) {
    const int64_t middle = no + (yes - no) / 2;
    (holds(middle) ? yes : no) = middle;
  }
  return yes;
}

}  // namespace

Answer QuantileIsBelow(double p, int64_t n, int64_t over, double confidence) {
  if (IsBelow(p, n, over, confidence)) return Answer::kYes;
  return AtLeastOver(p, n, over) <= 1 - confidence ? Answer::kNo : Answer::kUndecided;
}

int64_t QueriesNeeded(double p, int64_t over, double confidence) {
  const auto passes = [&](int64_t n) { return IsBelow(p, n, over, confidence); };
  int64_t enough = over + 1;
  while (!passes(enough)) enough *= 2;
  return FirstWhere(over, enough, passes);
}

std::optional<int64_t> EstimateRank(double p, int64_t n, double confidence) {
  if (n < 1 || !IsBelow(p, n, 0, confidence)) return std::nullopt;
  const int64_t too_many = FirstWhere(0, n, [&](int64_t over) { return !IsBelow(p, n, over, confidence); });
  return n - (too_many - 1);
}

}  // namespace weir::stats
