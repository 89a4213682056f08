// Pictures to shares of a set ("train", "val", "test"): planned before a picture is read, from names and
// labels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "prepare/feed.h"

namespace weir::prepare {

// One share of a set, which becomes a set of its own.
struct SplitShare {
  std::string name;  // of its folder: dataset::IsSplitName
  double share = 0;  // of the pictures, above 0
  bool operator==(const SplitShare&) const = default;
};

// Reads "0.8,0.1,0.1" (train, val, test; two shares are train and val) or "train=0.8,val=0.1,test=0.1".
// kInvalidArgument, with the remedy, for fewer than two shares or more than 100, shares that are not above 0
// or do not add up to 1, and names that are missing, twice there, or no names of folders.
Result<std::vector<SplitShare>> ParseSplit(std::string_view text);

// "train=0.8,val=0.1,test=0.1": the same for the same shares.
std::string SplitText(const std::vector<SplitShare>& shares);

// Returns the number of the share of each picture of `feed`. Pictures of one label are ordered by a hash of
// their name and `seed`, and cut into shares: each share of a label has its exact quota, rounded down or up.
// Rounding keeps the shares of the whole near their quotas, too. Pictures without a label are treated as a
// label of their own. The order of the feed matters only among pictures of one name and label. REQUIRES:
// feed.name.
std::vector<uint8_t> PlanSplit(const Feed& feed, const std::vector<SplitShare>& shares, uint64_t seed);

// Divides `total` among the shares: as near as whole numbers allow, `total` in sum.
std::vector<int64_t> DivideByShares(int64_t total, const std::vector<SplitShare>& shares);

}  // namespace weir::prepare
