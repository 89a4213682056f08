// JSON as values. Keys keep the order in which they were put in. The parser's exceptions stop here.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace weir {

using Json = nlohmann::ordered_json;

// kCorrupt, with the position, for text that is not JSON or is nested deeper than 200.
Result<Json> ParseJson(std::string_view text);

// One line, or indented by two. File names go through EscapeBytes first: any other bytes that are not UTF-8
// become U+FFFD here, so that output is always JSON. Numbers that are not finite become null.
std::string DumpJson(const Json& json);
std::string DumpJsonIndented(const Json& json);

// Text that JSON can hold, for raw bytes such as file names: bytes that are not UTF-8 become "\xNN" and a
// backslash becomes "\\", so UnescapeBytes gives the same bytes again. Plain names come back unchanged.
std::string EscapeBytes(std::string_view bytes);
Result<std::string> UnescapeBytes(std::string_view text);

// Words of others for a terminal, which control characters could make do anything: as EscapeBytes has them,
// and those as "\xNN" too, but for line breaks and tabs.
std::string EscapeForTerminal(std::string_view bytes);

// Puts `value` under `key` when there is one: an undefined value is absent, never 0.
template <typename T>
void PutIfAny(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

// The member `key`, of the wanted kind; kCorrupt naming the key otherwise.
Result<std::string> GetString(const Json& json, std::string_view key);
Result<int64_t> GetInteger(const Json& json, std::string_view key);
Result<double> GetNumber(const Json& json, std::string_view key);

}  // namespace weir
