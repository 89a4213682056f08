// Facts that the rows of a fit give of their networks.
#pragma once

#include "predict/table/dataset.h"

namespace weir::predict {

// Returns whether any term of the physical model uses a fact of the network: a column of the network table,
// or one that a network-side feature uses. If none does, nothing is known about a network that was never
// measured.
bool TermsUseNetwork(const Spec& spec, const Facts& facts);

// Returns a network table made from the rows, for a spec without one: a row for each network, with the
// columns behind the network-side features. A cell is empty if the network's rows differ in it.
Result<Table> NetworkFactsOf(const Spec& spec, const Table& rows);

}  // namespace weir::predict
