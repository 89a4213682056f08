// Rules of loading and unloading models that hold over both transports. Every error is of the client:
// kInvalidArgument, or kUnsupported for what the protocol has and this program does not.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"

namespace weir::oip {

// The longest body or message that is no inference; a longer one is kInvalidArgument.
inline constexpr size_t kMostControlBytes = size_t{1} << 20;
inline constexpr size_t kMostControlValues = 4097;  // of a body's JSON: itself, members and items
Status CheckControlSize(size_t bytes);

// There is one, without a name.
Status CheckRepository(std::string_view name);

// A parameter of loading: "config" has its place in `config`. `text`: its value; null where that is none.
Status SetLoadParameter(std::string_view name, const std::string* text, std::string& config);

// A parameter of unloading. Its value means nothing: no model depends on another.
Status CheckUnloadParameter(std::string_view name, bool is_truth);

}  // namespace weir::oip
