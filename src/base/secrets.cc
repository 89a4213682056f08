#include "base/secrets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/contains.h"

namespace weir {
namespace {

using Span = std::pair<size_t, size_t>;  // begin and end of what is hidden
using Spans = std::vector<Span>;

bool IsAlnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameByte(char c) { return IsAlnum(c) || c == '_' || c == '-' || c == '.'; }
bool IsBlank(char c) { return static_cast<unsigned char>(c) <= ' '; }
bool IsQuote(char c) { return c == '"' || c == '\'' || c == '`'; }
bool EndsWord(char c) { return IsBlank(c) || IsQuote(c) || c == '<' || c == '>'; }

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// Whether a capital begins a word: "accessKey", and the K of "AWSKey".
bool IsHump(std::string_view name, size_t i) {
  if (i == 0 || !IsUpper(name[i])) return false;
  const bool small_follows = i + 1 < name.size() && IsAlnum(name[i + 1]) && !IsUpper(name[i + 1]);
  return !IsUpper(name[i - 1]) || small_follows;
}

// "X-Amz-Signature", "AWSAccessKeyId" and "api_key2" as words in small letters, without numbers.
std::vector<std::string> WordsOf(std::string_view name) {
  std::vector<std::string> words;
  bool begins = true;
  for (size_t i = 0; i < name.size(); ++i) {
    if (!IsAlnum(name[i]) || IsDigit(name[i])) {
      begins = begins || !IsDigit(name[i]);
      continue;
    }
    if (begins || IsHump(name, i)) words.emplace_back();
    words.back() += Lower(name.substr(i, 1));
    begins = false;
  }
  return words;
}

bool IsSecretWord(std::string_view word) {
  constexpr std::array<std::string_view, 7> kWhole = {"pass", "pwd", "pw", "sig", "auth", "jwt", "sas"};
  constexpr std::array<std::string_view, 13> kEnds = {
      "password", "passwd", "passphrase",  "pwd",       "secret",     "token",        "signature",
      "cookie",   "apikey", "credentials", "accesskey", "credential", "authorization"};
  return Contains(kWhole, word) ||
         std::ranges::any_of(kEnds, [&](std::string_view end) { return word.ends_with(end); });
}

bool IsSecretKey(std::string_view before) {
  constexpr std::array<std::string_view, 11> kKinds = {"api",     "access",       "secret", "private",
                                                       "account", "shared",       "auth",   "master",
                                                       "service", "subscription", "signing"};
  return Contains(kKinds, before);
}

size_t EndOfWord(std::string_view text, size_t begin, std::string_view more = {}) {
  while (begin < text.size() && !EndsWord(text[begin]) && !more.contains(text[begin])) ++begin;
  return begin;
}

// The end of a value that begins here: behind its quotes if it has some.
Span ValueAt(std::string_view text, size_t begin, std::string_view stops) {
  if (begin < text.size() && IsQuote(text[begin])) {
    size_t end = begin + 1;
    while (end < text.size() && text[end] != text[begin]) end += text[end] == '\\' ? 2 : 1;
    return {begin + 1, std::min(end, text.size())};
  }
  return {begin, EndOfWord(text, begin, stops)};
}

std::string_view NameBefore(std::string_view text, size_t end) {
  while (end > 0 && text[end - 1] == ']') --end;
  size_t begin = end;
  while (begin > 0 && IsNameByte(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

// Whether digits stand here as a port does: "8000/", "8000,", "8000" at the end.
bool IsPort(std::string_view text) {
  size_t digits = 0;
  while (digits < text.size() && IsDigit(text[digits])) ++digits;
  return digits > 0 && digits <= 5 &&
         (digits == text.size() || std::string_view("/?#,").contains(text[digits]));
}

// Whether `text` is a host with its port: what follows a password, and seldom a name of a file.
bool IsHostAndPort(std::string_view text) {
  const size_t colon = text.find(':');
  return colon != std::string_view::npos &&
         text.substr(0, colon).find_first_of("/?#@") == std::string_view::npos &&
         IsPort(text.substr(colon + 1));
}

// The secret before the host in "user:password@host/path", what follows the scheme of a URL. An unencoded
// password may hold what ends a host, so an '@' behind it counts; but a port, and an '@' in a path behind it,
// are no password.
Span UserSecret(std::string_view rest) {
  const size_t at = rest.rfind('@'), host_end = std::min(rest.find_first_of("/?#"), rest.size());
  if (at == std::string_view::npos) return {};
  const size_t colon = rest.find(':');
  const bool in_host = rest.substr(0, host_end).contains('@');
  if (colon < std::min(at, host_end) && rest[0] != '[') {
    const bool is_port = !in_host && IsPort(rest.substr(colon + 1)) && !IsHostAndPort(rest.substr(at + 1));
    return is_port ? Span{} : Span{colon + 1, at};
  }
  return in_host ? Span{0, rest.substr(0, host_end).rfind('@')} : Span{};
}

size_t SchemeBegin(std::string_view text, size_t mark) {
  while (mark > 0 && (IsAlnum(text[mark - 1]) || std::string_view("+.-").contains(text[mark - 1]))) --mark;
  return mark;
}

// Where the URL ends whose scheme ends at `begin`: at a blank or quote (unless the text is that URL and
// nothing else), or where the next of a list begins.
size_t UrlEnd(std::string_view text, size_t begin, bool is_all) {
  const size_t end = is_all ? text.size() : EndOfWord(text, begin);
  const size_t next = text.find("://", begin);
  if (next >= end) return end;
  const size_t scheme = SchemeBegin(text, next);
  return scheme > begin && text[scheme - 1] == ',' ? scheme - 1 : end;
}

void FindInUrls(std::string_view text, Spans& spans) {
  const size_t first = text.find("://");
  const bool is_all =
      first != std::string_view::npos && first > 0 && SchemeBegin(text, first) == 0 && !text.contains(' ');
  for (size_t mark = first; mark != std::string_view::npos; mark = text.find("://", mark + 3)) {
    const size_t begin = mark + 3, end = UrlEnd(text, begin, is_all);
    const auto [from, to] = UserSecret(text.substr(begin, end - begin));
    if (from < to) spans.emplace_back(begin + from, begin + to);
    const size_t query = text.find('?', begin);
    if (query >= end) continue;
    for (const std::string_view name : {"key", "code"}) {  // elsewhere they are words like others
      for (const char before : {'?', '&'}) {
        const std::string parameter = fmt::format("{}{}=", before, name);
        const size_t found = text.find(parameter, query);
        if (found < end)
          spans.emplace_back(found + parameter.size(), std::min(end, text.find('&', found + 1)));
      }
    }
  }
}

// "password=...", in queries, forms, settings and flags.
void FindAssigned(std::string_view text, Spans& spans) {
  for (size_t i = text.find('='); i != std::string_view::npos; i = text.find('=', i + 1)) {
    const size_t end = i > 0 && IsQuote(text[i - 1]) ? i - 1 : i;
    if (IsSecretName(NameBefore(text, end))) spans.push_back(ValueAt(text, i + 1, "&"));
  }
}

// Whether what follows "NAME:" in a sentence is a secret: fewer names than in assignments, for there are
// sentences such as "the token: ...".
bool IsSecretHeader(std::string_view name) {
  if (!IsSecretName(name)) return false;
  const std::string lower = Lower(name);
  constexpr std::array<std::string_view, 8> kEnds = {"authorization", "cookie", "password", "passwd",
                                                     "passphrase",    "secret", "apikey",   "api-key"};
  return lower.starts_with("x-") ||
         std::ranges::any_of(kEnds, [&](std::string_view end) { return lower.ends_with(end); });
}

// "Authorization: ..." and "\"password\": \"...\"".
void FindHeaders(std::string_view text, Spans& spans) {
  for (size_t i = text.find(':'); i != std::string_view::npos; i = text.find(':', i + 1)) {
    const bool quoted = i > 0 && IsQuote(text[i - 1]);
    const std::string_view name = NameBefore(text, quoted ? i - 1 : i);
    if (!(quoted ? IsSecretName(name) : IsSecretHeader(name)) || text.substr(i + 1).starts_with("//"))
      continue;
    size_t begin = i + 1;
    while (begin < text.size() && text[begin] == ' ') ++begin;
    auto [from, to] = ValueAt(text, begin, "");
    if (!quoted && from == begin) to = std::min(text.find_first_of("\r\n\"'`", begin), text.size());
    spans.emplace_back(from, to);
  }
}

// "--password ..." inside of a text, such as the script of sh -c.
void FindFlags(std::string_view text, Spans& spans) {
  for (size_t i = text.find('-'); i != std::string_view::npos; i = text.find('-', i + 1)) {
    if (i > 0 && !EndsWord(text[i - 1]) && !std::string_view("[,(").contains(text[i - 1])) continue;
    size_t end = i;
    while (end < text.size() && IsNameByte(text[end])) ++end;
    if (!IsSecretName(text.substr(i, end - i))) continue;
    size_t begin = end;
    while (begin < text.size() && std::string_view(" \t\",'").contains(text[begin])) ++begin;
    const bool is_value = begin > end && !text.substr(begin).starts_with("--");
    if (is_value) spans.emplace_back(begin, EndOfWord(text, begin));
    i = end - 1;
  }
}

// Finds credentials behind their word alone, without a header.
void FindBearers(std::string_view text, Spans& spans) {
  constexpr std::string_view kWord = "earer ";
  constexpr size_t kLeast = 8;  // shorter ones are words of a sentence
  for (size_t i = text.find(kWord); i != std::string_view::npos; i = text.find(kWord, i + 1)) {
    const size_t begin = i + kWord.size(), end = EndOfWord(text, begin, ",;");
    if (end - begin >= kLeast) spans.emplace_back(begin, end);
  }
}

// Whether a value only names a variable of a shell: "$TOKEN", "${TOKEN}".
bool IsVariable(std::string_view value) {
  while (!value.empty() && IsQuote(value.front())) value.remove_prefix(1);
  if (!value.starts_with('$')) return false;
  return std::ranges::all_of(value.substr(1), [](char c) {
    return IsUpper(c) || IsDigit(c) || c == '_' || c == '{' || c == '}' || IsQuote(c);
  });
}

std::string Hide(std::string_view text, Spans spans) {
  std::ranges::sort(spans);
  std::string out;
  size_t from = 0;
  for (const auto& [begin, end] : spans) {
    if (begin >= end || end <= from || IsVariable(text.substr(begin, end - begin))) continue;
    if (begin >= from) out.append(text.substr(from, begin - from)).append(kHidden);
    from = end;
  }
  return out.append(text.substr(from));
}

// "Name: value" of -H: hidden unless the name is one of those that hold no secret.
std::string HeaderArgument(std::string_view header) {
  constexpr std::array<std::string_view, 8> kOpen = {"accept",           "accept-encoding", "connection",
                                                     "content-encoding", "content-type",    "host",
                                                     "expect",           "user-agent"};
  const size_t colon = header.find(':');
  if (colon == std::string_view::npos || Contains(kOpen, std::string_view(Lower(header.substr(0, colon)))))
    return WithoutSecrets(header);
  return fmt::format("{}: {}", header.substr(0, colon), kHidden);
}

// "user:password" and "user:password@host:port", which is no URL without its scheme.
std::string UserArgument(std::string_view text, bool is_user) {
  const size_t colon = text.find(':'), at = text.rfind('@');
  const bool has_host = at != std::string_view::npos && colon < at;
  if (colon == std::string_view::npos || text.contains("://") || !(is_user || has_host) ||
      (IsPort(text.substr(colon + 1)) && !IsHostAndPort(text.substr(std::min(at, text.size() - 1) + 1))) ||
      !std::ranges::all_of(text.substr(0, colon), IsNameByte) || text.contains(' '))
    return WithoutSecrets(text);
  return fmt::format("{}:{}{}", text.substr(0, colon), kHidden, has_host ? text.substr(at) : "");
}

// Which kind of value the argument behind `flag` is.
enum class Behind { kText, kSecret, kHeader, kUser };
Behind KindBehind(std::string_view flag) {
  if (flag == "-H" || flag == "--header" || flag == "--proxy-header") return Behind::kHeader;
  if (flag == "-u" || flag == "--user" || flag == "--proxy-user" || flag == "--url") return Behind::kUser;
  return flag.starts_with('-') && !flag.contains('=') && IsSecretName(flag) ? Behind::kSecret : Behind::kText;
}

std::string ArgumentOf(std::string_view argument, Behind kind) {
  if (kind == Behind::kSecret && !argument.starts_with("--"))
    return std::string(IsVariable(argument) ? argument : kHidden);
  if (kind == Behind::kHeader) return HeaderArgument(argument);
  const size_t equals = argument.find('=');
  const std::string_view name = argument.substr(0, equals);
  if (equals == std::string_view::npos || !std::ranges::all_of(name, IsNameByte)) {
    if (argument.starts_with("-H") && argument.size() > 2) return "-H" + HeaderArgument(argument.substr(2));
    if (argument.starts_with("-u") && argument.size() > 2)
      return "-u" + UserArgument(argument.substr(2), true);
    return UserArgument(argument, kind == Behind::kUser);
  }
  const std::string_view value = argument.substr(equals + 1);
  const bool hides = IsSecretName(name) && !value.empty() && !IsVariable(value);
  if (hides) return fmt::format("{}={}", name, kHidden);
  return fmt::format("{}={}", name,
                     ArgumentOf(value, name.starts_with('-') ? KindBehind(name) : Behind::kText));
}

}  // namespace

// Prefers the reading of RFC 3986, if that has a user.
size_t EndOfUser(std::string_view url) {
  const size_t mark = url.find("://");
  if (mark == std::string_view::npos) return 0;
  const size_t begin = mark + 3, host_end = std::min(url.find_first_of("/?#", begin), url.size());
  const size_t at = url.substr(0, host_end).rfind('@');
  if (at != std::string_view::npos && at >= begin) return at + 1;
  const auto [from, to] = UserSecret(url.substr(begin));
  return from < to ? begin + to + 1 : 0;
}

std::string WithEncodedUser(std::string_view url) {
  const size_t end = EndOfUser(url);
  if (end == 0) return std::string(url);
  const size_t begin = url.find("://") + 3;
  std::string encoded(url.substr(0, begin));
  for (const char c : url.substr(begin, end - 1 - begin)) {
    const bool stays = IsAlnum(c) || std::string_view("-._~!$&'()*+,;=:%").contains(c);
    encoded += stays ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded.append(url.substr(end - 1));
}

bool IsSecretName(std::string_view name) {
  std::vector<std::string> words = WordsOf(name);
  if (words.size() > 1 && (words.back() == "id" || words.back() == "value")) words.pop_back();
  if (words.empty() || words.front() == "no") return false;
  if (IsSecretWord(words.back())) return true;
  return words.back() == "key" && words.size() > 1 && IsSecretKey(words[words.size() - 2]);
}

std::string WithoutSecrets(std::string_view text) {
  if (text.find_first_of("=:-") == std::string_view::npos && !text.contains("earer "))
    return std::string(text);
  Spans spans;
  FindInUrls(text, spans);
  FindAssigned(text, spans);
  FindHeaders(text, spans);
  FindFlags(text, spans);
  FindBearers(text, spans);
  return Hide(text, std::move(spans));
}

std::vector<std::string> WithoutSecrets(std::span<const std::string> arguments) {
  std::vector<std::string> shown;
  Behind kind = Behind::kText;
  for (const std::string& argument : arguments) {
    shown.push_back(ArgumentOf(argument, kind));
    kind = kind == Behind::kText ? KindBehind(argument) : Behind::kText;
  }
  return shown;
}

Json JsonWithoutSecrets(Json json) {
  if (json.is_string()) return Json(WithoutSecrets(json.get_ref<const std::string&>()));
  const auto is_text = [](const Json& one) { return one.is_string(); };
  if (json.is_array() && !json.empty() && std::ranges::all_of(json.begin(), json.end(), is_text)) {
    std::vector<std::string> texts;
    for (const Json& one : json) texts.push_back(one.get<std::string>());
    return Json(WithoutSecrets(std::span<const std::string>(texts)));
  }
  for (Json& one : json) one = JsonWithoutSecrets(std::move(one));
  return json;
}

}  // namespace weir
