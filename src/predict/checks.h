// What is wrong with rows before anything is learned from them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "predict/estimator.h"

namespace weir::predict {

enum class Fault {
  kNotANumber,    // a cell of a column of numbers that is none, or not finite
  kUnusable,      // hardware that is in no table, an unknown term, a target that is not above 0
  kDuplicate,     // the same as an earlier row in all but its id
  kSameId,        // another row than an earlier one of the same id
  kAbovePeak,     // more work a second than the device's peak allows
  kScaling,       // the time of one device changes by more than 0.35 to 1.3 would allow with several
  kUnit,          // far from peers, by what a swapped unit makes
  kFarFromPeers,  // far from what the other rows say of it
  kHardwareFact,  // a fact of the row's hardware that the others of its kind contradict
};
std::string_view ToString(Fault fault);  // "not_a_number", ...

struct Finding {
  Fault fault = Fault::kFarFromPeers;
  std::string what;               // what was seen, and what to do
  std::vector<std::string> rows;  // ids
  std::vector<int64_t> places;    // of the rows in their table, from 0: a copy may have the id of its row
};

// Cells of the tables of facts that are no number, and peaks of a GPU held against its cores and clock, as
// those of the same compute capability have them (of the same architecture, where there is none); memory
// bandwidth against the same kind of memory and the same architecture. A finding for each fact that is 4.5
// times off, with every row of `rows` that uses it.
std::vector<Finding> CheckFacts(const Spec& spec, const Facts& facts, const Table& rows);

// Cells, copies, and ids that come twice.
std::vector<Finding> CheckCells(const Spec& spec, const Table& rows);

// Times: against peaks, against one device, against what is predicted without them (trees, cross-fitted,
// absolute loss, so that a few wrong rows do not pull). One finding a row at most for each fault. Errors are
// the library's.
Result<std::vector<Finding>> CheckTimes(const Data& data, Seed seed, int threads);

}  // namespace weir::predict
