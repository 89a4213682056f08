// What each of some items counts, so that one group with many of them does not decide for all.
#pragma once

#include <map>
#include <string_view>
#include <vector>

namespace weir::predict {

// Of items by group; one of n in its group counts each(n) to those of others, and all together as many as
// they are.
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
