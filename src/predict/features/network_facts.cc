#include "predict/features/network_facts.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::predict {
namespace {

// The columns behind network-side features that no hardware table has.
std::set<std::string> NetworkColumns(const Spec& spec, const Facts& facts) {
  std::set<std::string> columns;
  for (const Number& number : spec.numbers) {
    if (number.side == Side::kNetwork) columns.merge(ColumnsBehind(spec, number.named.expression));
  }
  for (const std::string& column : facts.networks.csv().columns) columns.insert(column);
  for (const Category& category : spec.categories) {
    if (category.side == Side::kNetwork) columns.insert(category.column);
  }
  std::erase_if(columns, [&](const std::string& name) { return facts.hardware.Column(name) >= 0; });
  return columns;
}

}  // namespace

bool TermsUseNetwork(const Spec& spec, const Facts& facts) {
  const std::set<std::string> columns = NetworkColumns(spec, facts);
  return std::ranges::any_of(spec.terms, [&](const Named& term) {
    return std::ranges::any_of(ColumnsBehind(spec, term.expression),
                               [&](const std::string& name) { return columns.contains(name); });
  });
}

Result<Table> NetworkFactsOf(const Spec& spec, const Table& rows) {
  const int key = spec.networks ? rows.Column(spec.networks->key) : -1;
  if (key < 0) return Table();
  std::vector<int> from;  // columns of the rows
  Csv csv{.columns = {spec.networks->table_key}, .cells = {}, .lines = {}};
  for (const std::string& name : NetworkColumns(spec, {})) {
    const int column = rows.Column(name);
    if (column < 0 || column == key) continue;
    from.push_back(column);
    csv.columns.push_back(name);
  }
  std::map<std::string_view, std::vector<std::string>> facts;
  for (int64_t row = 0; row < rows.rows(); ++row) {
    auto& cells = facts[rows.Cell(row, key)];
    const bool is_first = cells.empty();
    for (size_t j = 0; j < from.size(); ++j) {
      const std::string_view cell = rows.Cell(row, from[j]);
      if (is_first) {
        cells.emplace_back(cell);
      } else if (cells[j] != cell) {
        cells[j].clear();
      }
    }
  }
  for (auto& [network, cells] : facts) {
    csv.cells.emplace_back(network);
    std::ranges::move(cells, std::back_inserter(csv.cells));
    csv.lines.push_back(std::ssize(csv.lines) + 2);
  }
  return Table::WithKey(std::move(csv), spec.networks->table_key);
}

}  // namespace weir::predict
