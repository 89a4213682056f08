// Text of others, safe in our formats.
#pragma once

#include <string>
#include <string_view>

namespace weir::report {

// For elements and quoted attributes of HTML and SVG. Bytes that are no UTF-8 and control characters, which
// no page may hold, become U+FFFD.
std::string EscapeHtml(std::string_view text);
// For a paragraph or a table cell of Markdown: what could begin markup, and HTML, is escaped; line ends
// become spaces.
std::string EscapeMarkdown(std::string_view text);

// For a data: URL: every byte but letters, digits, - . _ and ~ as %XX (RFC 3986, section 2.1).
std::string EscapeUrl(std::string_view text);

}  // namespace weir::report
