// The text of a label file (ReadLabels of dataset/recipe.h reads one), and how classes get their numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace weir::dataset {

inline constexpr size_t kMostLabels = size_t{1} << 20, kMostBytesOfALabel = 1024;
inline constexpr uint64_t kMostLabelBytes = uint64_t{32} << 20;  // of all of them

// Returns one label for each line; line k is class k. kInvalidArgument past the limits above.
Result<std::vector<std::string>> ParseLabels(std::string_view text);

// Tells what the numbers of a set's classes mean.
enum class LabelRule {
  kNone,     // no picture has a class
  kNumbers,  // each text of a label is a whole number, and that is its class
  kNames,    // the texts are names, and their places in byte order, from 0, are the classes
  kGiven,    // whoever made the set gave numbers
  kUnknown   // the set says nothing: it was made by an older program, which numbered some sets otherwise
};
std::string_view ToString(LabelRule rule);  // "none", "numbers", "names", "given", ""
std::optional<LabelRule> LabelRuleOf(std::string_view name);

// The number that `text` is the one way to write: "0", "10"; nullopt for "01", "+1", "1.0", a name, and what
// is over 2^31 - 1.
std::optional<int> CanonicalNumber(std::string_view text);

struct NumberedLabels {
  LabelRule rule = LabelRule::kNone;
  std::vector<int> labels;           // by text
  std::vector<std::string> classes;  // names by label, bytes escaped; none with kNumbers
};
// Gives each text of a label its class: the one rule for folders of pictures, stores, prepared sets,
// archives, lists and labels files. `texts`: distinct, in byte order, raw bytes. kInvalidArgument for a text
// with a line feed, which no list of classes can hold.
Result<NumberedLabels> NumberLabels(std::span<const std::string_view> texts);

// The folder that gives a picture its class: the first part of its name below the source. nullopt for a name
// without a folder, an absolute one, and one that begins outside of the source.
std::optional<std::string_view> ClassFolderOf(std::string_view name);

}  // namespace weir::dataset
