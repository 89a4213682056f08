// Facts of the folds of a split.
#pragma once

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "predict/table/dataset.h"
#include "predict/validation/splits.h"
#include "stats/median.h"

namespace weir::predict {

// Returns whether at least half of the test rows belong to groups of the physical model that their training
// rows have. If each network is a group, a new network does not.
inline bool KnowsGroups(const std::vector<Row>& rows, const std::vector<Fold>& folds) {
  size_t known = 0, total = 0;
  for (const Fold& fold : folds) {
    std::set<std::string_view> groups;
    for (const int i : fold.train) groups.insert(rows[static_cast<size_t>(i)].group);
    for (const int i : fold.test) known += groups.contains(rows[static_cast<size_t>(i)].group) ? 1 : 0;
    total += fold.test.size();
  }
  return 2 * known >= total;
}

// Returns how many doublings the test rows are beyond the counts of their training rows: the median, at least
// one.
inline double Reach(const std::vector<Row>& rows, const std::vector<Fold>& folds) {
  std::vector<double> distances;
  for (const Fold& fold : folds) {
    double seen = 1;
    for (const int i : fold.train) seen = std::max(seen, rows[static_cast<size_t>(i)].devices);
    for (const int i : fold.test) distances.push_back(std::log2(rows[static_cast<size_t>(i)].devices / seen));
  }
  return std::max(1.0, stats::Median(std::move(distances)));
}

}  // namespace weir::predict
