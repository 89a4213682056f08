// Names of objects: s3://BUCKET/KEY, and http(s)://HOST/PATH.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace weir::object {

enum class Scheme { kHttp, kHttps, kS3 };

// A value. A key of S3 is raw bytes as the user typed them: nothing in it is decoded. A path of HTTP is as it
// goes over the wire.
struct ObjectUrl {
  Scheme scheme = Scheme::kS3;
  std::string host;  // bucket; or HOST[:PORT]
  std::string key;   // without the slash behind the host; for HTTP with its query

  bool operator==(const ObjectUrl&) const = default;
};

// Returns whether `text` begins as an object's name does.
bool IsObjectUrl(std::string_view text);

// kInvalidArgument for another scheme, a bucket that is none, a user or password in the URL, and control
// characters.
Result<ObjectUrl> ParseObjectUrl(std::string_view text);

// Returns the URL as text for people: without the query, which may hold a signature.
std::string ToText(const ObjectUrl& url);

// Returns `bytes` with all but the unreserved characters of RFC 3986 as %XX. kKeep leaves '/' as it is.
enum class Slash { kKeep, kEncode };
std::string EncodeUri(std::string_view bytes, Slash slash);

// Returns whether `host` (a name or address, with or without port) is this machine.
bool IsLoopback(std::string_view host);

}  // namespace weir::object
