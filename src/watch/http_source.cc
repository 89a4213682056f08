#include "watch/http_source.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/base64.h"
#include "base/text.h"
#include "http/server_url.h"
#include "http/tcp.h"

namespace weir::watch {

Result<std::unique_ptr<Source>> HttpSource::Create(const StreamSpec& spec, const SourceOptions& options,
                                                   const Clock& clock) {
  std::string_view rest = std::string_view(spec.text).substr(7);
  const size_t slash = std::min(rest.find('/'), rest.size());
  Address address;
  address.path = slash < rest.size() ? std::string(rest.substr(slash)) : "/";
  rest = rest.substr(0, slash);
  if (const size_t at = rest.rfind('@'); at != std::string_view::npos) {
    const auto user = DecodePercent(rest.substr(0, at));
    if (!user)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("stream {}: its user or password has a wrong %", spec.name));
    address.credentials = *user;
    rest.remove_prefix(at + 1);
  }
  const size_t colon = rest.rfind(':'), bracket = rest.rfind(']');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  address.server = fmt::format("http://{}{}", rest, has_port ? "" : ":80");
  const auto parsed = http::ParseServerUrl(address.server);
  if (!parsed) return Context("stream " + spec.name, parsed.error());
  address.host = parsed->Address();
  for (const char c : address.path) {
    if (c <= ' ' || c == '\x7f')
      return Fail(ErrorCode::kInvalidArgument, fmt::format("stream {}: the path has a blank", spec.name));
  }
  return std::unique_ptr<Source>(new HttpSource(std::move(address), options, clock));
}

Status HttpSource::WaitFor(short events, Instant until) const {
  pollfd wanted{socket_.get(), events, 0};
  const Duration left = std::max(Duration{}, until - clock_.Now());
  const auto ms = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
  const int ready = ::poll(&wanted, 1, std::min(ms, 1000));
  if (ready > 0) return {};
  if (ready < 0 && errno != EINTR) return FailErrno("poll", errno);
  return Fail(ErrorCode::kDeadline, fmt::format("{} does not answer", address_.host));
}

Status HttpSource::Connect(Instant until) {
  const http::ServerUrl server = TRY(http::ParseServerUrl(address_.server));
  const auto found = TRY_CONTEXT(http::Resolve(server), address_.host);
  socket_ = TRY_CONTEXT(http::BeginConnect(found.front()), address_.host);
  Status ready = WaitFor(POLLOUT, until);
  while (!ready && ready.error().code == ErrorCode::kDeadline && clock_.Now() < until)
    ready = WaitFor(POLLOUT, until);
  if (!ready) return ready;
  if (const Status connected = http::ConnectOutcome(socket_.get()); !connected)
    return Context(address_.host, connected.error());
  std::string request =
      fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nUser-Agent: weir\r\n", address_.path,
                  address_.host);
  if (!address_.credentials.empty())
    request += fmt::format("Authorization: Basic {}\r\n", EncodeBase64(address_.credentials));
  request += "\r\n";
  // A request of this size fits into an empty socket buffer.
  if (::send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size()))
    return Fail(ErrorCode::kIo, fmt::format("{}: the request could not be sent", address_.host));
  reader_.emplace(MultipartReader::Options{.max_part = options_.max_frame_bytes});
  return {};
}

Result<bool> HttpSource::Receive(Instant until) {
  TRY_STATUS(WaitFor(POLLIN, until));
  std::array<char, 65536> buffer;
  const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got < 0) return FailErrno(address_.host, errno);
  if (got == 0) return false;
  reader_->Add({buffer.data(), static_cast<size_t>(got)});
  return true;
}

Result<std::optional<SourceFrame>> HttpSource::Read(Instant until) {
  while (true) {
    auto part = TRY(reader_->Next());
    if (part) {
      SourceFrame frame{.jpeg = Bytes::Copy(part->data), .arrived = clock_.Now()};
      if (part->timestamp) {
        frame.captured_wall = part->timestamp;
        frame.capture_source = CaptureSource::kPartTimestamp;
      }
      return frame;
    }
    if (reader_->ended()) return std::optional<SourceFrame>();
    if (!TRY(Receive(until)))
      return Fail(ErrorCode::kIo, fmt::format("{} closed the connection", address_.host));
  }
}

}  // namespace weir::watch
