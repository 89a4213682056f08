#include "predict/table/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "base/contains.h"

namespace weir::predict {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr double kMostWhole = 1e15;    // that a double holds with all its digits
constexpr double kMostNumber = 1e100;  // of a feature: the square of a larger one is none

// Finds the value of a name: in derived columns, in the row, in the hardware's facts, in the network's.
class Names {
 public:
  Names(const Spec& spec, const Facts& facts, const Table& rows) : spec_(spec), facts_(facts), rows_(rows) {}

  // Facts and derived values of one row.
  struct Place {
    int64_t row = 0, hardware = -1, network = -1;
    std::vector<double> derived;  // NaN: unknown
  };

  Value Find(const Place& place, std::string_view name) const {
    for (size_t i = place.derived.size(); i-- > 0;) {
      if (spec_.derive[i].name != name) continue;
      return std::isnan(place.derived[i]) ? Value() : Value{.number = place.derived[i], .text = {}};
    }
    if (const int column = rows_.Column(name); column >= 0) return rows_.At(place.row, column);
    const int hardware = facts_.hardware.Column(name);
    if (hardware >= 0 && place.hardware >= 0) return facts_.hardware.At(place.hardware, hardware);
    const int network = facts_.networks.Column(name);
    if (network >= 0 && place.network >= 0) return facts_.networks.At(place.network, network);
    return {};
  }

  std::optional<double> Work(const Place& place, const Expression& expression) const {
    return expression.Evaluate([&](std::string_view name) { return Find(place, name); });
  }

  Place PlaceOf(int64_t row) const {
    Place place{.row = row};
    place.hardware = Joined(spec_.hardware, facts_.hardware, row);
    place.network = Joined(spec_.networks, facts_.networks, row);
    for (const Named& named : spec_.derive) {
      place.derived.push_back(Work(place, named.expression).value_or(kUnknown));
    }
    return place;
  }

  bool Knows(const std::string& name) const {
    return rows_.Column(name) >= 0 || facts_.hardware.Column(name) >= 0 ||
           facts_.networks.Column(name) >= 0 || Contains(spec_.derive, name, &Named::name) ||
           Contains(spec_.optional, name, &Named::name);
  }

 private:
  int64_t Joined(const std::optional<Join>& join, const Table& table, int64_t row) const {
    if (!join) return -1;
    const int column = rows_.Column(join->key);
    return column < 0 ? -1 : table.RowOf(rows_.Cell(row, column));
  }

  const Spec& spec_;
  const Facts& facts_;
  const Table& rows_;
};

Status CheckColumn(const Table& rows, const std::string& name, std::string_view role) {
  if (rows.Column(name) >= 0) return {};
  return Fail(ErrorCode::kInvalidArgument, fmt::format("the rows have no column \"{}\" ({})", name, role));
}

// A name that the spec uses, and where.
struct Used {
  std::string where;  // "terms.tensor (work / peak)"
  std::string name;
};

void AddNames(const std::string& where, const Expression& expression, std::vector<Used>& all) {
  for (const std::string& name : expression.names())
    all.push_back({fmt::format("{} ({})", where, expression.text()), name});
}

std::vector<Used> NamesOf(const Spec& spec) {
  std::vector<Used> all;
  if (spec.per) AddNames("target.per", *spec.per, all);
  for (const Named& named : spec.derive) AddNames("derive." + named.name, named.expression, all);
  for (const Named& named : spec.terms) AddNames("terms." + named.name, named.expression, all);
  for (const Number& number : spec.numbers)
    AddNames("numbers." + number.named.name, number.named.expression, all);
  for (const Category& category : spec.categories) all.push_back({"categories", category.column});
  for (const Named& named : spec.require) AddNames("require." + named.name, named.expression, all);
  for (const Named& named : spec.optional) AddNames("optional." + named.name, named.expression, all);
  for (const Named& named : spec.memory) AddNames("memory." + named.name, named.expression, all);
  if (spec.memory_capacity) AddNames("memory.capacity", *spec.memory_capacity, all);
  for (const std::string& name : spec.physics_by) all.push_back({"physics_by", name});
  for (const std::string& name : spec.ranges) all.push_back({"ranges", name});
  for (const std::string& name : spec.peaks) all.push_back({"peaks", name});
  if (!spec.devices.empty()) all.push_back({"devices", spec.devices});
  if (!spec.batch.empty()) all.push_back({"batch", spec.batch});
  return all;
}

class RowMaker {
 public:
  RowMaker(const Spec& spec, const Facts& facts, const Table& rows, WithTarget with)
      : spec_(spec), facts_(facts), rows_(rows), names_(spec, facts, rows), with_(with) {}

