#include "predict/table/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "base/contains.h"
#include "base/file.h"
#include "base/utf8.h"
#include "predict/validation/splits.h"
#include "yaml/strict.h"

namespace weir::predict {
namespace {

constexpr size_t kMaxSpecBytes = 256 << 10;

using yaml::Into;
using yaml::Node;
using yaml::Place;
using yaml::PlaceOf;
using yaml::ReadChoice;
using yaml::ReadEach;
using yaml::ReadMap;
using yaml::ReadText;
using yaml::Refuse;
using yaml::TextInto;

Result<std::vector<std::string>> ReadWords(const Node& node, const Place& place) {
  if (!node.IsSequence()) return Refuse(place, "wants a list, as [a, b]");
  std::vector<std::string> words;
  for (const auto& item : node) words.push_back(TRY(ReadText(item, PlaceOf(item, place.key))));
  return words;
}

Result<Expression> ReadExpression(const Node& node, const Place& place) {
  auto expression = Expression::Parse(TRY(ReadText(node, place)));
  if (!expression) return Refuse(place, expression.error().message);
  return expression;
}

// Reads a map of names to expressions, or a list of columns.
Result<std::vector<Named>> ReadNamed(const Node& node, const Place& place) {
  std::vector<Named> list;
  if (node.IsSequence()) {
    for (const auto& item : node) {
      const Place here = PlaceOf(item, place.key);
      std::string word = TRY(ReadText(item, here));
      list.push_back({std::move(word), TRY(ReadExpression(item, here)), here.line});
    }
    return list;
  }
  if (!node.IsMap()) return Refuse(place, "wants names with expressions, or a list of columns");
  TRY_STATUS(
      ReadEach(node, place, [&list](const std::string& name, const Node& value, const Place& here) -> Status {
        list.push_back({name, TRY(ReadExpression(value, here)), here.line});
        return {};
      }));
  return list;
}

Result<Join> ReadJoin(const Node& node, const Place& place) {
  Join join;
  TRY_STATUS(ReadMap(node, place,
                     {{"file", TextInto(join.file)},
                      {"key", TextInto(join.key)},
                      {"table_key", TextInto(join.table_key)},
                      {"group", TextInto(join.group)}}));
  if (join.key.empty()) return Refuse(place, "wants a key, and a file where there is a table of facts");
  if (join.table_key.empty()) join.table_key = join.key;
  return join;
}

constexpr std::pair<std::string_view, TargetKind> kKinds[] = {{"rate", TargetKind::kRate},
                                                              {"time", TargetKind::kTime}};
// In ms.
constexpr std::pair<std::string_view, double> kUnits[] = {
    {"us", 1e-3}, {"ms", 1}, {"s", 1000}, {"min", 60'000}, {"h", 3'600'000}};
// Whether the time is of one item.
constexpr std::pair<std::string_view, bool> kOf[] = {{"item", true}, {"step", false}};

Status ReadTarget(const Node& node, const Place& place, Spec& spec) {
  std::optional<double> unit;
  TRY_STATUS(ReadMap(
      node, place,
      {{"column", TextInto(spec.target)},
       {"kind",
        Into(spec.target_kind, [](const Node& n, const Place& p) { return ReadChoice(n, p, kKinds); })},
       {"unit", Into(unit, [](const Node& n, const Place& p) { return ReadChoice(n, p, kUnits); })},
       {"per", Into(spec.per, ReadExpression)}}));
  spec.unit_ms = unit.value_or(spec.target_kind == TargetKind::kTime ? 1 : 1000);
  return spec.target.empty() ? Refuse(place, "wants a column") : Status();
}

constexpr std::pair<std::string_view, Side> kSides[] = {{"hardware", Side::kHardware},
                                                        {"network", Side::kNetwork},
                                                        {"run", Side::kRun},
                                                        {"machine", Side::kMachine}};

// Reads a map of sides; `add` takes the value of each.
Status ReadBySide(const Node& node, const Place& place,
                  const std::function<Status(Side, const Node&, const Place&)>& add) {
  std::vector<yaml::Key> keys;
  for (const auto& [word, side] : kSides)
    keys.push_back({word, [&add, side](const Node& n, const Place& p) { return add(side, n, p); }});
  return ReadMap(node, place, keys);
}

Status ReadNumbers(const Node& node, const Place& place, Spec& spec) {
  return ReadBySide(node, place, [&spec](Side side, const Node& n, const Place& p) -> Status {
    for (Named& named : TRY(ReadNamed(n, p))) spec.numbers.push_back({std::move(named), side});
    return {};
  });
}

Status ReadCategories(const Node& node, const Place& place, Spec& spec) {
  return ReadBySide(node, place, [&spec](Side side, const Node& n, const Place& p) -> Status {
    for (std::string& column : TRY(ReadWords(n, p))) spec.categories.push_back({std::move(column), side});
    return {};
  });
}

// `capacity` is what a device has; every other name is a part of what it must hold.
Status ReadMemory(const Node& node, const Place& place, Spec& spec) {
  spec.memory = TRY(ReadNamed(node, place));
  const auto capacity = std::ranges::find(spec.memory, "capacity", &Named::name);
  if (capacity == spec.memory.end() || spec.memory.size() < 2)
    return Refuse(place,
                  "wants capacity, and at least one part in GB, as {capacity: memory_gb, weights: ...}");
  spec.memory_capacity = std::move(capacity->expression);
  spec.memory.erase(capacity);
  return {};
}

Status ReadPeaks(const Node& node, const Place& place, Spec& spec) {
  spec.peaks = TRY(ReadWords(node, place));
  if (spec.peaks.size() == 2) return {};
  return Refuse(place,
                "wants two columns: the peak in TFLOPS, and the GFLOP of the modelled time, as [peak, work]");
}

Status ReadSplits(const Node& node, const Place& place, Spec& spec) {
  spec.splits = TRY(ReadWords(node, place));
  for (const std::string& word : spec.splits) {
    if (SplitNamed(word)) continue;
    std::string known;
    for (const Split split : kSplits)
      known += fmt::format("{}{}", known.empty() ? "" : ", ", ToString(split));
    return Refuse(place, fmt::format("\"{}\" is none of {}", word, known));
  }
  if (spec.splits.empty()) return Refuse(place, "wants at least one, or to be left out");
  return {};
}

std::optional<double> Constant(const Expression& expression) {
  return expression.Evaluate([](std::string_view) { return Value(); });
}

Status CheckLeast(const Spec& spec) {
  for (const Named& one : spec.least) {
    const Place place{.line = one.line, .key = "least." + one.name};
    if (!Contains(spec.terms, one.name, &Named::name)) return Refuse(place, "is none of the terms");
    if (!(Constant(one.expression).value_or(-1) >= 0)) return Refuse(place, "wants a number from 0 on");
  }
  return {};
}

// Refuses a derived column that uses itself or a later one.
Status CheckDerive(const Spec& spec) {
  for (auto one = spec.derive.begin(); one != spec.derive.end(); ++one) {
    const Place place{.line = one->line, .key = "derive." + one->name};
    if (one->name == spec.target) return Refuse(place, "is the name of the target: give it another");
    for (const std::string& name : one->expression.names()) {
      const auto used = std::ranges::find(one, spec.derive.end(), name, &Named::name);
      if (used == one) return Refuse(place, "uses itself: give it another name");
      if (used == spec.derive.end()) continue;
      return Refuse(place, fmt::format("uses {0}, which stands below it (line {1}): put {0} above it", name,
                                       used->line));
    }
  }
  return {};
}

// Refuses the target in any value below `node`; each is a column or an expression.
Status RefuseTarget(const Node& node, const Place& place, const std::string& target) {
  if (node.IsScalar()) {
    const auto expression = Expression::Parse(node.Scalar());
    if (node.Scalar() != target && !(expression && Contains(expression->names(), target))) return {};
    return Refuse(place, fmt::format("uses the target, {}, which a prediction does not know: remove it; "
                                     "only skip may use it",
                                     target));
  }
  if (node.IsSequence()) {
    for (const auto& item : node) TRY_STATUS(RefuseTarget(item, PlaceOf(item, place.key), target));
    return {};
  }
  return ReadEach(node, place, [&target](const std::string&, const Node& value, const Place& here) {
    return RefuseTarget(value, here, target);
  });
}

Status CheckTarget(const Node& root, const Place& top, const Spec& spec) {
  static constexpr std::string_view kOther[] = {"predict", "rows",   "skip",   "of",
                                                "splits",  "expect", "require"};
  return ReadEach(root, top, [&spec](const std::string& key, const Node& node, const Place& place) -> Status {
    if (Contains(kOther, key)) return {};
    const std::string part = key == "target" ? "per" : key == "hardware" || key == "networks" ? "key" : "";
    if (part.empty()) return RefuseTarget(node, place, spec.target);
    const Node looked = node[part];
    if (!looked.IsDefined()) return {};
    return RefuseTarget(looked, PlaceOf(looked, key + "." + part), spec.target);
  });
}

Status ReadAll(const Node& root, const Place& top, Spec& spec) {
  const auto with = [&spec](Status (*read)(const Node&, const Place&, Spec&)) {
    return [&spec, read](const Node& node, const Place& place) { return read(node, place, spec); };
  };
  TRY_STATUS(ReadMap(root, top,
                     {{"predict", TextInto(spec.name)},
                      {"rows", TextInto(spec.rows)},
                      {"id", TextInto(spec.id)},
                      {"skip", Into(spec.skip, ReadExpression)},
                      {"hardware", Into(spec.hardware, ReadJoin)},
                      {"networks", Into(spec.networks, ReadJoin)},
                      {"target", with(ReadTarget)},
                      {"derive", Into(spec.derive, ReadNamed)},
                      {"terms", Into(spec.terms, ReadNamed)},
                      {"least", Into(spec.least, ReadNamed)},
                      {"physics_by", Into(spec.physics_by, ReadWords)},
                      {"numbers", with(ReadNumbers)},
                      {"categories", with(ReadCategories)},
                      {"devices", TextInto(spec.devices)},
                      {"batch", TextInto(spec.batch)},
                      {"of", Into(spec.time_is_of_item,
                                  [](const Node& n, const Place& p) { return ReadChoice(n, p, kOf); })},
                      {"ranges", Into(spec.ranges, ReadWords)},
                      {"peaks", with(ReadPeaks)},
                      {"expect", Into(spec.expect, ReadNamed)},
                      {"require", Into(spec.require, ReadNamed)},
                      {"optional", Into(spec.optional, ReadNamed)},
                      {"memory", with(ReadMemory)},
                      {"splits", with(ReadSplits)}}));
  const std::pair<const char*, bool> wanted[] = {
      {"predict", !spec.name.empty()},  {"rows", !spec.rows.empty()},   {"id", !spec.id.empty()},
      {"target", !spec.target.empty()}, {"terms", !spec.terms.empty()}, {"numbers", !spec.numbers.empty()}};
  for (const auto& [key, is_there] : wanted) {
    if (!is_there) return Refuse(top, fmt::format("the key {} is missing", key));
  }
  if (spec.hardware && !spec.hardware->group.empty()) {
    return Refuse(PlaceOf(root["hardware"], "hardware.group"), "is for networks only");
  }
  if (spec.networks && !spec.networks->group.empty() &&
      !Contains(spec.categories, spec.networks->group, &Category::column)) {
    return Refuse(PlaceOf(root["networks"], "networks.group"),
                  fmt::format("\"{}\" is none of the categories", spec.networks->group));
  }
  TRY_STATUS(CheckLeast(spec));
  TRY_STATUS(CheckDerive(spec));
  for (const auto& [key, name] : {std::pair("devices", &spec.devices), std::pair("batch", &spec.batch)}) {
    if (Contains(spec.derive, *name, &Named::name))
      return Refuse(PlaceOf(root[key], key),
                    fmt::format("{} is derived: name the column of the rows that --{} sets", *name, key));
  }
  return CheckTarget(root, top, spec);
}

}  // namespace

std::vector<double> Spec::LeastWeights() const {
  std::vector<double> weights;
  for (const Named& term : terms) {
    const auto found = std::ranges::find(least, term.name, &Named::name);
    weights.push_back(found == least.end() ? 0 : Constant(found->expression).value_or(0));
  }
  return weights;
}

void Spec::DropTerm(const std::string& name) {
  if (std::erase_if(terms, [&name](const Named& term) { return term.name == name; }) > 0)
    dropped_terms.push_back(name);
}

Result<Spec> ParseSpec(std::string_view text) {
  if (!IsUtf8(text)) return Fail(ErrorCode::kInvalidArgument, "the SPEC is not UTF-8: save it as such");
  Spec spec;
  TRY_STATUS(yaml::ReadFile(text, kMaxSpecBytes, "SPEC",
                            [&](const Node& root, const Place& top) { return ReadAll(root, top, spec); }));
  spec.source = text;
  return spec;
}

Result<Spec> ReadSpec(const std::string& path) {
  return TRY_CONTEXT(ParseSpec(TRY(ReadTextFile(path))), path);
}

}  // namespace weir::predict
