#include "watch/http_authorization.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "base/base64.h"
#include "base/text.h"
#include "object/sigv4.h"

namespace weir::watch {
namespace {

struct Challenge {
  std::string scheme;  // in lower case, as the keys
  std::map<std::string, std::string> values;

  std::string Value(const char* key) const {
    const auto found = values.find(key);
    return found == values.end() ? "" : found->second;
  }
};

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return lower;
}

// Reads a challenge's text from the front.
class ChallengeText {
 public:
  explicit ChallengeText(std::string_view text) : rest_(text) {}

  bool ended() const { return rest_.empty(); }
  void SkipTo(std::string_view blanks) {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(blanks), rest_.size()));
  }
  // Up to a blank, a comma or an equals sign.
  std::string Token() {
    const std::string token = Lower(rest_.substr(0, rest_.find_first_of(" \t,=")));
    rest_.remove_prefix(token.size());
    return token;
  }
  bool TakeEquals() {
    SkipTo(" \t");
    if (!rest_.starts_with('=')) return false;
    rest_.remove_prefix(1);
    SkipTo(" \t");
    return true;
  }
  std::string Value() {
    if (!rest_.starts_with('"')) {
      const std::string value(rest_.substr(0, rest_.find_first_of(" \t,")));
      rest_.remove_prefix(value.size());
      return value;
    }
    std::string value;
    size_t at = 1;
    for (; at < rest_.size() && rest_[at] != '"'; ++at) {
      if (rest_[at] == '\\' && at + 1 < rest_.size()) ++at;
      value += rest_[at];
    }
    rest_.remove_prefix(std::min(at + 1, rest_.size()));
    return value;
  }

 private:
  std::string_view rest_;
};

// A token that no equals sign follows begins a challenge.
std::vector<Challenge> ParseChallenges(const std::vector<std::string>& headers) {
  std::vector<Challenge> found;
  for (const std::string& header : headers) {
    ChallengeText text(header);
    for (text.SkipTo(" \t,"); !text.ended(); text.SkipTo(" \t,")) {
      const std::string token = text.Token();
      if (!text.TakeEquals()) {
        found.push_back({.scheme = token, .values = {}});
      } else if (std::string value = text.Value(); !found.empty()) {
        found.back().values[token] = std::move(value);
      }
    }
  }
  return found;
}

std::string Md5Hex(std::string_view text) {
  std::string hex;
  for (const char c : object::Md5(text)) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

bool HasPlainQop(const std::string& qop) {
  ChallengeText text(qop);
  for (text.SkipTo(" \t,="); !text.ended(); text.SkipTo(" \t,=")) {
    if (text.Token() == "auth") return true;
  }
  return false;
}

// nullopt where the challenge asks for what is not known here.
std::optional<std::string> Digest(const Challenge& challenge, const Credentials& who,
                                  const AuthorizedRequest& request) {
  const std::string named = challenge.Value("algorithm"), algorithm = Lower(named.empty() ? "md5" : named);
  const bool sha256 = algorithm.starts_with("sha-256"), session = algorithm.ends_with("-sess");
  if (algorithm != (sha256 ? "sha-256" : "md5") + std::string(session ? "-sess" : "")) return std::nullopt;
  const std::string realm = challenge.Value("realm"), nonce = challenge.Value("nonce"),
                    qop = challenge.Value("qop");
  if (!qop.empty() && !HasPlainQop(qop)) return std::nullopt;
  const auto hash = [&](const std::string& text) { return sha256 ? object::Sha256Hex(text) : Md5Hex(text); };
  std::string first = hash(fmt::format("{}:{}:{}", who.user, realm, who.password));
  if (session) first = hash(fmt::format("{}:{}:{}", first, nonce, request.client_nonce));
  const std::string second = hash(fmt::format("{}:{}", request.method, request.target));
  const std::string response =
      qop.empty()
          ? hash(fmt::format("{}:{}:{}", first, nonce, second))
          : hash(fmt::format("{}:{}:00000001:{}:auth:{}", first, nonce, request.client_nonce, second));
  const auto quoted = [](std::string_view text) {
    std::string value = "\"";
    for (const char c : text) value += c == '"' || c == '\\' ? fmt::format("\\{}", c) : std::string(1, c);
    return value + '"';
  };
  std::string header =
      fmt::format("Digest username={}, realm={}, nonce={}, uri={}, response=\"{}\"", quoted(who.user),
                  quoted(realm), quoted(nonce), quoted(request.target), response);
  if (!named.empty()) header += fmt::format(", algorithm={}", named);
  if (!qop.empty() || session) header += fmt::format(", cnonce=\"{}\"", request.client_nonce);
  if (!qop.empty()) header += ", qop=auth, nc=00000001";
  if (challenge.values.contains("opaque")) header += ", opaque=" + quoted(challenge.Value("opaque"));
  return header;
}

}  // namespace

Result<std::string> Authorize(const std::vector<std::string>& challenges, const Credentials& credentials,
                              const AuthorizedRequest& request) {
  std::vector<Challenge> found = ParseChallenges(challenges);
  if (found.empty()) found.push_back({.scheme = "basic", .values = {}});
  std::ranges::stable_sort(found, std::greater(), [](const Challenge& each) {
    if (each.scheme != "digest") return 0;
    return Lower(each.Value("algorithm")).starts_with("sha") ? 2 : 1;
  });
  std::string schemes;
  for (const Challenge& each : found) {
    if (each.scheme == "digest") {
      if (auto header = Digest(each, credentials, request)) return *std::move(header);
    }
    if (each.scheme == "basic")
      return "Basic " + EncodeBase64(fmt::format("{}:{}", credentials.user, credentials.password));
    schemes += (schemes.empty() ? "" : ", ") + each.scheme;
  }
  return Fail(
      ErrorCode::kUnsupported,
      fmt::format("it asks for {}; weir knows Digest (MD5, SHA-256) and Basic", CutToOneLine(schemes, 80)));
}

}  // namespace weir::watch
