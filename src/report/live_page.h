// The page of a study that is being played. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::report {

struct LiveResult {
  std::string label;  // the configuration's
  int64_t n = 0;      // trials that count
  double mean = 0;    // of the objective
  std::optional<double> low, high;
};

struct LiveState {
  std::string study;
  std::string metric;           // the objective's
  int64_t done = 0, total = 0;  // trials
  int64_t suspect = 0, failed = 0, skipped = 0;
  std::optional<double> left_s;     // nothing before the first trial
  std::string now;                  // the trial under way; empty: none
  std::vector<LiveResult> results;  // in the order of the design; those with a trial that counts
  bool finished = false;
};

// Returns a page that asks for itself again every few seconds until the study has finished. It runs no script
// and loads nothing else.
std::string LivePage(const LiveState& state);

}  // namespace weir::report
