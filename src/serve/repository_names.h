// How messages of the repository name models and versions, and the two errors that look-ups give.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace weir::serve {

// Returns the number that a version's folder name gives; nullopt for another name, such as "03".
inline std::optional<int64_t> VersionOf(std::string_view text) {
  int64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && version > 0 && !text.starts_with('0') ? std::optional(version) : std::nullopt;
}

// Returns `text` as a message may show it. A client may ask for a name of any length.
inline std::string Escaped(std::string_view text) {
  constexpr size_t kMaxName = 300;
  return EscapeBytes(CutMiddle(text, kMaxName));
}
inline std::string Name(std::string_view model) { return fmt::format("model \"{}\"", Escaped(model)); }
inline std::string Name(std::string_view model, int64_t version) {
  return fmt::format("{} version {}", Name(model), version);
}

inline std::unexpected<Error> NotFound(std::string message) {
  return Fail(ErrorCode::kNotFound, std::move(message));
}
inline std::unexpected<Error> Later(std::string message) {
  return Fail(ErrorCode::kOverloaded, std::move(message));
}

}  // namespace weir::serve
