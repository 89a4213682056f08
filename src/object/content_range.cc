#include "object/content_range.h"

#include <charconv>

namespace weir::object {
namespace {

std::optional<int64_t> Number(std::string_view text) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.starts_with('-')) return std::nullopt;
  return value;
}

}  // namespace

std::optional<ContentRange> ParseContentRange(std::string_view text) {
  if (!text.starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const size_t slash = text.find('/');
  if (slash == text.npos) return std::nullopt;
  ContentRange range;
  const std::string_view total = text.substr(slash + 1), span = text.substr(0, slash);
  if (total != "*") {
    range.total = Number(total);
    if (!range.total) return std::nullopt;
  }
  if (span == "*") return range.total ? std::optional(range) : std::nullopt;
  const size_t dash = span.find('-');
  if (dash == span.npos) return std::nullopt;
  const auto first = Number(span.substr(0, dash)), last = Number(span.substr(dash + 1));
  if (!first || !last || *last < *first || *last == INT64_MAX) return std::nullopt;
  if (range.total && *last >= *range.total) return std::nullopt;
  range.first = *first;
  range.size = *last - *first + 1;
  return range;
}

}  // namespace weir::object