  Row Make(int64_t index) const {
    const Names::Place place = names_.PlaceOf(index);
    Row row{.id = std::string(rows_.Cell(index, rows_.Column(spec_.id))), .place = index};
    const Status joined = Join(row, place, index);
    // The row itself may give facts: a key that no table has matters only if a fact is missing.
    row.problem = Problem(Physics(row, place));
    if (!row.problem.empty() && !joined) row.problem = joined.error().message + Lacking(": ", place);
    if (row.problem.empty() && with_ == WithTarget::kYes) row.problem = Problem(Target(row, index));
    Features(row, place);
    return row;
  }

 private:
  static std::string Problem(const Status& status) { return status ? "" : status.error().message; }
  static std::unexpected<Error> Because(std::string why) {
    return Fail(ErrorCode::kInvalidArgument, std::move(why));
  }

  static std::string Unknown(const predict::Join& join, std::string_view kind, const std::string& name,
                             const Table& table) {
    return fmt::format("{} \"{}\" is not in the {} table{}; add it to {}, or give its facts", join.key, name,
                       kind, table.Suggestion(name), join.file);
  }

  Status Join(Row& row, const Names::Place& place, int64_t index) const {
    const auto key = [&](const std::optional<predict::Join>& join) {
      return join ? std::string(rows_.Cell(index, rows_.Column(join->key))) : std::string();
    };
    row.hardware = key(spec_.hardware);
    row.network = key(spec_.networks);
    const auto lacks = [](const std::optional<predict::Join>& join, int64_t found) {
      return join && !join->file.empty() && found < 0;
    };
    if (lacks(spec_.hardware, place.hardware)) {
      return Because(Unknown(*spec_.hardware, "hardware", row.hardware, facts_.hardware));
    }
    if (lacks(spec_.networks, place.network)) {
      return Because(Unknown(*spec_.networks, "network", row.network, facts_.networks));
    }
    return {};
  }

  Status Physics(Row& row, const Names::Place& place) const {
    if (spec_.per) {
      const auto per = names_.Work(place, *spec_.per);
      if (!per || !(*per > 0)) return Because(fmt::format("{} is not above 0 or unknown", spec_.per->text()));
      row.per = *per;
    }
    if (!spec_.devices.empty()) {
      const auto devices = names_.Find(place, spec_.devices).number;
      if (!devices || !(*devices >= 1) || *devices != std::floor(*devices))
        return Because(fmt::format("{} is not a whole count from 1 on", spec_.devices));
      row.devices = *devices;
    }
    for (const Named& term : spec_.terms) {
      const auto value = names_.Work(place, term.expression);
      if (!value)
        return Because(fmt::format("the physical term {} ({}) is unknown{}", term.name,
                                   term.expression.text(), Lacking(": give ", place)));
      if (*value < 0)
        return Because(
            fmt::format("the physical term {} ({}) is below 0", term.name, term.expression.text()));
      row.terms.push_back(*value);
    }
    if (std::ranges::none_of(row.terms, [](double term) { return term > 0; })) {
      return Because("no physical term is above 0");
    }
    return Possible(place);
  }

  // Refuses what the SPEC requires and the row breaks, with the row's figures.
  Status Possible(const Names::Place& place) const {
    for (const Named& named : spec_.require) {
      if (names_.Work(place, named.expression) != 0) continue;
      std::string figures;
      for (const std::string& name : named.expression.names()) {
        const auto number = names_.Find(place, name).number;
        if (number) figures += fmt::format("{}{} is {:g}", figures.empty() ? "" : ", ", name, *number);
      }
      return Because(fmt::format("impossible: {}: the SPEC requires {}", figures, named.name));
    }
    return {};
  }

