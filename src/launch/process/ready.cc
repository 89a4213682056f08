#include "launch/process/ready.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>

#include "base/file.h"
#include "base/json.h"
#include "launch/process/spawn.h"

namespace weir::launch {
namespace {

// Waits for what is asked of one socket until `until`.
Status Await(int socket, short events, Instant until, const Clock& clock) {
  while (true) {
    pollfd ready{socket, events, 0};
    const int count = ::poll(&ready, 1, PollTimeout(until, clock));
    if (count > 0) return {};
    if (count == 0 && clock.Now() >= until) return Fail(ErrorCode::kDeadline, "no answer in time");
  }
}

Result<UniqueFd> Connect(const HttpUrl& url, Instant until, const Clock& clock) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &found); error != 0)
    return Fail(ErrorCode::kIo, ::gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
  int error = 0;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    UniqueFd fd(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, one->ai_protocol));
    if (!fd.valid()) return FailErrno("a socket", errno);
    if (::connect(fd.get(), one->ai_addr, one->ai_addrlen) == 0) return fd;
    error = errno;
    if (error != EINPROGRESS) continue;
    TRY_STATUS(Await(fd.get(), POLLOUT, until, clock));
    socklen_t size = sizeof error;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == 0) return fd;
  }
  return FailErrno("connect", error);
}

// "HTTP/1.1 200 OK"
bool IsGood(const std::string& answer) {
  return answer.starts_with("HTTP/1.") && answer.size() >= 12 && answer[9] == '2';
}

// The answer, at most 4 KiB of it: its first line, and what follows unless that says that all is well.
Result<std::string> Ask(int socket, const HttpUrl& url, Instant until, const Clock& clock) {
  const std::string request = fmt::format("GET {} HTTP/1.1\r\nHost: {}:{}\r\nConnection: close\r\n\r\n",
                                          url.path, url.host, url.port);
  if (::send(socket, request.data(), request.size(), MSG_NOSIGNAL) != std::ssize(request))
    return FailErrno("send", errno);
  std::string answer;
  const auto has_line = [&] { return answer.find('\n') != std::string::npos; };
  while (answer.size() < 4096 && !(has_line() && IsGood(answer))) {
    const Status ready = Await(socket, POLLIN, until, clock);
    if (!ready && has_line()) break;
    TRY_STATUS(ready);
    char buffer[512];
    const ssize_t got = ::recv(socket, buffer, sizeof buffer, 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return FailErrno("receive", errno);
    if (got == 0) break;
    answer.append(buffer, static_cast<size_t>(got));
  }
  return answer;
}

// Returns the server's error text if it has the protocol's form: {"error": "..."}.
std::string ErrorOf(const std::string& answer) {
  const size_t body = answer.find("\r\n\r\n");
  if (body == std::string::npos) return "";
  const Json said = Json::parse(answer.substr(body), nullptr, false);
  if (!said.is_object() || !said.contains("error") || !said["error"].is_string()) return "";
  return said["error"].get<std::string>();
}

}  // namespace

Result<HttpUrl> ParseHttpUrl(const std::string& url) {
  constexpr std::string_view kScheme = "http://";
  const auto bad = [&](const char* why) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: {}; wanted is http://HOST:PORT/PATH", EscapeBytes(url), why));
  };
  if (!url.starts_with(kScheme)) return bad("not an http URL");
  if (std::ranges::any_of(url, [](unsigned char c) { return c <= ' ' || c == 127; }))
    return bad("blanks in a URL");
  const std::string_view rest = std::string_view(url).substr(kScheme.size());
  const std::string_view authority = rest.substr(0, rest.find('/'));
  HttpUrl parsed{.port = "80", .path = std::string(rest.substr(authority.size()))};
  if (parsed.path.empty()) parsed.path = "/";
  const size_t bracket = authority.starts_with('[') ? authority.find(']') : 0;  // an IPv6 address
  if (bracket == std::string_view::npos) return bad("a bracket is not closed");
  const size_t colon = authority.find(':', bracket);
  parsed.host = authority.substr(bracket > 0 ? 1 : 0, bracket > 0 ? bracket - 1 : colon);
  if (colon != std::string_view::npos) parsed.port = authority.substr(colon + 1);
  if (parsed.host.empty()) return bad("no host");
  const bool digits = std::ranges::all_of(parsed.port, [](char c) { return c >= '0' && c <= '9'; });
  if (parsed.port.empty() || parsed.port.size() > 5 || !digits) return bad("not a port");
  return parsed;
}

Status AskReady(const std::string& url, Duration timeout, const Clock& clock) {
  constexpr std::string_view kTcp = "tcp://";
  if (!url.starts_with(kTcp)) return AskHttp(url, timeout, clock);
  const HttpUrl parsed = TRY(ParseHttpUrl("http://" + url.substr(kTcp.size())));
  (void)TRY_CONTEXT(Connect(parsed, clock.Now() + timeout, clock), url);
  return {};
}

Status AskHttp(const std::string& url, Duration timeout, const Clock& clock) {
  const HttpUrl parsed = TRY(ParseHttpUrl(url));
  const Instant until = clock.Now() + timeout;
  const UniqueFd socket = TRY_CONTEXT(Connect(parsed, until, clock), url);
  const std::string answer = TRY_CONTEXT(Ask(socket.get(), parsed, until, clock), url);
  if (answer.empty()) return Fail(ErrorCode::kIo, fmt::format("{}: answered nothing", url));
  if (!answer.starts_with("HTTP/1.")) {
    return Fail(ErrorCode::kIo, fmt::format("{}: the answer is not HTTP: is it the port of HTTP?", url));
  }
  if (IsGood(answer)) return {};
  const std::string error = ErrorOf(answer);
  return Fail(ErrorCode::kIo, fmt::format("{}: answered {}{}{}", url,
                                          EscapeBytes(answer.substr(0, answer.find_first_of("\r\n"))),
                                          error.empty() ? "" : ": ", EscapeBytes(error)));
}

}  // namespace weir::launch
