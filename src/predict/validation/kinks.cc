#include "predict/validation/kinks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/contains.h"
#include "stats/median.h"

namespace weir::predict {
namespace {

constexpr double kLeastKink = 1.3;
constexpr size_t kFewest = 10;  // configurations
constexpr double kShare = 0.1;  // of them

struct Machine {
  std::string hardware, name;
  auto operator<=>(const Machine&) const = default;
};

Machine MachineOf(const Spec& spec, const Row& row) {
  Machine machine{row.hardware, ""};
  for (size_t j = 0; j < spec.categories.size(); ++j) {
    if (spec.categories[j].side == Side::kMachine)
      machine.name += (machine.name.empty() ? "" : ", ") + row.categories[j];
  }
  return machine;
}

// A jump of one configuration between two counts: the logarithm of the ratio of times, and the row after it.
struct Jump {
  double log = 0;
  int row = 0;
};
// By counts and configuration, the jump of each machine.
using Jumps = std::map<std::pair<double, double>, std::map<std::string, std::map<Machine, Jump>>>;

Jumps FindJumps(const Data& data) {
  const std::vector<size_t> equal = CategoriesApartFromCount(data.spec);
  std::map<std::pair<Machine, std::string>, std::map<double, int>> series;  // a row for each count
  for (size_t i = 0; i < data.rows.size(); ++i) {
    const Row& row = data.rows[i];
    std::string key = row.network;
    for (const size_t j : equal) key += "|" + row.categories[j];
    for (const double x : row.ranges) key += fmt::format("|{:g}", x);
    series[{MachineOf(data.spec, row), key}].emplace(row.devices, static_cast<int>(i));
  }
  Jumps jumps;
  for (const auto& [where, by_count] : series) {
    for (auto next = by_count.begin(); next != by_count.end(); ++next) {
      if (next == by_count.begin()) continue;
      const auto before = std::prev(next);
      const double log = std::log(*data.rows[static_cast<size_t>(next->second)].time /
                                  *data.rows[static_cast<size_t>(before->second)].time);
      jumps[{before->first, next->first}][where.second][where.first] = {log, next->second};
    }
  }
  return jumps;
}

}  // namespace

std::vector<size_t> CategoriesApartFromCount(const Spec& spec) {
  std::vector<size_t> apart;
  for (size_t j = 0; j < spec.categories.size(); ++j) {
    const auto& [column, side] = spec.categories[j];
    const auto derived = std::ranges::find(spec.derive, column, &Named::name);
    const bool counts =
        column == spec.devices ||
        (derived != spec.derive.end() && ColumnsBehind(spec, derived->expression).contains(spec.devices));
    if (side == Side::kRun && !counts) apart.push_back(j);
  }
  return apart;
}

std::vector<Kink> FindKinks(const Data& data) {
  std::vector<Kink> kinks;
  if (data.spec.devices.empty()) return kinks;
  for (const auto& [counts, configurations] : FindJumps(data)) {
    std::map<Machine, std::vector<Jump>> apart;  // the jump of each machine less that of the others
    for (const auto& [configuration, jumps] : configurations) {
      for (const auto& [machine, jump] : jumps) {
        std::vector<double> others;
        for (const auto& [other, its] : jumps) {
          if (other != machine) others.push_back(its.log);
        }
        if (!others.empty())
          apart[machine].push_back({jump.log - stats::Median(std::move(others)), jump.row});
      }
    }
    for (auto& [machine, jumps] : apart) {
      if (jumps.size() < kFewest) continue;
      Kink kink{.hardware = machine.hardware,
                .machine = machine.name,
                .from = counts.first,
                .to = counts.second,
                .configurations = std::ssize(jumps),
                .rows = {}};
      std::vector<double> logs;
      for (const Jump& jump : jumps) {
        if (jump.log < std::log(kLeastKink)) continue;
        kink.rows.push_back(jump.row);
        logs.push_back(jump.log);
      }
      if (static_cast<double>(logs.size()) < kShare * static_cast<double>(jumps.size())) continue;
      kink.factor = std::exp(stats::Median(std::move(logs)));
      kinks.push_back(std::move(kink));
    }
  }
  return kinks;
}

}  // namespace weir::predict