  // Returns `before` and the columns that the row lacks for its terms; empty if it lacks none.
  std::string Lacking(std::string_view before, const Names::Place& place) const {
    std::vector<std::string> lacks;
    for (const Named& term : spec_.terms) {
      if (!names_.Work(place, term.expression)) AddLacking(term.expression, place, lacks);
    }
    return lacks.empty() ? "" : fmt::format("{}{}", before, fmt::join(lacks, ", "));
  }

  // Adds the columns that are not derived and are unknown in this row.
  void AddLacking(const Expression& expression, const Names::Place& place,
                  std::vector<std::string>& lacks) const {
    for (const std::string& name : expression.names()) {
      const Value value = names_.Find(place, name);
      const auto derived = std::ranges::find(spec_.derive, name, &Named::name);
      if (value.number || Contains(lacks, name)) continue;
      if (derived != spec_.derive.end()) {
        AddLacking(derived->expression, place, lacks);
      } else if (value.text.empty() || ParseNumber(value.text)) {
        lacks.push_back(name);
      }
    }
  }

  Status Target(Row& row, int64_t index) const {
    const Value value = rows_.At(index, rows_.Column(spec_.target));
    if (!value.number || !(*value.number > 0)) {
      return Because(
          fmt::format("{} is \"{}\", not a number above 0", spec_.target, value.text.substr(0, 40)));
    }
    row.time = spec_.unit_ms *
               (spec_.target_kind == TargetKind::kTime ? *value.number / row.per : row.per / *value.number);
    if (*row.time > 0 && std::abs(std::log(*row.time)) <= kMostLogTime) return {};
    const double time = *row.time;
    row.time.reset();
    return Because(fmt::format("{} is \"{}\", which is {:.3g} ms, no possible time: check its unit",
                               spec_.target, value.text.substr(0, 40), time));
  }

  void Features(Row& row, const Names::Place& place) const {
    for (const Number& number : spec_.numbers) {
      row.numbers.push_back(names_.Work(place, number.named.expression).value_or(kUnknown));
      if (row.problem.empty()) row.problem = ProblemOf(number.named, row.numbers.back(), place);
    }
    for (const Category& category : spec_.categories) {
      row.categories.emplace_back(TextOf(place, category.column));
    }
    row.network_group = TwinsOf(row);
    for (size_t j = 0; spec_.networks && j < spec_.categories.size(); ++j) {
      if (spec_.categories[j].column == spec_.networks->group) row.network_group = row.categories[j];
    }
    for (const std::string& name : spec_.ranges)
      row.ranges.push_back(names_.Find(place, name).number.value_or(kUnknown));
    for (const std::string& name : spec_.peaks)
      row.peaks.push_back(names_.Find(place, name).number.value_or(kUnknown));
    for (const std::string& name : spec_.physics_by) row.group += TextOf(place, name) + "|";
    for (const Named& part : spec_.memory)
      row.memory.push_back(names_.Work(place, part.expression).value_or(kUnknown));
    if (spec_.memory_capacity)
      row.memory_capacity = names_.Work(place, *spec_.memory_capacity).value_or(kUnknown);
    row.vendor = TextOf(place, "vendor");
    if (const int column = facts_.hardware.Column("vendor");
        row.vendor.empty() && column >= 0 && place.hardware >= 0)
      row.vendor = facts_.hardware.Cell(place.hardware, column);
    for (const Named& named : spec_.optional) {
      if (names_.Find(place, named.name).text.empty() &&
          names_.Work(place, named.expression).value_or(0) != 0)
        row.missing.push_back(named.name);
    }
    for (const Named& named : spec_.expect) {
      if (names_.Work(place, named.expression) == 0) row.contradictions.push_back(named.name);
    }
  }

  // Returns the same text for networks with the same facts, which are one network under several names; the
  // name alone if a fact is unknown.
  std::string TwinsOf(const Row& row) const {
    std::string facts;
    for (size_t j = 0; j < spec_.numbers.size(); ++j) {
      if (spec_.numbers[j].side != Side::kNetwork) continue;
      if (std::isnan(row.numbers[j])) return row.network;
      facts += fmt::format("{:.4g} ", row.numbers[j]);
    }
    return facts.empty() ? row.network : facts;
  }

