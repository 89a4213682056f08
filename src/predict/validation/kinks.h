// Jumps of the time from one count of devices to the next that one machine has and others lack.
#pragma once

#include <string>
#include <vector>

#include "predict/estimators/estimator.h"

namespace weir::predict {

// On `machine`, times grow from `from` to `to` devices by `factor` more than on other machines, for
// one in ten of the configurations that both measured.
struct Kink {
  std::string hardware, machine;
  double from = 0, to = 0, factor = 1;
  int64_t configurations = 0;  // compared
  std::vector<int> rows;       // with `to` devices that jump; indices of the data
};

// Compares rows that are equal in network, ranges and run categories but those that follow from the count. A
// kink is a jump of at least 1.3 times in a tenth of at least ten configurations.
std::vector<Kink> FindKinks(const Data& data);

// Returns the run categories that do not follow from the count of devices.
std::vector<size_t> CategoriesApartFromCount(const Spec& spec);

}  // namespace weir::predict
