// Suggestions for misspelt words.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weir {

// Returns the known word that `word` was probably meant to be (edit distance); nullopt if none is
// near.
std::optional<std::string> Nearest(std::string_view word, std::span<const std::string_view> known);

}  // namespace weir
