#include "identity/vectors_file.h"

#include <fmt/format.h>

#include "base/json.h"

namespace weir::identity {

Result<Index::Enrolment> ParseVectorLine(std::string_view line) {
  const Json json = TRY(ParseJson(line));
  if (!json.is_object()) return Fail(ErrorCode::kCorrupt, "not an object");
  Index::Enrolment row;
  row.name = TRY(GetString(json, "name"));
  const auto values = json.find("embedding");
  if (values == json.end() || !values->is_array())
    return Fail(ErrorCode::kCorrupt, "\"embedding\" is no list of numbers");
  for (const Json& value : *values) {
    if (!value.is_number()) return Fail(ErrorCode::kCorrupt, "\"embedding\" is no list of numbers");
    row.vector.push_back(value.get<float>());
  }
  return row;
}

Result<std::vector<Index::Enrolment>> ParseVectorLines(std::string_view text) {
  std::vector<Index::Enrolment> rows;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    rows.push_back(TRY_CONTEXT(ParseVectorLine(line), fmt::format("line {}", number)));
  }
  return rows;
}

std::string FormatVectorLine(const Index::Enrolment& row) {
  Json json;
  json["name"] = EscapeBytes(row.name);
  if (!row.vector.empty()) json["embedding"] = row.vector;
  return DumpJson(json) + "\n";
}

}  // namespace weir::identity
