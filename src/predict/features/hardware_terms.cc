#include "predict/features/hardware_terms.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace weir::predict {
namespace {

constexpr size_t kFewestKinds = 4;
constexpr size_t kSomeRows = 40;

}  // namespace

Result<std::vector<OneHardwareTerm>> FindOneHardwareTerms(const Spec& spec, const Facts& facts,
                                                          const Table& table, const std::vector<Row>& rows) {
  std::vector<OneHardwareTerm> found;
  const int key = spec.hardware ? table.Column(spec.hardware->key) : -1;
  std::set<std::string> kinds;
  for (const Row& row : rows) kinds.insert(row.hardware);
  if (key < 0 || kinds.size() < kFewestKinds) return found;
  std::vector<int64_t> some;  // at even distances
  for (size_t i = 0, step = rows.size() / kSomeRows + 1; i < rows.size(); i += step)
    some.push_back(rows[i].place);
  const Csv asked = PickRows(table.csv(), some);
  std::map<std::string_view, std::vector<Row>> on;  // the rows, by hardware
  for (const std::string& kind : kinds)
    on[kind] =
        TRY(MakeRows(spec, facts, Table(WithColumn(asked, spec.hardware->key, kind)), WithTarget::kNo));
  for (size_t k = 0; k < spec.terms.size(); ++k) {
    std::set<std::string_view> alone;  // hardware whose value no other shares
    bool is_indicator = true;
    for (size_t i = 0; i < some.size() && is_indicator; ++i) {
      std::map<double, std::vector<std::string_view>> values;
      for (const auto& [kind, made] : on) {
        if (made[i].terms.size() == spec.terms.size()) values[made[i].terms[k]].push_back(kind);
      }
      if (values.size() < 2) continue;
      const auto single =
          std::ranges::find_if(values, [](const auto& value) { return value.second.size() == 1; });
      is_indicator = values.size() == 2 && single != values.end();
      if (is_indicator) alone.insert(single->second.front());
    }
    if (is_indicator && alone.size() == 1) found.push_back({spec.terms[k].name, std::string(*alone.begin())});
  }
  return found;
}

}  // namespace weir::predict
