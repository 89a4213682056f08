// Weights of items, so that one large group does not decide for all.
#pragma once

#include <map>
#include <string_view>
#include <vector>

namespace weir::predict {

// Returns each(n) for an item of a group of n, scaled to 1 in the mean.
template <typename Name, typename Each>
std::vector<double> ImportanceOf(const std::vector<Name>& groups, Each each) {
  std::map<std::string_view, double> sizes;
  for (const std::string_view group : groups) sizes[group] += 1;
  std::vector<double> importance;
  double total = 0;
  for (const std::string_view group : groups) {
    importance.push_back(each(sizes[group]));
    total += importance.back();
  }
  for (double& one : importance) one *= static_cast<double>(importance.size()) / total;
  return importance;
}

}  // namespace weir::predict
