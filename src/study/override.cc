#include "study/override.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"

namespace weir::study {
namespace {

// Whether a line belongs to the value of the key above it: it is indented, or an item of a list.
bool Continues(std::string_view line) {
  return !line.empty() && (line[0] == ' ' || line[0] == '\t' || line.starts_with("- ") || line == "-");
}

}  // namespace

std::string WithValue(std::string_view text, std::string_view key, std::string_view value) {
  const std::string line = fmt::format("{}: {}\n", key, DumpJson(Json(value)));  // JSON's strings are YAML's
  std::string result;
  bool inside = false, done = false;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    std::string_view one = text.substr(begin, end - begin);
    begin = end;
    const std::string_view bare = one.substr(0, one.find_last_not_of("\r\n") + 1);
    inside = inside && (bare.empty() || Continues(bare));
    if (inside) continue;
    inside = bare.starts_with(key) && bare.substr(key.size()).starts_with(':');
    if (!inside) {
      result += one;
    } else if (!done) {
      result += line;
      done = true;
    }
  }
  if (!result.empty() && result.back() != '\n') result += '\n';
  return done ? result : result + line;
}

}  // namespace weir::study
