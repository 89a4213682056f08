// A store's listing, page by page (one behind each NUL): objects that were accepted are below the prefix, of
// a size that is one, with ETags that a header can have, each once; and they take no more memory than is
// allowed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "object/header_rules.h"
#include "object/listing.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir::object;
  constexpr size_t kMostBytes = 20'000;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(rest.find('\n'), rest.size());
  const std::string prefix(rest.substr(0, end));  // the first line
  rest.remove_prefix(std::min(end + 1, rest.size()));
  BucketListing listing(prefix, kMostBytes);
  while (true) {
    const size_t stop = std::min(rest.find('\0'), rest.size());
    const auto next = listing.Take(rest.substr(0, stop));
    if (!next) return 0;
    rest.remove_prefix(std::min(stop + 1, rest.size()));
    if (next->empty()) break;
  }
  const auto all = listing.Finish();
  if (!all) return 0;
  std::string_view before;
  size_t bytes = 0;
  for (const ListedObject& object : *all) {
    CHECK(object.key.starts_with(prefix) && !object.key.contains('\0'));
    CHECK(before.empty() || before < object.key);
    CHECK(object.size >= 0 && object.size <= kMostObjectBytes);
    CHECK(object.etag.empty() || IsETag(object.etag));
    CHECK(CheckRequest({.url = "http://h/", .headers = {{"If-Match", object.etag}}}));
    before = object.key;
    bytes += object.key.size() + object.etag.size();
  }
  CHECK(bytes <= kMostBytes);
  return 0;
}
