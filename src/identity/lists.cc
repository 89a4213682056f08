#include "identity/lists.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/seed.h"
#include "identity/kernels.h"

namespace weir::identity {
namespace {

constexpr int kRounds = 8, kRefinements = 2;

float Score(const int8_t* row, const Lists& lists, size_t list) {
  return static_cast<float>(Product(row, lists.centres.data() + list * lists.dimension, lists.dimension)) *
         lists.scales[list];
}

uint32_t NearestOfAll(const int8_t* row, const Lists& lists) {
  uint32_t best = 0;
  float most = -1e30F;
  for (size_t list = 0; list < lists.size(); ++list) {
    const float score = Score(row, lists, list);
    if (score > most) {
      most = score;
      best = static_cast<uint32_t>(list);
    }
  }
  return best;
}

// Puts the direction of `sum` into list `at`.
void SetCentre(Lists& lists, size_t at, std::span<const double> sum) {
  double most = 0, kept = 0;
  for (const double value : sum) most = std::max(most, std::abs(value));
  for (size_t i = 0; i < sum.size(); ++i) {
    const auto value = most > 0 ? static_cast<int8_t>(std::lround(sum[i] / most * 127)) : int8_t{0};
    lists.centres[at * lists.dimension + i] = value;
    kept += static_cast<double>(value) * value;
  }
  lists.scales[at] = kept > 0 ? static_cast<float>(1 / std::sqrt(kept)) : 0.0F;
}

// Moves each centre into the mean direction of its rows. A centre without rows takes a row by chance.
void MoveCentres(const VectorSample& sample, std::span<const uint32_t> rows,
                 std::span<const uint32_t> nearest, Random& random, Team& team, Lists& lists) {
  const size_t d = sample.dimension;
  std::vector<std::vector<uint32_t>> members(lists.size());
  for (size_t i = 0; i < rows.size(); ++i) members[nearest[i]].push_back(rows[i]);
  for (auto& of_list : members) {
    if (of_list.empty())
      of_list.push_back(rows[static_cast<size_t>(random.Integer(0, std::ssize(rows) - 1))]);
  }
  team.ForEachPart(lists.size(), 16, [&](size_t begin, size_t end) {
    std::vector<double> sum(d);
    for (size_t list = begin; list < end; ++list) {
      std::ranges::fill(sum, 0.0);
      for (const uint32_t row : members[list]) {
        const int8_t* const values = sample.values.data() + row * d;
        const auto scale = static_cast<double>(sample.scales[row]);
        for (size_t i = 0; i < d; ++i) sum[i] += scale * values[i];
      }
      SetCentre(lists, list, sum);
    }
  });
}

// k-means of the rows `rows` of the sample.
Lists Divide(const VectorSample& sample, std::span<const uint32_t> rows, size_t count, Random& random,
             Team& team) {
  Lists lists{sample.dimension, std::vector<int8_t>(count * sample.dimension), std::vector<float>(count)};
  std::vector<uint32_t> order(rows.begin(), rows.end());
  for (size_t i = 0; i < count && i < order.size(); ++i) {
    std::swap(order[i],
              order[static_cast<size_t>(random.Integer(static_cast<int64_t>(i), std::ssize(order) - 1))]);
  }
  for (size_t i = 0; i < count; ++i) {
    const uint32_t row = order[i % order.size()];
    std::copy_n(sample.values.begin() + static_cast<ptrdiff_t>(row * sample.dimension), sample.dimension,
                lists.centres.begin() + static_cast<ptrdiff_t>(i * sample.dimension));
    lists.scales[i] = sample.scales[row];
  }
  std::vector<uint32_t> nearest(rows.size());
  for (int round = 0; round < kRounds; ++round) {
    team.ForEachPart(rows.size(), 256, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i)
        nearest[i] = NearestOfAll(sample.values.data() + rows[i] * sample.dimension, lists);
    });
    MoveCentres(sample, rows, nearest, random, team, lists);
  }
  return lists;
}

}  // namespace

