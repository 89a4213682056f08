// Answers of a store: heads, XML, ranges, profiles and names of objects are values or refusals, and what was
// accepted holds.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "object/aws_config.h"
#include "object/content_range.h"
#include "object/plain_connection.h"
#include "object/url.h"
#include "object/xml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto head = object::ParseAnswerHead(text)) {
    CHECK(head->status >= 200 && head->status < 1000 && head->headers.contains("content-length"));
  }
  if (const auto texts = object::ParseXml(text)) {
    for (const auto& [path, contents] : *texts) CHECK(!path.empty() && contents.size() <= size);
  }
  if (const auto range = object::ParseContentRange(text)) {
    CHECK(range->first >= 0 && range->size >= 0);
    CHECK(!range->total || range->first + range->size <= *range->total || range->size == 0);
  }
  for (const auto& [section, settings] : object::ParseProfiles(text)) CHECK(section.size() <= size);
  if (const auto time = object::ParseWallTime(text)) CHECK(text.size() >= 20);
  if (const auto url = object::ParseObjectUrl(text)) {
    CHECK(!url->host.empty());
    if (url->scheme == object::Scheme::kS3) CHECK(object::ParseObjectUrl(object::ToText(*url)) == *url);
  }
  return 0;
}
