// Another model or data set in the text of a study file, whose copy beside the journal then names them too.
// Pure.
#pragma once

#include <string>
#include <string_view>

namespace weir::study {

// Returns the text with `value` for the key `key` at the top: in the place of its lines there, else at the
// end. Comments of those lines are lost.
std::string WithValue(std::string_view text, std::string_view key, std::string_view value);

}  // namespace weir::study
