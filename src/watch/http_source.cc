#include "watch/http_source.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>
#include <utility>

#include "base/secrets.h"
#include "base/text.h"
#include "http/tcp.h"
#include "watch/http_authorization.h"

namespace weir::watch {
namespace {

constexpr int kMostHops = 6;

std::string NewNonce() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

bool SameServer(const http::ServerUrl& a, const http::ServerUrl& b) {
  return a.host == b.host && a.port == b.port;
}

}  // namespace

Result<std::unique_ptr<Source>> HttpSource::Create(const StreamSpec& spec, const SourceOptions& options,
                                                   const Clock& clock) {
  StreamUrl url = TRY_CONTEXT(SplitStreamUrl(spec.text, kHttpPort), "stream " + spec.name);
  return std::unique_ptr<Source>(new HttpSource(std::move(url), options, clock));
}

Status HttpSource::Connect(Instant until) {
  at_ = url_;
  hops_ = 0;
  authorization_.clear();
  return Send(until);
}

// Opens a connection to at_ and sends the request.
Status HttpSource::Send(Instant until) {
  const std::string host = at_.server.Address();
  socket_ = TRY_CONTEXT(http::Connect(at_.server, until, clock_), host);
  std::string request =
      fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nUser-Agent: weir\r\n", at_.path, host);
  if (!authorization_.empty()) request += fmt::format("Authorization: {}\r\n", authorization_);
  request += "\r\n";
  // A request of this size fits into an empty socket buffer.
  if (::send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size()))
    return Fail(ErrorCode::kIo, fmt::format("{}: the request could not be sent", host));
  reader_.emplace(MultipartReader::Options{.max_part = options_.max_frame_bytes});
  return {};
}

Result<bool> HttpSource::Receive(Instant until) {
  pollfd wanted{socket_.get(), POLLIN, 0};
  const Duration left = std::max(Duration{}, until - clock_.Now());
  const auto ms = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
  const int ready = ::poll(&wanted, 1, std::min(ms, 1000));
  if (ready < 0 && errno != EINTR) return FailErrno("poll", errno);
  if (ready <= 0) return Fail(ErrorCode::kDeadline, fmt::format("{} does not answer", at_.server.Address()));
  std::array<char, 65536> buffer;
  const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got < 0) return FailErrno(at_.server.Address(), errno);
  if (got == 0) return false;
  reader_->Add({buffer.data(), static_cast<size_t>(got)});
  return true;
}

// Sends the request again, with credentials or to another place, where the server's refusal asks for that.
Status HttpSource::Follow(const Error& refusal) {
  const std::optional<MultipartReader::Response> response = reader_->response();
  const int64_t status = response && !reader_->begun() ? response->status : 0;
  const bool moved = status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
  if (!moved && status != 401) return std::unexpected(refusal);
  if (++hops_ > kMostHops)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{} redirections in a row", kMostHops));
  TRY_STATUS(moved ? Redirect(response->location) : Authorize(response->challenges, refusal));
  return Send(clock_.Now() + options_.connect_timeout);
}

// Credentials go to no other server than the one that they were given for.
Status HttpSource::Authorize(const std::vector<std::string>& challenges, const Error& refusal) {
  if (!at_.user) return std::unexpected(refusal);
  if (!authorization_.empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("status 401: the user or the password is wrong; {}", kEncodeAdvice));
  }
  authorization_ =
      TRY_CONTEXT(watch::Authorize(challenges, {.user = *at_.user, .password = at_.password},
                                   {.method = "GET", .target = at_.path, .client_nonce = NewNonce()}),
                  "status 401");
  return {};
}

Status HttpSource::Redirect(const std::string& location) {
  const auto refuse = [&](const char* why) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("it redirects to {}, {}", Quoted(WithoutSecrets(location)), why));
  };
  if (location.empty()) return refuse("no place");
  StreamUrl next = at_;
  if (location.find("://") != std::string::npos) {
    if (!location.starts_with("http://")) return refuse("which is not http://");
    next = TRY_CONTEXT(SplitStreamUrl(location, kHttpPort), "its redirection");
    if (!next.user && SameServer(next.server, at_.server)) {
      next.user = at_.user;
      next.password = at_.password;
    }
  } else if (location.starts_with("//")) {
    return Redirect("http:" + location);
  } else {
    const std::string base = at_.path.substr(0, at_.path.find('?'));
    next.path = location.starts_with('/') ? location : base.substr(0, base.rfind('/') + 1) + location;
    next.path = next.path.substr(0, next.path.find('#'));
    if (std::ranges::any_of(next.path, [](char c) { return (c >= 0 && c <= ' ') || c == '\x7f'; }))
      return refuse("a path with a blank");
  }
  authorization_.clear();
  at_ = std::move(next);
  return {};
}

SourceFrame HttpSource::FrameOf(MultipartReader::Part part) const {
  SourceFrame frame{.jpeg = Bytes::Copy(part.data), .arrived = clock_.Now()};
  if (part.timestamp) {
    frame.captured_wall = part.timestamp;
    frame.capture_source = CaptureSource::kPartTimestamp;
  }
  if (part.wrong_length) {
    frame.fault = "wrong-length";
    frame.fault_words = "a Content-Length is not that of its frame; the boundary ended it";
  }
  return frame;
}

Result<std::optional<SourceFrame>> HttpSource::Read(Instant until) {
  while (true) {
    auto part = reader_->Next();
    if (!part) {
      TRY_STATUS(Follow(part.error()));
      continue;
    }
    if (*part) return FrameOf(**std::move(part));
    if (reader_->ended()) return std::optional<SourceFrame>();
    if (TRY(Receive(until))) continue;
    if (auto last = reader_->Close()) return FrameOf(*std::move(last));
    return Fail(ErrorCode::kIo, fmt::format("{} closed the connection", at_.server.Address()));
  }
}

}  // namespace weir::watch
