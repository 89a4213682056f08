#include "yaml/strict.h"

#include <algorithm>
#include <numeric>

namespace weir::yaml {
namespace {

// Levenshtein's, by rows.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t above_left = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = above_left + (a[i] == b[j] ? 0 : 1);
      above_left = std::exchange(row[j + 1], std::min({replaced, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string> Nearest(std::string_view word, std::span<const std::string_view> known) {
  std::optional<std::string> nearest;
  // Two letters that changed places are two edits; with more than half the word another it is another word.
  size_t least = std::clamp<size_t>(word.size() / 2, 1, 3) + 1;
  for (const std::string_view candidate : known) {
    const size_t distance = EditDistance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

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
  static constexpr std::pair<std::string_view, bool> kWords[] = {{"true", true}, {"false", false}};
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
    const Node root = YAML::Load(std::string(text));
    return read(root,
                {std::max(root.Mark().line + 1, 1), std::string(kind), true});  // an empty file has no mark
  } catch (const YAML::Exception& error) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("line {}: not YAML: {}", error.mark.line + 1, error.msg));
  }
}

}  // namespace weir::yaml
