// What folds say of the question that they rehearse.
#pragma once

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "predict/dataset.h"
#include "predict/median.h"
#include "predict/questions.h"

namespace weir::predict {

// Whether what is asked for has, for the most, a group of the physical model that the rest has rows of: what
// a network never seen has not, where each network is a group.
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

// How many doublings the rows of the rehearsal of larger counts are, in the median, beyond what its fits saw;
// one at least, as nobody asks for less.
inline double Reach(const std::vector<Row>& rows, const std::vector<Fold>& folds) {
  std::vector<double> distances;
  for (const Fold& fold : folds) {
    double seen = 1;
    for (const int i : fold.train) seen = std::max(seen, rows[static_cast<size_t>(i)].devices);
    for (const int i : fold.test) distances.push_back(std::log2(rows[static_cast<size_t>(i)].devices / seen));
  }
  return std::max(1.0, Median(std::move(distances)));
}

}  // namespace weir::predict
