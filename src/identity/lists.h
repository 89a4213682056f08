// Inverted lists: the centres that divide the rows, how they are trained, and the list nearest to a row.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "identity/team.h"

namespace weir::identity {

// The centres of the lists: unit vectors as int8 rows. One list of scale 0 has its centre in the origin: the
// rows are then scanned without lists. Threads: any, once made.
struct Lists {
  size_t dimension = 0;
  std::vector<int8_t> centres;  // size() x dimension
  std::vector<float> scales;
  size_t size() const { return scales.size(); }
  static std::shared_ptr<const Lists> One(size_t dimension);
};

// Returns the number of lists for so many rows: a power of two near 2 sqrt(rows); 1 below 32,768 rows.
size_t ListsFor(uint64_t rows);

// Unit vectors as int8 rows, side by side.
struct VectorSample {
  size_t dimension = 0;
  std::vector<int8_t> values;
  std::vector<float> scales;
  size_t size() const { return scales.size(); }
};

// Divides `sample` into about `count` lists by spherical k-means in two levels, so that the time grows with
// count^0.5, and refines them together. The same sample and seed give the same lists for any number of
// workers.
std::shared_ptr<const Lists> TrainLists(const VectorSample& sample, size_t count, uint64_t seed, Team& team);

// Finds the list of a row through groups of centres: the nearest centre in the nearest few groups.
// Threads: any, once made.
class ListFinder {
 public:
  explicit ListFinder(std::shared_ptr<const Lists> lists, Team& team);
  // `values` is one int8 row.
  uint32_t Nearest(const int8_t* values) const;

 private:
  static constexpr size_t kGroupsLooked = 6;
  std::shared_ptr<const Lists> lists_, groups_;
  std::vector<std::vector<uint32_t>> members_;  // lists of each group
};

}  // namespace weir::identity
