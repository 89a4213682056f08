// Any bytes as a table: read or refused with a line and a column, and what is read is a table that is written
// and read again as the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/csv.h"
#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir;
  const auto csv =
      ParseCsv({reinterpret_cast<const char*>(data), size}, {.max_columns = 50, .max_rows = 200});
  if (!csv) {
    CHECK(csv.error().message.starts_with("line "));
    CHECK(csv.error().message.find(", column ") != std::string::npos);
    return 0;
  }
  CHECK(csv->cells.size() == csv->columns.size() * csv->lines.size());
  std::string text = CsvLine(csv->columns);
  for (int64_t row = 0; row < csv->rows(); ++row) text += CsvLine(csv->row(row));
  const auto again = ParseCsv(text);
  CHECK(again.has_value());
  CHECK(again->columns == csv->columns);
  CHECK(again->cells == csv->cells);
  for (const std::string& cell : csv->cells) (void)ParseNumber(cell);
  return 0;
}
