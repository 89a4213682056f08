#include "predict/validation/splits.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/shuffle.h"
#include "stats/median.h"

namespace weir::predict {
namespace {

constexpr std::pair<Split, std::string_view> kNames[] = {{Split::kInside, "inside"},
                                                         {Split::kCount, "count"},
                                                         {Split::kHardware, "hardware"},
                                                         {Split::kNetwork, "network"}};
constexpr size_t kRandomParts = 4, kFewestRandom = 2, kKeyParts = 5, kCounts = 2;
constexpr size_t kFewestRows = 20;
constexpr size_t kLeastTrained = 3;  // a fold trains on at least a third of the rows
constexpr double kLeastReach = 0.5;  // doublings
constexpr size_t kLeastTested = 40;  // a bound tests at least a fortieth of the rows

// Makes a fold of each part against all others.
std::vector<Fold> FoldsOf(const std::vector<size_t>& part_of, size_t parts) {
  std::vector<Fold> folds(parts);
  for (size_t i = 0; i < part_of.size(); ++i) {
    for (size_t p = 0; p < parts; ++p) {
      (part_of[i] == p ? folds[p].test : folds[p].train).push_back(static_cast<int>(i));
    }
  }
  return folds;
}

std::vector<Fold> ByChance(size_t rows, Seed seed) {
  std::vector<size_t> part_of(rows);
  for (size_t i = 0; i < rows; ++i) part_of[i] = i % kRandomParts;
  Random random = seed.Stream("folds").MakeRandom();
  Shuffle(part_of, random);
  return FoldsOf(part_of, kRandomParts);
}

// Assigns whole keys to parts: the next key in shuffled order goes to the part with the fewest rows.
std::vector<Fold> ByKey(const std::vector<Row>& rows, std::string Row::* key, Seed seed) {
  std::map<std::string, size_t> sizes;
  for (const Row& row : rows) ++sizes[row.*key];
  if (sizes.size() < 2) return {};
  std::vector<std::pair<std::string, size_t>> keys(sizes.begin(), sizes.end());
  Random random = seed.Stream("keys").MakeRandom();
  Shuffle(keys, random);
  const size_t parts = std::min(kKeyParts, keys.size());
  std::vector<size_t> load(parts, 0);
  std::map<std::string, size_t> part_of_key;
  for (const auto& [name, size] : keys) {
    const auto part = static_cast<size_t>(std::ranges::min_element(load) - load.begin());
    part_of_key[name] = part;
    load[part] += size;
  }
  std::vector<size_t> part_of;
  for (const Row& row : rows) part_of.push_back(part_of_key[row.*key]);
  std::vector<Fold> folds = FoldsOf(part_of, parts);
  // One key may have most of the rows; a fit without it says little about a fit to all.
  std::erase_if(folds, [&](const Fold& fold) { return fold.train.size() < rows.size() / kLeastTrained; });
  return folds;
}

// Trains below `bound` and tests from it on. A row whose hardware or network is not below belongs to another
// split.
Fold AtCount(const std::vector<Row>& rows, double bound) {
  Fold fold;
  std::set<std::string_view> hardware, networks;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].devices >= bound) continue;
    fold.train.push_back(static_cast<int>(i));
    hardware.insert(rows[i].hardware);
    networks.insert(rows[i].network);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    if (row.devices >= bound && hardware.contains(row.hardware) && networks.contains(row.network)) {
      fold.test.push_back(static_cast<int>(i));
    }
  }
  return fold;
}

std::vector<Fold> ByCount(const std::vector<Row>& rows) {
  std::set<double> counts;
  for (const Row& row : rows) counts.insert(row.devices);
  std::vector<Fold> folds;
  double next = std::numeric_limits<double>::infinity();
  while (!counts.empty() && folds.size() < kCounts) {
    const double bound = *counts.rbegin();
    counts.erase(bound);
    if (counts.size() < 2) break;  // one count does not show how times grow
    if (bound > next) continue;
    Fold fold = AtCount(rows, bound);
    if (fold.train.size() < rows.size() / kLeastTrained) break;
    // A count with few rows joins the test rows of the next bound.
    if (fold.test.size() * kLeastTested < rows.size()) continue;
    folds.push_back(std::move(fold));
    next = bound / 2;
  }
  return folds;
}

}  // namespace

std::string_view ToString(Split split) {
  for (const auto& [value, name] : kNames) {
    if (value == split) return name;
  }
  return "";
}

std::optional<Split> SplitNamed(std::string_view name) {
  for (const auto& [value, word] : kNames) {
    if (word == name) return value;
  }
  return std::nullopt;
}

std::vector<Fold> MakeFolds(const std::vector<Row>& rows, Split split, Seed seed) {
  if (rows.size() < kFewestRows) return {};
  switch (split) {
    case Split::kInside:
      return ByChance(rows.size(), seed);
    case Split::kCount:
      return ByCount(rows);
    case Split::kHardware:
      return ByKey(rows, &Row::hardware, seed);
    case Split::kNetwork:
      return ByKey(rows, &Row::network_group, seed);
  }
  return {};
}

std::vector<Fold> Thin(std::vector<Fold> folds, Split split, size_t most, Seed seed) {
  size_t total = 0, kept = 0;
  for (const Fold& fold : folds) {
    if (split == Split::kInside && kept >= kFewestRandom && total >= most) break;
    total += fold.test.size();
    ++kept;
  }
  folds.resize(kept);
  if (total <= most) return folds;
  for (size_t f = 0; f < folds.size(); ++f) {
    std::vector<int>& test = folds[f].test;
    Random random = seed.Stream("thin").Stream(f).MakeRandom();
    Shuffle(test, random);
    test.resize(std::max<size_t>(1, test.size() * most / total));
    std::ranges::sort(test);
  }
  return folds;
}

bool KnowsGroups(const std::vector<Row>& rows, const std::vector<Fold>& folds) {
  size_t known = 0, total = 0;
  for (const Fold& fold : folds) {
    std::set<std::string_view> groups;
    for (const int i : fold.train) groups.insert(rows[static_cast<size_t>(i)].group);
    for (const int i : fold.test) known += groups.contains(rows[static_cast<size_t>(i)].group) ? 1 : 0;
    total += fold.test.size();
  }
  return 2 * known >= total;
}

double Reach(const std::vector<Row>& rows, const std::vector<Fold>& folds) {
  std::vector<double> distances;
  for (const Fold& fold : folds) {
    std::vector<double> seen = {1, 1};
    for (const int i : fold.train) seen.push_back(rows[static_cast<size_t>(i)].devices);
    std::ranges::nth_element(seen, seen.begin() + 1, std::greater());
    for (const int i : fold.test)
      distances.push_back(std::log2(rows[static_cast<size_t>(i)].devices / seen[1]));
  }
  return std::max(kLeastReach, stats::Median(std::move(distances)));
}

}  // namespace weir::predict
