// Terms of the physical model that are one GPU's name in disguise.
#pragma once

#include <string>
#include <vector>

#include "predict/table/dataset.h"

namespace weir::predict {

// A term that has one value on one kind of hardware and another value on all others.
struct OneHardwareTerm {
  std::string term, hardware;
};

// Finds such terms among the hardware of `rows`, which are rows of `table`. Each of some rows is evaluated on
// every kind of hardware. Fewer than four kinds have no such terms: any fact could separate one of three.
Result<std::vector<OneHardwareTerm>> FindOneHardwareTerms(const Spec& spec, const Facts& facts,
                                                          const Table& table, const std::vector<Row>& rows);

}  // namespace weir::predict
