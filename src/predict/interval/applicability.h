// Whether a row lies within the measured data, and how far outside.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "predict/estimators/estimator.h"
#include "predict/validation/kinks.h"
#include "predict/validation/splits.h"

namespace weir::predict {

// Least and greatest; not in order: nothing was measured.
struct Range {
  double least = 0, greatest = 0;
};

// The measured ranges, names and values. A value.
class Applicability {
 public:
  // Counts and ranges need two rows at each end, so that one wrong row cannot move them; the range of one
  // network is that of all its rows.
  static Applicability Learn(const Data& data, const Facts& facts, const std::vector<Kink>& kinks);

  // Notes the categories in which rows that `folds` leave out have values that the other rows lack. Their
  // effect is in the cross-validated error of the split.
  void LearnNewWords(const Data& data, Split split, const std::vector<Fold>& folds);

  struct Position {
    Split split = Split::kInside;  // hardware before network before count
    bool is_new_network = false;   // whether the network was never measured, on whichever hardware
    std::string outside;           // what is outside and how far, joined by "; "; empty: inside
    std::string refusal;           // why no answer is possible; empty: one is
    double widen = 1;              // factor of the interval's half-width
    double add = 0;                // added to the half-width, on the scale of logarithms
    bool is_unvalidated = false;   // cross-validation left nothing like this row out
  };
  Position PositionOf(const Spec& spec, const Encoder& encoder, const Row& row) const;

  bool KnowsHardware(const std::string& name) const { return hardware_.contains(name); }
  // Returns how many doublings the row's devices are beyond the measured counts; 0 within.
  double Doublings(const Row& row) const;

  // Returns whether it was learned with this spec.
  bool Fits(const Spec& spec) const;

 private:
  friend struct PredictorFile;
  // By name, the features of its side that all its rows agree on; NaN where they do not.
  using Known = std::map<std::string, std::vector<double>>;

  static void Learn(const Spec& spec, Side side, const std::string& name, const Row& row, Known& known);
  // Says which known name differs least from the row in the features of `side`.
  static std::string NearestText(const Spec& spec, Side side, const Known& known, const Row& row);
  void PlaceRanges(const Spec& spec, const Row& row, std::vector<std::string>& why, Position& position) const;
  void PlaceNames(const Spec& spec, const Row& row, std::vector<std::string>& why, Position& position) const;
  void PlaceWords(const Spec& spec, const Encoder& encoder, const Row& row, std::vector<std::string>& why,
                  Position& position) const;
  void PlaceMemory(const Spec& spec, const Row& row, std::vector<std::string>& why, Position& position) const;

  Known hardware_, networks_;
  std::vector<std::string> vendors_;  // sorted
  bool terms_use_network_ = true;
  Range devices_{1, 1};
  std::vector<Range> ranges_;                             // of Spec::ranges
  std::map<std::string, std::vector<Range>> of_network_;  // the same, by network
  double filled_ = 1;                    // share of memory_capacity that 99 % of the rows need, at least 1
  std::map<std::string, double> kinks_;  // by hardware: logarithm of the kink
  std::map<std::string, std::vector<int>> new_words_;  // by split: categories
};

}  // namespace weir::predict
