#include "study/difference.h"

#include <fmt/format.h>

#include "results/study_provenance.h"

namespace weir::study {
namespace {

std::string Shown(const Json* json) {
  constexpr size_t kMost = 200;
  if (!json) return "absent";
  std::string text = json->is_string() ? json->get<std::string>() : DumpJson(*json);
  if (text.size() > kMost) {
    size_t end = kMost;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not amid a character
    text = text.substr(0, end) + "...";
  }
  return text;
}

const Json* Find(const Json& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &*found;
}

void Compare(const std::string& path, const Json* before, const Json* now, std::vector<std::string>& lines) {
  if (before && now && *before == *now) return;
  const auto below = [&path](const std::string& key) { return path.empty() ? key : path + "." + key; };
  if (before && now && before->is_object() && now->is_object()) {
    for (const auto& [key, value] : before->items()) Compare(below(key), &value, Find(*now, key), lines);
    for (const auto& [key, value] : now->items()) {
      if (!before->contains(key)) Compare(below(key), nullptr, &value, lines);
    }
    return;
  }
  if (before && now && before->is_array() && now->is_array() && before->size() == now->size()) {
    for (size_t i = 0; i < before->size(); ++i)
      Compare(fmt::format("{}[{}]", path, i), &(*before)[i], &(*now)[i], lines);
    return;
  }
  lines.push_back(fmt::format("{}: {} before, {} now", path, Shown(before), Shown(now)));
}

}  // namespace

std::vector<std::string> Differences(const Json& before, const Json& now) {
  std::vector<std::string> lines;
  Compare("", &before, &now, lines);
  return lines;
}

std::vector<std::string> ProvenanceDifferences(const Json& before, const Json& now) {
  return Differences(results::WithoutWhatMayChange(before), results::WithoutWhatMayChange(now));
}

}  // namespace weir::study
