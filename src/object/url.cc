#include "object/url.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/secrets.h"
#include "base/text.h"

namespace weir::object {
namespace {

bool IsDigitOrLetter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// As S3 has them, and with capitals and '_', which old buckets and other servers allow.
bool IsBucket(std::string_view name) {
  const auto allowed = [](char c) { return IsDigitOrLetter(c) || c == '.' || c == '-' || c == '_'; };
  return name.size() >= 3 && name.size() <= 63 && IsDigitOrLetter(name.front()) &&
         IsDigitOrLetter(name.back()) && std::ranges::all_of(name, allowed);
}

std::string_view WithoutQuery(std::string_view path) { return path.substr(0, path.find('?')); }

}  // namespace

bool IsObjectUrl(std::string_view text) {
  return text.starts_with("s3://") || text.starts_with("http://") || text.starts_with("https://");
}

Result<ObjectUrl> ParseObjectUrl(std::string_view text) {
  const size_t colon = text.find("://");
  const std::string_view scheme = text.substr(0, std::min(colon, text.size()));
  ObjectUrl url;
  if (scheme == "s3") {
    url.scheme = Scheme::kS3;
  } else if (scheme == "http" || scheme == "https") {
    url.scheme = scheme == "http" ? Scheme::kHttp : Scheme::kHttps;
  } else {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} is no URL of s3, http or https", Quoted(WithoutQuery(text))));
  }
  const std::string_view rest = text.substr(colon + 3);
  const size_t slash = std::min(rest.find('/'), rest.size());
  url.host = rest.substr(0, slash);
  url.key = rest.substr(std::min(slash + 1, rest.size()));
  const std::string shown = Quoted(WithoutQuery(text));
  if (url.scheme == Scheme::kS3) {
    if (!IsBucket(url.host)) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: the bucket is no name of 3 to 63 letters, digits, dots and dashes: write "
                              "s3://BUCKET/KEY",
                              shown));
    }
    if (url.key.size() > 1024)
      return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: a key has at most 1,024 bytes", shown));
    return url;
  }
  if (EndOfUser(text) > 0) {
    return Fail(
        ErrorCode::kInvalidArgument,
        "a URL with a user or password in it would end up in logs: use a server that takes none, or S3");
  }
  const auto wrong = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f'; };
  if (url.host.empty() || std::ranges::any_of(rest, wrong)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: write http://HOST[:PORT]/PATH, blanks as %20", shown));
  }
  return url;
}

std::string ToText(const ObjectUrl& url) {
  const char* scheme = url.scheme == Scheme::kS3 ? "s3" : url.scheme == Scheme::kHttp ? "http" : "https";
  const std::string_view key = url.scheme == Scheme::kS3 ? std::string_view(url.key) : WithoutQuery(url.key);
  return fmt::format("{}://{}/{}", scheme, url.host, key);
}

std::string EncodeUri(std::string_view bytes, Slash slash) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 4);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (IsDigitOrLetter(c) || c == '-' || c == '_' || c == '.' || c == '~' ||
        (c == '/' && slash == Slash::kKeep)) {
      text += c;
    } else {
      text += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return text;
}

bool IsLoopback(std::string_view host) {
  if (host.starts_with("[::1]")) return true;
  host = host.substr(0, host.find(':'));
  const auto of_address = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  return host == "localhost" || (host.starts_with("127.") && std::ranges::all_of(host, of_address));
}

}  // namespace weir::object
