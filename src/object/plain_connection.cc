#include "object/plain_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "object/header_rules.h"

namespace weir::object {
namespace {

constexpr size_t kMostHead = 16 << 10;
constexpr size_t kRoom = 4 << 10;  // of a read of the head: what comes behind it is copied
constexpr std::string_view kScheme = "http://", kEndOfHead = "\r\n\r\n";

bool IsOfHost(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == ':' || c == '[' || c == ']';
}

// Characters that curl would change or leave out are not among them.
bool IsOfPath(char c) { return c > ' ' && c < 0x7f && c != '#'; }

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  return text;
}

std::string Lowered(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lowered;
}

template <typename T>
bool ReadNumber(std::string_view text, T& number) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return !text.empty() && error == std::errc() && stop == text.data() + text.size();
}

}  // namespace

std::optional<PlainTarget> PlainTargetOf(const HttpRequest& request) {
  const std::string_view url = request.url;
  if (request.method != "GET" || !url.starts_with(kScheme)) return std::nullopt;
  const size_t slash = url.find('/', kScheme.size());
  if (slash == url.npos) return std::nullopt;
  const PlainTarget target{url.substr(kScheme.size(), slash - kScheme.size()), url.substr(slash)};
  if (target.authority.empty() || !std::ranges::all_of(target.authority, IsOfHost) ||
      !std::ranges::all_of(target.path, IsOfPath))
    return std::nullopt;
  return target;
}

std::optional<AnswerHead> ParseAnswerHead(std::string_view head) {
  constexpr std::string_view kVersion = "HTTP/1.1 ";
  AnswerHead answer;
  const size_t end = head.find("\r\n");
  if (!head.starts_with(kVersion) || end == head.npos || end < kVersion.size() + 3 ||
      !ReadNumber(head.substr(kVersion.size(), 3), answer.status) ||
      (end > kVersion.size() + 3 && head[kVersion.size() + 3] != ' '))
    return std::nullopt;
  // Answers of these have no body whatever their headers say.
  if (answer.status < 200 || answer.status == 204 || answer.status == 304) return std::nullopt;
  bool has_length = false;
  for (head.remove_prefix(end + 2); !head.empty();) {
    const size_t stop = head.find("\r\n");
    if (stop == head.npos) return std::nullopt;
    const std::string_view line = head.substr(0, stop);
    head.remove_prefix(stop + 2);
    const size_t colon = line.find(':');
    if (!IsHeaderText(line) || colon == line.npos || colon == 0 || line.find_first_of(" \t") < colon)
      return std::nullopt;
    std::string name = Lowered(line.substr(0, colon));
    const std::string_view value = Trimmed(line.substr(colon + 1));
    if (name == "transfer-encoding") return std::nullopt;
    if (name == "content-length") {
      if (std::exchange(has_length, true) || !ReadNumber(value, answer.length)) return std::nullopt;
    } else if (name == "connection") {
      answer.keep_alive = Lowered(value) == "keep-alive";
    }
    answer.headers[std::move(name)] = value;
  }
  if (!has_length) return std::nullopt;
  return answer;
}

bool PlainConnection::IsQuiet() const {
  char byte;
  return ::recv(fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

bool PlainConnection::Send(const HttpRequest& request, const PlainTarget& target) {
  std::string_view host = target.authority;
  if (host.ends_with(":80")) host.remove_suffix(3);  // as curl names it
  std::string text;
  text.reserve(1024);
  for (const std::string_view part :
       {std::string_view("GET "), target.path, std::string_view(" HTTP/1.1\r\nHost: "), host,
        std::string_view("\r\nUser-Agent: weir\r\nAccept: */*\r\n")})
    text += part;
  for (const auto& [name, value] : request.headers) text.append(name).append(": ").append(value) += "\r\n";
  text += "\r\n";
  max_bytes_ = request.max_bytes;
  follows_redirects_ = request.follow_redirects;
  begun_ = has_head_ = false;
  text_.clear();
  body_ = {};
  filled_ = 0;
  return ::send(fd(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

// Returns nothing while the body has to be read.
std::optional<PlainConnection::Progress> PlainConnection::TakeHead() {
  const size_t end = text_.find(kEndOfHead);
  if (end == text_.npos) return text_.size() >= kMostHead ? Progress::kForCurl : Progress::kUnderWay;
  auto head = ParseAnswerHead(std::string_view(text_).substr(0, end + 2));
  if (!head || (follows_redirects_ && head->status < 400 && head->status >= 300)) return Progress::kForCurl;
  if (head->length > max_bytes_) return Progress::kTooLarge;
  head_ = *std::move(head);
  has_head_ = true;
  const std::string_view come = std::string_view(text_).substr(end + kEndOfHead.size());
  if (come.size() > head_.length) head_.keep_alive = false;  // bytes that nobody asked for
  body_ = Bytes::AllocateUninitialized(head_.length);
  filled_ = std::min<size_t>(come.size(), head_.length);
  if (filled_ > 0) std::memcpy(body_.mutable_data(), come.data(), filled_);
  return filled_ == body_.size() ? std::optional(Progress::kWhole) : std::nullopt;
}

PlainConnection::Progress PlainConnection::Read() {
  std::array<char, kRoom> room;
  for (;;) {
    char* const to = has_head_ ? reinterpret_cast<char*>(body_.mutable_data()) + filled_ : room.data();
    const size_t wanted = has_head_ ? body_.size() - filled_ : room.size();
    const ssize_t got = ::recv(fd(), to, wanted, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Progress::kUnderWay;
    if (got <= 0) return Progress::kEnded;
    begun_ = true;
    if (has_head_) {
      filled_ += static_cast<size_t>(got);
      if (filled_ == body_.size()) return Progress::kWhole;
    } else {
      text_.append(room.data(), static_cast<size_t>(got));
      if (const auto progress = TakeHead()) return *progress;
    }
    // The socket was empty; it tells when there is more.
    if (static_cast<size_t>(got) < wanted) return Progress::kUnderWay;
  }
}

HttpResponse PlainConnection::Take() {
  was_used_ = true;
  return {.status = head_.status, .headers = std::move(head_.headers), .body = std::move(body_)};
}

}  // namespace weir::object
