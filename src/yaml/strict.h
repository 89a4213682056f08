// Small YAML files that people write, read so that no mistake passes: every value has its line, an unknown
// key is refused with the one that was probably meant, and nothing is taken twice.
#pragma once

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/choices.h"
#include "base/error.h"

namespace weir::yaml {

using YAML::Node;

// Where a value stands, for messages: "line 5: resize.short_side".
struct Place {
  int line = 0;
  std::string key;       // with those it lies in; of a whole file what such a file is called: "recipe"
  bool is_file = false;  // the top of it
};

Place PlaceOf(const Node& node, std::string key);

// kInvalidArgument, as every error of this module.
std::unexpected<Error> Refuse(const Place& place, std::string_view what);

using Read = std::function<Status(const Node&, const Place&)>;

// The treatment of one key of a map.
struct Key {
  std::string_view name;
  Read read;
};

// Gives each value of `map` with its name to `read`. Refuses what is there twice, or named by more than a
// word.
Status ReadEach(const Node& map, const Place& place,
                const std::function<Status(const std::string&, const Node&, const Place&)>& read);
// Gives each key of `map` to its reader. Refuses other keys.
Status ReadMap(const Node& map, const Place& place, const std::vector<Key>& keys);

Result<std::string> ReadText(const Node& node, const Place& place);  // one word or text, not empty
Result<bool> ReadBool(const Node& node, const Place& place);         // true or false

std::string_view WithoutPlus(std::string_view number);  // "+7" is 7, "+-7" is none

// A finite number within [low, high].
template <typename Number>
Result<Number> ReadNumber(const Node& node, const Place& place, Number low, Number high) {
  const std::string text = TRY(ReadText(node, place));
  const std::string_view digits = WithoutPlus(text);
  Number value{};
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || stop != digits.data() + digits.size() || !(value >= low && value <= high)) {
    return Refuse(place, fmt::format("\"{}\" is not a {}number from {} to {}", text,
                                     std::is_integral_v<Number> ? "whole " : "", low, high));
  }
  return value;
}

// One of a closed list of words.
template <typename Value, size_t N>
Result<Value> ReadChoice(const Node& node, const Place& place, const Choices<Value, N>& choices) {
  const std::string text = TRY(ReadText(node, place));
  if (const auto found = FindChoice(choices, text)) return *found;
  return Refuse(place, fmt::format("\"{}\" is none of {}", text, fmt::join(WordsOf(choices), ", ")));
}

// Readers that store what they read.
template <typename Target, typename ReadOne>
auto Into(Target& target, ReadOne read) {
  return [&target, read](const Node& node, const Place& place) -> Status {
    target = TRY(read(node, place));
    return {};
  };
}
inline auto TextInto(std::string& target) { return Into(target, ReadText); }
template <typename Target, typename Number>
auto NumberInto(Target& target, Number low, Number high) {
  return Into(target, [low, high](const Node& node, const Place& place) {
    return ReadNumber<Number>(node, place, low, high);
  });
}

// Has `read` build its value from the root of `text`. `kind` is what such a file is called in messages.
// Refuses what is over `most_bytes`, and what is no YAML, with its line.
Status ReadFile(std::string_view text, size_t most_bytes, std::string_view kind, const Read& read);

}  // namespace weir::yaml
