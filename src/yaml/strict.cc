#include "yaml/strict.h"

#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "base/nearest.h"

namespace weir::yaml {
namespace {

// Where each document begins, and nothing else of it.
class Beginnings final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { marks_.push_back(mark); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& /*value*/) override {}
  void OnSequenceStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value /*style*/) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {}
  void OnMapEnd() override {}

  const std::vector<YAML::Mark>& marks() const { return marks_; }

 private:
  std::vector<YAML::Mark> marks_;
};

// Two documents at most are looked for: where a comma stands for one the library finds empty ones without
// end.
Status CheckIsOne(const std::string& text, std::string_view kind) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  Beginnings beginnings;
  if (!parser.HandleNextDocument(beginnings) || !parser.HandleNextDocument(beginnings)) return {};
  const YAML::Mark& second = beginnings.marks().back();
  const auto at = static_cast<size_t>(std::max(second.pos, 0));
  if (at < text.size() && std::string_view(",]}").contains(text[at])) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("line {}: not YAML: \"{}\" stands where a key should", second.line + 1, text[at]));
  }
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("line {}: a second document begins here (---): a {} is one", second.line + 1, kind));
}

}  // namespace

Place PlaceOf(const Node& node, std::string key) { return {node.Mark().line + 1, std::move(key)}; }

std::unexpected<Error> Refuse(const Place& place, std::string_view what) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("line {}: {}: {}", place.line, place.key, what));
}

Status ReadEach(const Node& map, const Place& place,
                const std::function<Status(const std::string&, const Node&, const Place&)>& read) {
  if (!map.IsMap()) return Refuse(place, "wants keys and values");
  std::vector<std::string> seen;
  for (const auto& item : map) {
    if (!item.first.IsScalar()) return Refuse(PlaceOf(item.first, place.key), "a key is one word");
    const std::string& name = item.first.Scalar();
    const Place here = PlaceOf(item.first, place.is_file ? name : place.key + "." + name);
    if (std::ranges::find(seen, name) != seen.end()) return Refuse(here, "is there twice");
    seen.push_back(name);
    TRY_STATUS(read(name, item.second, here));
  }
  return {};
}

Status ReadMap(const Node& map, const Place& place, const std::vector<Key>& keys) {
  return ReadEach(map, place, [&](const std::string& name, const Node& node, const Place& here) -> Status {
    const auto known = std::ranges::find(keys, name, &Key::name);
    if (known != keys.end()) return known->read(node, here);
    std::vector<std::string_view> names;
    for (const Key& key : keys) names.push_back(key.name);
    const auto meant = Nearest(name, names);
    return Refuse(
        here, fmt::format("no such key{}; known here: {}",
                          meant ? fmt::format(", did you mean {}?", *meant) : "", fmt::join(names, ", ")));
  });
}

Result<std::string> ReadText(const Node& node, const Place& place) {
  if (!node.IsScalar() || node.Scalar().empty()) return Refuse(place, "wants one word or text");
  return node.Scalar();
}

Result<bool> ReadBool(const Node& node, const Place& place) {
  static constexpr Choices<bool, 2> kWords{{{true, "true"}, {false, "false"}}};
  return ReadChoice(node, place, kWords);
}

std::string_view WithoutPlus(std::string_view number) {
  if (number.starts_with('+') && !number.starts_with("+-")) number.remove_prefix(1);
  return number;
}

Status ReadFile(std::string_view text, size_t most_bytes, std::string_view kind, const Read& read) {
  if (text.size() > most_bytes) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} bytes are no {}: the limit is {}", text.size(), kind, most_bytes));
  }
  try {
    const std::string whole(text);
    TRY_STATUS(CheckIsOne(whole, kind));
    const Node root = YAML::Load(whole);
    return read(root,
                {std::max(root.Mark().line + 1, 1), std::string(kind), true});  // an empty file has no mark
  } catch (const YAML::Exception& error) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("line {}: not YAML: {}", error.mark.line + 1, error.msg));
  }
}

}  // namespace weir::yaml
