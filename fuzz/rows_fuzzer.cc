// Any bytes as a CSV of measurements: what is a table gives a row for each line, usable or with its problem,
// and findings that name rows of it.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/csv.h"
#include "base/error.h"
#include "predict/table/dataset.h"
#include "predict/testing/made_set.h"
#include "predict/validation/checks.h"

namespace {

using namespace weir;
using namespace weir::predict;

struct Known {
  Spec spec;
  Facts facts;
};
const Known& Made() {
  static const Known& known = *new Known([] {
    const MadeSet made = MadeSet::Make();
    return Known{.spec = *ParseSpec(made.spec),
                 .facts = {.hardware = *Table::WithKey(*ParseCsv(made.hardware), "gpu"),
                           .networks = *Table::WithKey(*ParseCsv(made.networks), "network")}};
  }());
  return known;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto csv = ParseCsv({reinterpret_cast<const char*>(data), size}, {.max_columns = 50, .max_rows = 200});
  if (!csv) return 0;
  const auto& [spec, facts] = Made();
  const Table table(std::move(*csv));
  for (const Finding& finding : CheckCells(spec, table)) {
    CHECK(finding.rows.size() == 1);
    CHECK(finding.places.front() >= 0 && finding.places.front() < table.rows());
  }
  (void)CheckFacts(spec, facts, table);
  const auto rows = MakeRows(spec, facts, table, WithTarget::kYes);
  if (!rows) return 0;
  CHECK(std::ssize(*rows) == table.rows());
  for (const Row& row : *rows) {
    if (!row.problem.empty()) continue;
    CHECK(*row.time > 0 && std::isfinite(*row.time));
    for (const double term : row.terms) CHECK(term >= 0 && std::isfinite(term));
  }
  return 0;
}
