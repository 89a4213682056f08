// A bucket's listing, page by page, as a store tells it. Pure: nothing that a store says is trusted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "object/source.h"

namespace weir::object {

inline constexpr size_t kMostPageBytes = size_t{16} << 20;     // of a page's document
inline constexpr size_t kMostListBytes = size_t{1} << 30;      // of all objects in memory: about six million
inline constexpr int64_t kMostObjectBytes = int64_t{1} << 50;  // that an object can be listed with

// The answers to ListObjectsV2 for one prefix. One thread at a time.
class BucketListing {
 public:
  explicit BucketListing(std::string prefix, size_t most_bytes = kMostListBytes)
      : prefix_(std::move(prefix)), most_bytes_(most_bytes) {}

  // Takes the next page, and returns the token of the one behind it; empty: there is none. kCorrupt for what
  // is no listing: a key that does not begin with the prefix, a size that is none, an ETag that no header can
  // have, a page that comes again, pages without end. kUnsupported beyond the limit.
  Result<std::string> Take(std::string_view document);
  // Returns all objects in byte order of their keys. kCorrupt if one is listed twice. REQUIRES: no page is
  // left.
  Result<std::vector<ListedObject>> Finish();

 private:
  struct Page;
  Status Add(Page page);

  const std::string prefix_;
  const size_t most_bytes_;
  std::vector<ListedObject> objects_;
  size_t bytes_ = 0;
  int empty_pages_ = 0;                        // in a row
  std::unordered_set<size_t> tokens_, pages_;  // hashes of those that came
};

}  // namespace weir::object
