// Faults of rows and tables, found before anything is learned from them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "predict/estimators/estimator.h"

namespace weir::predict {

// The names of faults.
struct Fault {
  // Text, or no finite number, in a column of numbers.
  static constexpr std::string_view kNotANumber = "not_a_number";
  // Unknown hardware, an unknown term, a target that is not above 0.
  static constexpr std::string_view kUnusable = "unusable";
  // The same as an earlier row in all but its id and its machine.
  static constexpr std::string_view kDuplicate = "duplicate";
  static constexpr std::string_view kSameId = "same_id";  // another row than an earlier one of the same id
  // More work a second than the device's peak allows.
  static constexpr std::string_view kAbovePeak = "above_peak";
  // The time of one device changes by more than 0.35 to 1.3 would allow with several.
  static constexpr std::string_view kScaling = "scaling";
  static constexpr std::string_view kUnit = "unit";  // far from peers, by what a swapped unit makes
  static constexpr std::string_view kFarFromPeers = "far_from_peers";  // far from what other rows say of it
  // A fact of the row's hardware that the others of its kind contradict.
  static constexpr std::string_view kHardwareFact = "hardware_fact";
  static constexpr std::string_view kOneHardware =
      "one_hardware";  // a term that is constant on all GPUs but one
  // Times of one machine jump between two counts where others' do not.
  static constexpr std::string_view kKink = "kink";
  // Rows of one hardware that are as a whole far from its data sheet and from other hardware.
  static constexpr std::string_view kOffDataSheet = "off_data_sheet";
  static constexpr std::string_view kContradiction = "contradiction";  // columns of the row, by Spec::expect
};

struct Finding {
  std::string_view fault;         // of Fault
  std::string what;               // what was seen, and what to do
  std::vector<std::string> rows;  // ids
  std::vector<int64_t> places;    // of the rows in their table, from 0: a copy may have the id of its row

  static Finding Of(std::string_view fault, std::string what) { return {fault, std::move(what), {}, {}}; }
  static Finding Of(std::string_view fault, std::string what, std::string_view row, int64_t place) {
    return {fault, std::move(what), {std::string(row)}, {place}};
  }
};

// Checks the cells of the tables of facts. Holds peaks of a GPU against its cores and clock, as others of its
// compute capability (or architecture) have them; memory bandwidth against the kind of memory and the
// architecture. Reports each fact that is 4.5 times off, with the rows of `rows` that use it.
std::vector<Finding> CheckFacts(const Spec& spec, const Facts& facts, const Table& rows);

// Checks cells, copies, and ids that come twice.
std::vector<Finding> CheckCells(const Spec& spec, const Table& rows);

// Reports, of the rows that can be used, those whose columns contradict each other.
std::vector<Finding> CheckExpectations(const std::vector<Row>& rows);

// Returns, for each row, which of the facts of hardware that the row itself gives cannot be, with the figure;
// empty: all can. A fact may not be below 0, 4.5 times off that of the card's name in the table, ten times
// beyond all cards, or 4.5 times off what cards of its kind have in common.
std::vector<std::string> ImpossibleFacts(const Spec& spec, const Facts& facts, const Table& rows);

// Checks times against peaks, against one device, against other machines, and against their neighbours in
// cross-validation.
std::vector<Finding> CheckTimes(const Data& data, Seed seed, int threads);

}  // namespace weir::predict
