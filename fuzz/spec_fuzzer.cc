// Any bytes as a SPEC: refused with words, or rows of the made set are worked out by it.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "base/csv.h"
#include "base/error.h"
#include "predict/table/dataset.h"
#include "predict/testing/made_set.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir;
  using namespace weir::predict;
  const auto spec = ParseSpec({reinterpret_cast<const char*>(data), size});
  if (!spec) {
    CHECK(!spec.error().message.empty());
    return 0;
  }
  static const MadeSet& made = *new MadeSet(MadeSet::Make());
  static const Csv& rows = *new Csv(*ParseCsv(std::string_view(made.rows).substr(0, made.rows.find("r20,"))));
  const Facts facts{.hardware = Table(*ParseCsv(made.hardware)), .networks = Table(*ParseCsv(made.networks))};
  (void)CheckNames(*spec, facts, Table(rows));
  const auto worked_out = MakeRows(*spec, facts, Table(rows), WithTarget::kYes);
  if (!worked_out) return 0;
  CHECK(std::ssize(*worked_out) == rows.rows());
  CHECK(std::ssize(SkippedRows(*spec, facts, Table(rows))) == rows.rows());
  for (const Row& row : *worked_out) {
    CHECK(!row.problem.empty() || (row.time.has_value() && row.terms.size() == spec->terms.size()));
    CHECK(row.numbers.size() == spec->numbers.size());
    CHECK(row.categories.size() == spec->categories.size());
  }
  return 0;
}
