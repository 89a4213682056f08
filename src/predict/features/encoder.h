// Rows as coordinates: what estimators and kernels compare.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "predict/table/dataset.h"

namespace weir::predict {

// Maps numbers to coordinates and categories to codes, as learned from the rows of a fit. A number that is
// always above 0 becomes its logarithm; every coordinate is divided by its standard deviation. A value.
class Encoder {
 public:
  static Encoder Learn(const Spec& spec, const std::vector<Row>& rows);

  std::vector<float> Coordinates(const Row& row) const;  // as Spec::numbers; NaN: unknown
  std::vector<int> Codes(const Row& row) const;          // as Spec::categories; -1: not in the fit
  size_t numbers() const { return scales_.size(); }
  size_t categories() const { return levels_.size(); }
  std::vector<std::string> Levels(size_t category) const;  // in order of their codes
  std::vector<std::string> MostCommon(size_t category, size_t most) const;
  bool Knows(size_t category, const std::string& level) const { return levels_[category].contains(level); }
  int levels(size_t category) const { return static_cast<int>(levels_[category].size()); }
  // Rows of the fit with this code.
  int64_t Count(size_t category, int code) const { return counts_[category][static_cast<size_t>(code)]; }

 private:
  friend struct PredictorFile;
  struct Scale {
    bool log = false;
    double mean = 0, deviation = 1;
  };
  std::vector<Scale> scales_;
  std::vector<std::map<std::string, int>> levels_;
  std::vector<std::vector<int64_t>> counts_;
};

}  // namespace weir::predict
