// What was probably meant.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weir {

// Of what is known, the word that `word` was probably meant to be (edit distance); nothing where none is
// near.
std::optional<std::string> Nearest(std::string_view word, std::span<const std::string_view> known);

}  // namespace weir
