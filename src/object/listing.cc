#include "object/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>
#include <utility>

#include "base/count.h"
#include "base/text.h"
#include "object/header_rules.h"
#include "object/xml.h"

namespace weir::object {
namespace {

constexpr size_t kMostKeyBytes = 4096, kMostTokenBytes = 16384;
constexpr int kMostEmptyPages = 1000;

std::unexpected<Error> Wrong(const std::string& why) {
  return Fail(ErrorCode::kCorrupt, "a listing of S3 " + why);
}

// An ETag as headers have it: some stores list it without its quotes.
std::string InQuotes(const std::string& etag) {
  if (etag.empty() || etag.contains('"')) return etag;
  return fmt::format("\"{}\"", etag);
}

// The keys of a page are encoded as in a URL.
Result<std::string> DecodeKey(std::string text) {
  std::ranges::replace(text, '+', ' ');
  auto key = DecodePercent(text);
  if (!key)
    return Wrong(fmt::format("has the key {}, which is not encoded as it should be", weir::Quoted(text)));
  return *std::move(key);
}

Result<int64_t> ReadSize(const std::string& text) {
  int64_t size = -1;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || stop != text.data() + text.size() || size < 0 || size > kMostObjectBytes)
    return Wrong(fmt::format("has the size {}, which is none", weir::Quoted(text)));
  return size;
}

}  // namespace

struct BucketListing::Page {
  std::vector<ListedObject> objects;
  bool is_listing = false, truncated = false;
  std::string next;

  Status Take(const std::string& path, const std::string& text, bool encoded) {
    constexpr std::string_view kRoot = "ListBucketResult";
    if (!path.starts_with(kRoot)) return {};
    is_listing = true;
    const std::string_view name = std::string_view(path).substr(kRoot.size());
    if (name == "/Contents/Key") {
      objects.push_back({.key = encoded ? TRY(DecodeKey(text)) : text});
    } else if (name == "/Contents/Size" && !objects.empty()) {
      objects.back().size = TRY(ReadSize(text));
    } else if (name == "/Contents/ETag" && !objects.empty()) {
      objects.back().etag = InQuotes(text);
    } else if (name == "/IsTruncated") {
      truncated = text == "true";
    } else if (name == "/NextContinuationToken") {
      next = text;
    }
    return {};
  }
};

Result<std::string> BucketListing::Take(std::string_view document) {
  const std::vector<XmlText> texts = TRY(ParseXml(document));
  const bool encoded = FindText(texts, "ListBucketResult/EncodingType") == "url";
  Page page;
  for (const auto& [path, text] : texts) TRY_STATUS(page.Take(path, text, encoded));
  if (!page.is_listing) return Fail(ErrorCode::kCorrupt, "no listing of S3: is it an address of S3?");
  std::string next = page.truncated ? std::exchange(page.next, {}) : std::string();
  if (page.truncated && next.empty()) return Wrong("is cut without saying where");
  TRY_STATUS(Add(std::move(page)));
  if (next.size() > kMostTokenBytes ||
      (!next.empty() && !tokens_.insert(std::hash<std::string>()(next)).second))
    return Wrong("has no end: it names the same next page again");
  return next;
}

Status BucketListing::Add(Page page) {
  empty_pages_ = page.objects.empty() ? empty_pages_ + 1 : 0;
  if (empty_pages_ > kMostEmptyPages) return Wrong("has no end: page after page is empty");
  std::string all;
  for (const ListedObject& object : page.objects) {
    if (!object.key.starts_with(prefix_))
      return Wrong(fmt::format("has the key {}, which does not begin with {}", weir::Quoted(object.key),
                               weir::Quoted(prefix_)));
    if (object.key.size() > kMostKeyBytes || object.key.contains('\0'))
      return Wrong(fmt::format("has the key {}, which is none", weir::Quoted(object.key)));
    if (!object.etag.empty() && !IsETag(object.etag))
      return Wrong(fmt::format("has the ETag {}, which is none", weir::Quoted(object.etag)));
    all.append(object.key).push_back('\0');
    bytes_ += sizeof object + object.key.size() + object.etag.size() + 2 * sizeof(std::max_align_t);
  }
  if (!all.empty() && !pages_.insert(std::hash<std::string>()(all)).second)
    return Wrong("has no end: it gives the same page again");
  if (bytes_ > most_bytes_)
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("more objects than a listing may take memory for: {} so far. Name a longer prefix",
                    Count(std::ssize(objects_))));
  std::ranges::move(page.objects, std::back_inserter(objects_));
  return {};
}

Result<std::vector<ListedObject>> BucketListing::Finish() {
  std::ranges::sort(objects_, {}, &ListedObject::key);
  const auto twice = std::ranges::adjacent_find(objects_, {}, &ListedObject::key);
  if (twice != objects_.end()) return Wrong(fmt::format("has the key {} twice", weir::Quoted(twice->key)));
  return std::move(objects_);
}

}  // namespace weir::object
