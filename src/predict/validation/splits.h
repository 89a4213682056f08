// The splits of cross-validation: which rows are left out together.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/seed.h"
#include "predict/table/dataset.h"

namespace weir::predict {

// Inside the data, or outside in one respect: other counts of devices, other hardware, or another network
// than were measured.
enum class Split { kInside, kCount, kHardware, kNetwork };
inline constexpr Split kSplits[] = {Split::kInside, Split::kCount, Split::kHardware, Split::kNetwork};
std::string_view ToString(Split split);  // "inside", "count", "hardware", "network"
std::optional<Split> SplitNamed(std::string_view name);

// Indices of rows, in order.
struct Fold {
  std::vector<int> train, test;
};

// Inside: four parts by chance. Hardware and network: whole keys in up to five parts of similar size; a part
// that leaves less than a third of the rows to train on is dropped. Count: rows below a bound train, rows
// from it on test if their hardware and network are known below; up to two bounds, the second at most half of
// the first, each with two counts below. Returns no folds for one key, two counts, or fewer than 20 rows.
std::vector<Fold> MakeFolds(const std::vector<Row>& rows, Split split, Seed seed);

// Reduces the test rows to about `most`, by chance. Of the folds inside the data, at least two are kept.
std::vector<Fold> Thin(std::vector<Fold> folds, Split split, size_t most, Seed seed);

// Returns whether at least half of the test rows belong to groups of the physical model that their training
// rows have. If each network is a group, a new network does not.
bool KnowsGroups(const std::vector<Row>& rows, const std::vector<Fold>& folds);

// Returns how many doublings the test rows are beyond the counts that two of their training rows had: the
// median, at least half a doubling.
double Reach(const std::vector<Row>& rows, const std::vector<Fold>& folds);

}  // namespace weir::predict