  // Refuses a cell that is no usable number. In a fit such cells are reported, and unknown.
  std::string ProblemOf(const Named& named, double number, const Names::Place& place) const {
    if (std::abs(number) > kMostNumber)
      return fmt::format("{} is {:.3g}, which is no possible value", named.expression.text(), number);
    const std::string_view text = names_.Find(place, named.expression.text()).text;
    if (with_ == WithTarget::kYes || !std::isnan(number) || text.empty()) return "";
    return fmt::format("{} is \"{}\", not a number", named.expression.text(), text.substr(0, 40));
  }

  // Returns a cell as a word. A whole number has one spelling (4, not 4.0); a version (1.10) is kept.
  std::string TextOf(const Names::Place& place, const std::string& name) const {
    const Value value = names_.Find(place, name);
    const bool is_whole =
        value.number && *value.number == std::floor(*value.number) && std::abs(*value.number) < kMostWhole;
    if (is_whole) return fmt::format("{:.0f}", *value.number);
    if (!value.text.empty() || !value.number) return std::string(value.text);
    return fmt::format("{:.6g}", *value.number);
  }

  const Spec& spec_;
  const Facts& facts_;
  const Table& rows_;
  const Names names_;
  const WithTarget with_;
};

}  // namespace

Result<std::vector<Row>> MakeRows(const Spec& spec, const Facts& facts, const Table& rows, WithTarget with) {
  TRY_STATUS(CheckColumn(rows, spec.id, "id"));
  if (spec.hardware) TRY_STATUS(CheckColumn(rows, spec.hardware->key, "hardware key"));
  if (spec.networks) TRY_STATUS(CheckColumn(rows, spec.networks->key, "network key"));
  if (with == WithTarget::kYes) TRY_STATUS(CheckColumn(rows, spec.target, "target"));
  const RowMaker maker(spec, facts, rows, with);
  std::vector<Row> made;
  made.reserve(static_cast<size_t>(rows.rows()));
  for (int64_t i = 0; i < rows.rows(); ++i) made.push_back(maker.Make(i));
  return made;
}

Status CheckNames(const Spec& spec, const Facts& facts, const Table& rows) {
  const Names names(spec, facts, rows);
  std::vector<Used> all = NamesOf(spec);
  if (spec.skip) AddNames("skip", *spec.skip, all);
  for (const auto& [where, name] : all) {
    if (names.Knows(name)) continue;
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: there is no column \"{}\" in the rows or the tables of facts, and derive makes none",
                    where, name));
  }
  return {};
}

std::vector<std::string> ColumnsOf(const Spec& spec) {
  std::set<std::string> columns;
  for (const auto& [where, name] : NamesOf(spec)) {
    if (!Contains(spec.derive, name, &Named::name)) columns.insert(name);
  }
  for (const auto& join : {spec.hardware, spec.networks}) {
    if (join) columns.insert(join->key);
  }
  if (spec.hardware && !spec.hardware->file.empty()) columns.insert("vendor");
  return {columns.begin(), columns.end()};
}

std::set<std::string> ColumnsBehind(const Spec& spec, const Expression& expression) {
  std::set<std::string> columns;
  for (const std::string& name : expression.names()) {
    const auto derived = std::ranges::find(spec.derive, name, &Named::name);
    if (derived == spec.derive.end()) {
      columns.insert(name);
    } else {
      columns.merge(ColumnsBehind(spec, derived->expression));
    }
  }
  return columns;
}

std::vector<bool> SkippedRows(const Spec& spec, const Facts& facts, const Table& rows) {
  std::vector<bool> skipped(static_cast<size_t>(rows.rows()), false);
  if (!spec.skip) return skipped;
  const Names names(spec, facts, rows);
  for (int64_t i = 0; i < rows.rows(); ++i) {
    skipped[static_cast<size_t>(i)] = names.Work(names.PlaceOf(i), *spec.skip).value_or(0) != 0;
  }
  return skipped;
}

double TargetFromTime(const Spec& spec, const Row& row, double time_ms) {
  const double time = time_ms / spec.unit_ms;
  return spec.target_kind == TargetKind::kTime ? time * row.per : row.per / time;
}

}  // namespace weir::predict
