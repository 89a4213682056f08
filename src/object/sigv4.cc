#include "object/sigv4.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "object/url.h"

namespace weir::object {
namespace {

std::string Digest(const EVP_MD* kind, std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, kind, nullptr) != 1) return "";
  return {reinterpret_cast<const char*>(digest.data()), size};
}

std::string Hmac(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size);
  return {reinterpret_cast<const char*>(digest.data()), size};
}

// Without blanks at the ends, and with one for each run of them.
std::string Trimmed(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c != ' ' && c != '\t') {
      text += c;
    } else if (!text.empty() && text.back() != ' ') {
      text += ' ';
    }
  }
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

std::vector<Header> CanonicalHeaders(const std::vector<Header>& headers) {
  std::vector<Header> sorted;
  for (const auto& [name, value] : headers) {
    std::string lower = name;
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    sorted.emplace_back(std::move(lower), Trimmed(value));
  }
  std::ranges::stable_sort(sorted, {}, &Header::first);
  return sorted;
}

}  // namespace

std::string ToHex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

std::string Sha256Hex(std::string_view bytes) { return ToHex(Digest(EVP_sha256(), bytes)); }

std::string Md5(std::string_view bytes) { return Digest(EVP_md5(), bytes); }

std::string CanonicalQuery(const std::vector<Header>& query) {
  std::vector<Header> sorted;
  for (const auto& [name, value] : query)
    sorted.emplace_back(EncodeUri(name, Slash::kEncode), EncodeUri(value, Slash::kEncode));
  std::ranges::sort(sorted);
  std::string text;
  for (const auto& [name, value] : sorted) {
    if (!text.empty()) text += '&';
    text += name + '=' + value;
  }
  return text;
}

std::string SignTimestamp(Duration wall) {
  const auto seconds =
      static_cast<std::time_t>(std::chrono::duration_cast<std::chrono::seconds>(wall).count());
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string Signer::Authorization(const SignRequest& request, const SignScope& scope,
                                  const Credentials& credentials) {
  const std::vector<Header> headers = CanonicalHeaders(request.headers);
  std::string names, lines;
  for (const auto& [name, value] : headers) {
    if (!names.empty()) names += ';';
    names += name;
    lines += name + ':' + value + '\n';
  }
  const std::string canonical =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, request.path, CanonicalQuery(request.query),
                  lines, names, request.payload_hash);
  const std::string day = scope.timestamp.substr(0, 8);
  const std::string where = fmt::format("{}/{}/{}/aws4_request", day, scope.region, scope.service);
  if (const std::string wanted = where + '\n' + credentials.secret_key; key_for_ != wanted) {
    key_ = Hmac(Hmac(Hmac(Hmac("AWS4" + credentials.secret_key, day), scope.region), scope.service),
                "aws4_request");
    key_for_ = wanted;
  }
  const std::string to_sign =
      fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", scope.timestamp, where, Sha256Hex(canonical));
  return fmt::format("AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
                     credentials.access_key, where, names, ToHex(Hmac(key_, to_sign)));
}

}  // namespace weir::object
