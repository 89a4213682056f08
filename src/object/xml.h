// The small XML documents that S3 answers with.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace weir::object {

// The text of an element that holds no others, with the names of the elements around it:
// {"ListBucketResult/Contents/Key", "a.jpg"}.
using XmlText = std::pair<std::string, std::string>;

inline constexpr size_t kMostXmlBytes = size_t{16} << 20, kMostXmlTexts = size_t{1} << 17;

// Returns the elements without others in them, in their order. Namespaces are dropped. kCorrupt for what is
// no XML, is nested deeper than 16, or holds a document type (which could make a small text a huge one); for
// more than kMostXmlBytes, or kMostXmlTexts; and for names that no answer of S3 has. Memory stays within some
// times the document.
Result<std::vector<XmlText>> ParseXml(std::string_view document);

// Returns the first text of that path; empty if there is none.
std::string FindText(const std::vector<XmlText>& texts, std::string_view path);

}  // namespace weir::object
