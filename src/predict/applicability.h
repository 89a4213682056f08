// Whether a question lies within what was measured, and how far outside.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "predict/dataset.h"
#include "predict/estimator.h"
#include "predict/questions.h"

namespace weir::predict {

// What the rows of a fit were. A value.
class Applicability {
 public:
  // One row alone makes no count and no end of a range, as it may be a slip of the pen; of a network the
  // range is that of its rows.
  static Applicability Learn(const Data& data);

  struct Place {
    Question question = Question::kInside;  // that the row is: hardware before network before count
    std::string outside;      // what is outside and how far, parts joined by "; "; empty: inside
    bool is_refused = false;  // so far that nothing measured supports an answer
    double widen = 1;         // of the interval
    // A word was never measured, as a precision, that no row left out could stand for: how far off such an
    // answer is was not rehearsed.
    bool is_unheard = false;
  };
  Place PlaceOf(const Spec& spec, const Encoder& encoder, const Facts& facts, const Row& row) const;

  bool KnowsHardware(const std::string& name) const;
  // How many doublings the row's devices are beyond the counts measured; 0 within.
  double Doublings(const Row& row) const;

  Json ToJson() const;
  static Result<Applicability> FromJson(const Json& json, const Spec& spec);

 private:
  using Range = std::pair<double, double>;  // least and greatest; not in order: nobody knows

  std::vector<std::string> hardware_, networks_;  // sorted
  Range devices_{1, 1};
  std::vector<Range> ranges_;                             // of Spec::ranges
  std::map<std::string, std::vector<Range>> of_network_;  // the same, by network
};

}  // namespace weir::predict
