#include "predict/questions.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace weir::predict {
namespace {

constexpr std::pair<Question, std::string_view> kNames[] = {{Question::kInside, "inside"},
                                                            {Question::kCount, "count"},
                                                            {Question::kHardware, "hardware"},
                                                            {Question::kNetwork, "network"}};
constexpr size_t kRandomParts = 4, kKeyParts = 5, kCounts = 2;
constexpr size_t kFewestRows = 20;

template <typename T>
void Shuffle(std::vector<T>& items, Random random) {
  for (size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[static_cast<size_t>(random.Integer(0, static_cast<int64_t>(i) - 1))]);
  }
}

// Part of every row to folds of "this part" and "all others".
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
  Shuffle(part_of, seed.Stream("folds").MakeRandom());
  return FoldsOf(part_of, kRandomParts);
}

// Whole keys to parts, the next key in the shuffled order to the part that has the fewest rows.
std::vector<Fold> ByKey(const std::vector<Row>& rows, std::string Row::* key, Seed seed) {
  std::map<std::string, size_t> sizes;
  for (const Row& row : rows) ++sizes[row.*key];
  if (sizes.size() < 2) return {};
  std::vector<std::pair<std::string, size_t>> keys(sizes.begin(), sizes.end());
  Shuffle(keys, seed.Stream("keys").MakeRandom());
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
  return FoldsOf(part_of, parts);
}

std::vector<Fold> ByCount(const std::vector<Row>& rows) {
  std::set<double> counts;
  for (const Row& row : rows) counts.insert(row.devices);
  std::vector<Fold> folds;
  for (auto bound = counts.rbegin(); bound != counts.rend() && folds.size() < kCounts; ++bound) {
    Fold fold;
    std::set<double> known;
    for (size_t i = 0; i < rows.size(); ++i) {
      const bool below = rows[i].devices < *bound;
      (below ? fold.train : fold.test).push_back(static_cast<int>(i));
      if (below) known.insert(rows[i].devices);
    }
    if (known.size() < 2 || fold.train.size() < rows.size() / 3) break;
    // A count with hardly a row says nothing; it is part of the next bound's test.
    if (fold.test.size() * 40 >= rows.size()) folds.push_back(std::move(fold));
  }
  return folds;
}

}  // namespace

std::string_view ToString(Question question) {
  for (const auto& [value, name] : kNames) {
    if (value == question) return name;
  }
  return "";
}

std::optional<Question> QuestionNamed(std::string_view name) {
  for (const auto& [value, word] : kNames) {
    if (word == name) return value;
  }
  return std::nullopt;
}

std::vector<Fold> MakeFolds(const std::vector<Row>& rows, Question question, Seed seed) {
  if (rows.size() < kFewestRows) return {};
  switch (question) {
    case Question::kInside:
      return ByChance(rows.size(), seed);
    case Question::kCount:
      return ByCount(rows);
    case Question::kHardware:
      return ByKey(rows, &Row::hardware, seed);
    case Question::kNetwork:
      return ByKey(rows, &Row::network, seed);
  }
  return {};
}

std::vector<Fold> Thin(std::vector<Fold> folds, size_t most, Seed seed) {
  size_t total = 0;
  for (const Fold& fold : folds) total += fold.test.size();
  if (total <= most) return folds;
  for (size_t f = 0; f < folds.size(); ++f) {
    std::vector<int>& test = folds[f].test;
    Shuffle(test, seed.Stream("thin").Stream(f).MakeRandom());
    test.resize(std::max<size_t>(1, test.size() * most / total));
    std::ranges::sort(test);
  }
  return folds;
}

}  // namespace weir::predict
