#include "base/nearest.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace weir {
namespace {

// Levenshtein's, a row at a time.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t corner = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = corner + (a[i] == b[j] ? 0 : 1);
      corner = std::exchange(row[j + 1], std::min({changed, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string> Nearest(std::string_view word, std::span<const std::string_view> known) {
  std::optional<std::string> nearest;
  // Two letters that changed places are two edits; with more than half the word another it is another word.
  size_t least = std::clamp<size_t>(word.size() / 2, 1, 3) + 1;
  for (const std::string_view candidate : known) {
    const size_t distance = EditDistance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace weir
