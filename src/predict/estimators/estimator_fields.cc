#include <algorithm>
#include <numeric>
#include <utility>

#include "predict/archive.h"
#include "predict/estimators/estimator.h"

namespace weir::predict {
namespace {

// Reads and writes rows of `width` numbers as one list.
template <typename T>
void Flat(Archive& archive, const char* key, size_t width, size_t count, std::vector<std::vector<T>>& rows) {
  std::vector<T> all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  archive.Block(key, all);
  if (!archive.is_reading()) return;
  if (all.size() != width * count) return archive.Require(false, key);
  rows.clear();
  for (auto at = all.begin(); rows.size() < count; at += static_cast<std::ptrdiff_t>(width))
    rows.emplace_back(at, at + static_cast<std::ptrdiff_t>(width));
}

}  // namespace

void Data::Fields(Archive& archive) {
  std::vector<std::string> dropped = spec.dropped_terms;
  archive("spec", spec.source);
  archive("dropped_terms", dropped);
  archive("encoder", encoder);
  size_t count = numbers.size();
  archive("rows", count);
  if (archive.is_reading()) {
    auto parsed = ParseSpec(spec.source);
    if (!parsed || count > size_t{1} << 26) return archive.Require(false, "the spec");
    spec = std::move(*parsed);
    for (const std::string& name : dropped) spec.DropTerm(name);
  }
  Flat(archive, "numbers", spec.numbers.size(), count, numbers);
  Flat(archive, "codes", spec.categories.size(), count, codes);
  archive.Require(encoder.numbers() == spec.numbers.size() && encoder.categories() == spec.categories.size(),
                  "the encoder");
}

void Estimator::Fields(Archive& archive) {
  archive("name", recipe_.name);
  archive("linear", linear_);
  archive("physical", physical_);
  archive("trees", trees_);
  archive("tree_numbers", tree_numbers_);
  archive("tree_levels", tree_levels_);
  archive("neighbours", neighbours_);
  archive.Block("least", least_);
  archive.Block("greatest", greatest_);
}

bool Estimator::Join(const Data& data) {
  const Spec& spec = data.spec;
  const auto is_below = [](int index, size_t count) { return index >= 0 && std::cmp_less(index, count); };
  if (!linear_ && !physical_) return false;
  if (linear_ && !linear_->Fits(spec)) return false;
  if (physical_ && physical_->weights().size() != spec.terms.size()) return false;
  if (trees_) {
    const size_t columns =
        tree_numbers_.size() + tree_levels_.size() + 2 * spec.terms.size() + (neighbours_ ? 1 : 0);
    if (!physical_ || !std::cmp_equal(trees_->columns(), columns) ||
        !std::ranges::all_of(tree_numbers_, [&](int j) { return is_below(j, spec.numbers.size()); }) ||
        !std::ranges::all_of(
            tree_levels_, [&](const auto& level) { return is_below(level.first, spec.categories.size()); }))
      return false;
  }
  if (least_.size() != greatest_.size() || (!least_.empty() && least_.size() != spec.numbers.size()))
    return false;
  std::vector<int> all(data.numbers.size());
  std::iota(all.begin(), all.end(), 0);
  return !neighbours_ || neighbours_->SetPoints(MakePoints(data, all));
}

}  // namespace weir::predict
