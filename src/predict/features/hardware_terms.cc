#include "predict/features/hardware_terms.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace weir::predict {
namespace {

constexpr size_t kFewestKinds = 4;
constexpr size_t kSomeRows = 40;

// Rows of the table, at even distances, each once for every kind of hardware; the kinds change fastest.
Table OnEveryHardware(const Table& table, const std::vector<Row>& rows, int key,
                      const std::set<std::string>& kinds) {
  Csv csv{.columns = table.csv().columns, .cells = {}, .lines = {}};
  for (size_t i = 0, step = rows.size() / kSomeRows + 1; i < rows.size(); i += step) {
    for (const std::string& kind : kinds) {
      const auto cells = table.csv().row(rows[i].place);
      const size_t begin = csv.cells.size();
      csv.cells.insert(csv.cells.end(), cells.begin(), cells.end());
      csv.cells[begin + static_cast<size_t>(key)] = kind;
      csv.lines.push_back(table.csv().lines[static_cast<size_t>(rows[i].place)]);
    }
  }
  return Table(std::move(csv));
}

}  // namespace

Result<std::vector<OneHardwareTerm>> FindOneHardwareTerms(const Spec& spec, const Facts& facts,
                                                          const Table& table, const std::vector<Row>& rows) {
  std::vector<OneHardwareTerm> found;
  const int key = spec.hardware ? table.Column(spec.hardware->key) : -1;
  std::set<std::string> kinds;
  for (const Row& row : rows) kinds.insert(row.hardware);
  if (key < 0 || kinds.size() < kFewestKinds) return found;
  const std::vector<Row> made =
      TRY(MakeRows(spec, facts, OnEveryHardware(table, rows, key, kinds), WithTarget::kNo));
  for (size_t k = 0; k < spec.terms.size(); ++k) {
    std::set<std::string> alone;  // hardware whose value no other shares
    bool is_indicator = true;
    for (size_t begin = 0; begin + kinds.size() <= made.size() && is_indicator; begin += kinds.size()) {
      std::map<double, std::vector<const Row*>> values;
      for (size_t i = begin; i < begin + kinds.size(); ++i) {
        if (made[i].terms.size() == spec.terms.size()) values[made[i].terms[k]].push_back(&made[i]);
      }
      if (values.size() < 2) continue;
      const auto single =
          std::ranges::find_if(values, [](const auto& value) { return value.second.size() == 1; });
      is_indicator = values.size() == 2 && single != values.end();
      if (is_indicator) alone.insert(single->second.front()->hardware);
    }
    if (is_indicator && alone.size() == 1) found.push_back({spec.terms[k].name, *alone.begin()});
  }
  return found;
}

}  // namespace weir::predict
