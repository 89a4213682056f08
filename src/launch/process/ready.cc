#include "launch/process/ready.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "base/file.h"
#include "base/json.h"
#include "base/secrets.h"

namespace weir::launch {
namespace {

constexpr size_t kMostOfAnAnswer = 4096;  // bytes of a body that are kept

struct Answer {
  std::string status_line, body;
  bool good = false;  // a status of 200 to 299: nothing more is read
};

size_t TakeHeader(char* data, size_t size, size_t count, void* to) {
  Answer& answer = *static_cast<Answer*>(to);
  const std::string_view line(data, size * count);
  if (!line.starts_with("HTTP/")) return line.size();
  answer.status_line = line.substr(0, line.find_first_of("\r\n"));
  const size_t status = answer.status_line.find(' ');
  answer.good = status != std::string::npos && answer.status_line.substr(status + 1, 1) == "2";
  return answer.good ? 0 : line.size();
}

size_t TakeBody(char* data, size_t size, size_t count, void* to) {
  Answer& answer = *static_cast<Answer*>(to);
  const size_t taken = std::min(size * count, kMostOfAnAnswer - answer.body.size());
  answer.body.append(data, taken);
  return taken;
}

using Handle = std::unique_ptr<CURL, void (*)(CURL*)>;

// A connection of its own, without a proxy.
Handle Open(const std::string& url, Duration timeout) {
  Handle handle(curl_easy_init(), curl_easy_cleanup);
  CHECK(handle != nullptr);
  CURL* const curl = handle.get();
  curl_easy_setopt(curl, CURLOPT_URL, WithEncodedUser(url).c_str());
  curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, 1L);
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(std::max(1.0, Milliseconds(timeout))));
  return handle;
}

// Returns the error of a transfer that gave no response.
std::unexpected<Error> ErrorOf(CURLcode code, CURL* curl, const std::string& url) {
  long os_error = 0;
  curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &os_error);
  const auto fail = [&](ErrorCode kind, std::string_view what) {
    return Fail(kind, fmt::format("{}: {}", url, what));
  };
  switch (code) {
    case CURLE_COULDNT_CONNECT:
      if (os_error != 0) return Context(url, FailErrno("connect", static_cast<int>(os_error)).error());
      return fail(ErrorCode::kIo, "connect: refused");
    case CURLE_OPERATION_TIMEDOUT:
      return fail(ErrorCode::kDeadline, "no answer in time");
    case CURLE_GOT_NOTHING:
      return fail(ErrorCode::kIo, "answered nothing");
    case CURLE_UNSUPPORTED_PROTOCOL:  // HTTP/0.9: there is no status line
    case CURLE_WEIRD_SERVER_REPLY:
      return fail(ErrorCode::kIo, "the answer is not HTTP: is it the port of HTTP?");
    default:
      return fail(ErrorCode::kIo, curl_easy_strerror(code));
  }
}

// Returns the server's error text if it has the protocol's form: {"error": "..."}.
std::string ErrorText(const std::string& body) {
  const auto said = ParseJson(body);
  return said ? GetString(*said, "error").value_or("") : "";
}

}  // namespace

Result<HttpUrl> ParseHttpUrl(const std::string& url) {
  const auto bad = [&](std::string_view why) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: {}; wanted is http://HOST:PORT/PATH", EscapeBytes(url), why));
  };
  const std::unique_ptr<CURLU, void (*)(CURLU*)> parsed(curl_url(), curl_url_cleanup);
  CHECK(parsed != nullptr);
  if (!url.starts_with("http://")) return bad("not an http URL");
  if (const CURLUcode code = curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0); code != CURLUE_OK)
    return bad(curl_url_strerror(code));
  const auto part = [&](CURLUPart which, unsigned flags = 0) {
    char* text = nullptr;
    if (curl_url_get(parsed.get(), which, &text, flags) != CURLUE_OK) return std::string();
    const std::unique_ptr<char, void (*)(void*)> owner(text, curl_free);
    return std::string(text);
  };
  HttpUrl made{.host = part(CURLUPART_HOST),
               .port = part(CURLUPART_PORT, CURLU_DEFAULT_PORT),
               .path = part(CURLUPART_PATH)};
  if (const std::string query = part(CURLUPART_QUERY); !query.empty()) made.path += "?" + query;
  if (made.host.starts_with('[')) made.host = made.host.substr(1, made.host.size() - 2);  // an IPv6 address
  const std::string_view authority = std::string_view(url).substr(7, url.find('/', 7) - 7);
  if (made.host.empty()) return bad("no host");
  if (authority.ends_with(':')) return bad("not a port");
  return made;
}

Status AskReady(const std::string& url, Duration timeout) {
  constexpr std::string_view kTcp = "tcp://";
  if (!url.starts_with(kTcp)) return AskHttp(url, timeout);
  const std::string place = "http://" + url.substr(kTcp.size());
  TRY_STATUS(ParseHttpUrl(place));
  const Handle curl = Open(place, timeout);
  curl_easy_setopt(curl.get(), CURLOPT_CONNECT_ONLY, 1L);
  if (const CURLcode code = curl_easy_perform(curl.get()); code != CURLE_OK)
    return ErrorOf(code, curl.get(), url);
  return {};
}

Status AskHttp(const std::string& url, Duration timeout) {
  TRY_STATUS(ParseHttpUrl(url));
  Answer answer;
  const Handle curl = Open(url, timeout);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERFUNCTION, TakeHeader);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERDATA, &answer);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, TakeBody);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer);
  const CURLcode code = curl_easy_perform(curl.get());
  if (answer.good) return {};
  if (answer.status_line.empty()) return ErrorOf(code, curl.get(), url);
  const std::string error = ErrorText(answer.body);
  return Fail(ErrorCode::kIo, fmt::format("{}: answered {}{}{}", url, EscapeBytes(answer.status_line),
                                          error.empty() ? "" : ": ", EscapeBytes(error)));
}

}  // namespace weir::launch
