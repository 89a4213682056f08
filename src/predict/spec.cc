#include "predict/spec.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <functional>
#include <utility>

#include "base/file.h"
#include "predict/contains.h"

namespace weir::predict {
namespace {

constexpr size_t kMaxSpecBytes = 256 << 10;

std::unexpected<Error> Refuse(const YAML::Node& node, std::string_view key, std::string_view what) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("line {}: {}: {}", node.Mark().line + 1, key, what));
}

Result<std::string> ReadWord(const YAML::Node& node, std::string_view key) {
  if (!node.IsScalar() || node.Scalar().empty()) return Refuse(node, key, "wants one word");
  return node.Scalar();
}

Status ReadInto(std::string& to, const YAML::Node& node, std::string_view key) {
  const Result<std::string> word = ReadWord(node, key);
  if (!word) return std::unexpected(word.error());
  to = *word;
  return {};
}

// Whether it is the first of the two words.
Result<bool> ReadEither(const YAML::Node& node, std::string_view key, std::string_view first,
                        std::string_view second) {
  const Result<std::string> word = ReadWord(node, key);
  if (!word) return std::unexpected(word.error());
  if (*word != first && *word != second) return Refuse(node, key, fmt::format("is {} or {}", first, second));
  return *word == first;
}

Result<std::vector<std::string>> ReadWords(const YAML::Node& node, std::string_view key) {
  if (!node.IsSequence()) return Refuse(node, key, "wants a list, as [a, b]");
  std::vector<std::string> words;
  for (const auto& item : node) words.push_back(TRY(ReadWord(item, key)));
  return words;
}

Result<Expression> ReadExpression(const YAML::Node& node, std::string_view key) {
  const std::string text = TRY(ReadWord(node, key));
  auto expression = Expression::Parse(text);
  if (!expression) return Refuse(node, key, expression.error().message);
  return expression;
}

struct Key {
  std::string_view name;
  std::function<Status(const YAML::Node&)> read;
};

Status ReadMap(const YAML::Node& map, std::string_view key, const std::vector<Key>& keys) {
  if (!map.IsMap()) return Refuse(map, key, "wants keys and values");
  std::vector<std::string> seen;
  for (const auto& item : map) {
    const std::string name = TRY(ReadWord(item.first, key));
    const auto known = std::ranges::find(keys, name, &Key::name);
    if (known == keys.end()) {
      std::string names;
      for (const Key& k : keys) names += fmt::format("{}{}", names.empty() ? "" : ", ", k.name);
      return Refuse(item.first, name, fmt::format("no such key; known here: {}", names));
    }
    if (std::ranges::find(seen, name) != seen.end()) return Refuse(item.first, name, "is there twice");
    seen.push_back(name);
    TRY_STATUS(known->read(item.second));
  }
  return {};
}

// A map of names to expressions, or a list of columns that stand for themselves.
Result<std::vector<Named>> ReadNamed(const YAML::Node& node, std::string_view key) {
  std::vector<Named> list;
  if (node.IsSequence()) {
    for (const std::string& word : TRY(ReadWords(node, key))) {
      auto expression = Expression::Parse(word);
      if (!expression) return Refuse(node, key, expression.error().message);
      list.push_back({word, std::move(*expression)});
    }
    return list;
  }
  if (!node.IsMap()) return Refuse(node, key, "wants names with expressions, or a list of columns");
  for (const auto& item : node) {
    const std::string name = TRY(ReadWord(item.first, key));
    if (Contains(list, name, &Named::name)) return Refuse(item.first, name, "is there twice");
    list.push_back({name, TRY(ReadExpression(item.second, name))});
  }
  return list;
}

Result<Join> ReadJoin(const YAML::Node& node, std::string_view key) {
  Join join;
  TRY_STATUS(ReadMap(
      node, key,
      {{"file", [&](const YAML::Node& n) { return ReadInto(join.file, n, "file"); }},
       {"key", [&](const YAML::Node& n) { return ReadInto(join.key, n, "key"); }},
       {"table_key", [&](const YAML::Node& n) { return ReadInto(join.table_key, n, "table_key"); }}}));
  if (join.key.empty()) return Refuse(node, key, "wants a key, and a file where there is a table of facts");
  if (join.table_key.empty()) join.table_key = join.key;
  return join;
}

Status ReadTarget(const YAML::Node& node, Spec& spec) {
  TRY_STATUS(ReadMap(node, "target",
                     {{"column", [&](const YAML::Node& n) { return ReadInto(spec.target, n, "column"); }},
                      {"kind",
                       [&](const YAML::Node& n) -> Status {
                         const Result<bool> rate = ReadEither(n, "kind", "rate", "time");
                         if (!rate) return std::unexpected(rate.error());
                         spec.target_kind = *rate ? TargetKind::kRate : TargetKind::kTime;
                         return {};
                       }},
                      {"per", [&](const YAML::Node& n) -> Status {
                         spec.per = TRY(ReadExpression(n, "per"));
                         return {};
                       }}}));
  return spec.target.empty() ? Refuse(node, "target", "wants a column") : Status();
}

