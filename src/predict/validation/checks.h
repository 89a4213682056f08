// Faults of rows and tables, found before anything is learned from them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "predict/estimators/estimator.h"

namespace weir::predict {

enum class Fault {
  kNotANumber,     // text, or no finite number, in a column of numbers
  kUnusable,       // unknown hardware, an unknown term, a target that is not above 0
  kDuplicate,      // the same as an earlier row in all but its id and its machine
  kSameId,         // another row than an earlier one of the same id
  kAbovePeak,      // more work a second than the device's peak allows
  kScaling,        // the time of one device changes by more than 0.35 to 1.3 would allow with several
  kUnit,           // far from peers, by what a swapped unit makes
  kFarFromPeers,   // far from what the other rows say of it
  kHardwareFact,   // a fact of the row's hardware that the others of its kind contradict
  kOneHardware,    // a term that is one GPU's name: constant on all others
  kKink,           // times of one machine jump between two counts where others' do not
  kContradiction,  // columns of the row contradict each other, by Spec::expect
};
std::string_view ToString(Fault fault);  // "not_a_number", ...

struct Finding {
  Fault fault = Fault::kFarFromPeers;
  std::string what;               // what was seen, and what to do
  std::vector<std::string> rows;  // ids
  std::vector<int64_t> places;    // of the rows in their table, from 0: a copy may have the id of its row
};

// Checks the cells of the tables of facts. Holds peaks of a GPU against its cores and clock, as others of its
// compute capability (or architecture) have them; memory bandwidth against the kind of memory and the
// architecture. Reports each fact that is 4.5 times off, with the rows of `rows` that use it.
std::vector<Finding> CheckFacts(const Spec& spec, const Facts& facts, const Table& rows);

// Checks cells, copies, and ids that come twice.
std::vector<Finding> CheckCells(const Spec& spec, const Table& rows);

// Reports, of the rows that can be used, those whose columns contradict each other.
std::vector<Finding> CheckExpectations(const std::vector<Row>& rows);

// Checks times against peaks, against one device, against other machines, and against cross-fitted trees with
// absolute loss, which a few wrong rows do not move. Returns the error of the library of trees.
Result<std::vector<Finding>> CheckTimes(const Data& data, Seed seed, int threads);

}  // namespace weir::predict