std::shared_ptr<const Lists> Lists::One(size_t dimension) {
  return std::make_shared<const Lists>(Lists{dimension, std::vector<int8_t>(dimension), {0.0F}});
}

size_t ListsFor(uint64_t rows) {
  if (rows < 32768) return 1;
  const double wanted = 2 * std::sqrt(static_cast<double>(rows));
  size_t lists = 256;
  while (static_cast<double>(lists) * std::sqrt(2.0) < wanted && lists < 32768) lists *= 2;
  return lists;
}

std::shared_ptr<const Lists> TrainLists(const VectorSample& sample, size_t count, uint64_t seed, Team& team) {
  if (count <= 1 || sample.size() < 2 * count) return Lists::One(sample.dimension);
  Random random(seed);
  std::vector<uint32_t> all(sample.size());
  std::iota(all.begin(), all.end(), 0U);
  const auto tops = static_cast<size_t>(std::lround(std::sqrt(static_cast<double>(count))));
  const Lists top = Divide(sample, all, tops, random, team);
  std::vector<uint32_t> of_top(sample.size());
  team.ForEachPart(all.size(), 256, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      of_top[i] = NearestOfAll(sample.values.data() + i * sample.dimension, top);
  });
  std::vector<std::vector<uint32_t>> members(tops);
  for (const uint32_t row : all) members[of_top[row]].push_back(row);
  auto lists = std::make_shared<Lists>();
  lists->dimension = sample.dimension;
  for (const auto& rows : members) {
    if (rows.empty()) continue;
    const double share = static_cast<double>(rows.size()) / static_cast<double>(sample.size());
    const auto parts =
        std::max<size_t>(1, static_cast<size_t>(std::lround(share * static_cast<double>(count))));
    const Lists part = Divide(sample, rows, std::min(parts, rows.size()), random, team);
    lists->centres.insert(lists->centres.end(), part.centres.begin(), part.centres.end());
    lists->scales.insert(lists->scales.end(), part.scales.begin(), part.scales.end());
  }
  for (int round = 0; round < kRefinements; ++round) {
    std::vector<uint32_t> nearest(sample.size());
    const ListFinder finder(std::make_shared<const Lists>(*lists), team);
    team.ForEachPart(all.size(), 256, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i)
        nearest[i] = finder.Nearest(sample.values.data() + i * sample.dimension);
    });
    MoveCentres(sample, all, nearest, random, team, *lists);
  }
  return lists;
}

ListFinder::ListFinder(std::shared_ptr<const Lists> lists, Team& team) : lists_(std::move(lists)) {
  const size_t count = lists_->size();
  if (count < 64) return;
  VectorSample centres{lists_->dimension, lists_->centres, lists_->scales};
  std::vector<uint32_t> all(count);
  std::iota(all.begin(), all.end(), 0U);
  Random random(1);
  const auto groups = static_cast<size_t>(std::lround(std::sqrt(static_cast<double>(count))));
  groups_ = std::make_shared<const Lists>(Divide(centres, all, groups, random, team));
  members_.resize(groups_->size());
  for (const uint32_t list : all)
    members_[NearestOfAll(lists_->centres.data() + list * lists_->dimension, *groups_)].push_back(list);
}

uint32_t ListFinder::Nearest(const int8_t* values) const {
  if (groups_ == nullptr) return NearestOfAll(values, *lists_);
  Highest near(kGroupsLooked);
  for (size_t group = 0; group < groups_->size(); ++group) {
    if (!members_[group].empty()) near.Add({Score(values, *groups_, group), 0, group});
  }
  uint32_t best = 0;
  float most = -1e30F;
  for (const Candidate& group : near.Take()) {
    for (const uint32_t list : members_[group.row]) {
      const float score = Score(values, *lists_, list);
      if (score > most) {
        most = score;
        best = list;
      }
    }
  }
  return best;
}

}  // namespace weir::identity