constexpr std::pair<std::string_view, Side> kSides[] = {{"hardware", Side::kHardware},
                                                        {"network", Side::kNetwork},
                                                        {"run", Side::kRun},
                                                        {"machine", Side::kMachine}};

Status ReadNumbers(const YAML::Node& node, Spec& spec) {
  std::vector<Key> keys;
  for (const auto& [word, side] : kSides) {
    keys.push_back({word, [&spec, word, side](const YAML::Node& n) -> Status {
                      for (Named& named : TRY(ReadNamed(n, word)))
                        spec.numbers.push_back({std::move(named), side});
                      return {};
                    }});
  }
  return ReadMap(node, "numbers", keys);
}

Status ReadCategories(const YAML::Node& node, Spec& spec) {
  std::vector<Key> keys;
  for (const auto& [word, side] : kSides) {
    keys.push_back({word, [&spec, word, side](const YAML::Node& n) -> Status {
                      for (std::string& column : TRY(ReadWords(n, word)))
                        spec.categories.push_back({std::move(column), side});
                      return {};
                    }});
  }
  return ReadMap(node, "categories", keys);
}

Result<Spec> ReadAll(const YAML::Node& root) {
  Spec spec;
  const auto word = [](std::string& to, const char* key) {
    return [&to, key](const YAML::Node& n) { return ReadInto(to, n, key); };
  };
  const auto words = [](std::vector<std::string>& to, const char* key) {
    return [&to, key](const YAML::Node& n) -> Status {
      to = TRY(ReadWords(n, key));
      return {};
    };
  };
  const auto named = [](std::vector<Named>& to, const char* key) {
    return [&to, key](const YAML::Node& n) -> Status {
      to = TRY(ReadNamed(n, key));
      return {};
    };
  };
  TRY_STATUS(ReadMap(root, "spec",
                     {{"predict", word(spec.name, "predict")},
                      {"rows", word(spec.rows, "rows")},
                      {"id", word(spec.id, "id")},
                      {"skip",
                       [&](const YAML::Node& n) -> Status {
                         spec.skip = TRY(ReadExpression(n, "skip"));
                         return {};
                       }},
                      {"hardware",
                       [&](const YAML::Node& n) -> Status {
                         spec.hardware = TRY(ReadJoin(n, "hardware"));
                         return {};
                       }},
                      {"networks",
                       [&](const YAML::Node& n) -> Status {
                         spec.networks = TRY(ReadJoin(n, "networks"));
                         return {};
                       }},
                      {"target", [&](const YAML::Node& n) { return ReadTarget(n, spec); }},
                      {"derive", named(spec.derive, "derive")},
                      {"terms", named(spec.terms, "terms")},
                      {"physics_by", words(spec.physics_by, "physics_by")},
                      {"numbers", [&](const YAML::Node& n) { return ReadNumbers(n, spec); }},
                      {"categories", [&](const YAML::Node& n) { return ReadCategories(n, spec); }},
                      {"devices", word(spec.devices, "devices")},
                      {"batch", word(spec.batch, "batch")},
                      {"of",
                       [&](const YAML::Node& n) -> Status {
                         const Result<bool> item = ReadEither(n, "of", "item", "step");
                         if (!item) return std::unexpected(item.error());
                         spec.time_is_of_item = *item;
                         return {};
                       }},
                      {"ranges", words(spec.ranges, "ranges")},
                      {"peaks", words(spec.peaks, "peaks")},
                      {"questions", words(spec.questions, "questions")}}));
  const auto wants = [&](bool there, const char* key) -> Status {
    return there ? Status() : Fail(ErrorCode::kInvalidArgument, fmt::format("the key {} is missing", key));
  };
  TRY_STATUS(wants(!spec.name.empty(), "predict"));
  TRY_STATUS(wants(!spec.rows.empty(), "rows"));
  TRY_STATUS(wants(!spec.id.empty(), "id"));
  TRY_STATUS(wants(!spec.target.empty(), "target"));
  TRY_STATUS(wants(!spec.terms.empty(), "terms"));
  TRY_STATUS(wants(!spec.numbers.empty(), "numbers"));
  return spec;
}

}  // namespace

Result<Spec> ParseSpec(std::string_view yaml) {
  if (yaml.size() > kMaxSpecBytes) return Fail(ErrorCode::kInvalidArgument, "a SPEC has at most 256 KiB");
  try {
    const YAML::Node root = YAML::Load(std::string(yaml));
    Result<Spec> spec = ReadAll(root);
    if (spec) spec->source = yaml;
    return spec;
  } catch (const YAML::Exception& error) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("line {}: {}", error.mark.line + 1, error.msg));
  }
}

Result<Spec> ReadSpec(const std::string& path) {
  return TRY_CONTEXT(ParseSpec(TRY(ReadTextFile(path))), path);
}

}  // namespace weir::predict
