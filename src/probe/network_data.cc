#include "probe/network_data.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/fields.h"
#include "base/seed.h"
#include "base/thread.h"

namespace weir::probe {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 18;  // of a receive
constexpr Duration kTimeout = 20s;               // without a byte
constexpr int kLeftOut = 5;                      // messages

struct Header {
  char cookie[kCookieBytes];
  uint64_t message_bytes;  // 0: a stream without answers
};

// A StreamUse in JSON.
struct Form {
  uint64_t bytes = 0, all_bytes = 0;
  int64_t time_ns = 0, cpu_ns = 0, wall_ns = 0, retransmits = 0;
};

template <typename F>
void Describe(F& fields, Described<F, Form>& form) {
  fields("bytes", form.bytes);
  fields("all_bytes", form.all_bytes);
  fields("time_ns", form.time_ns);
  fields("cpu_ns", form.cpu_ns);
  fields("wall_ns", form.wall_ns);
  fields("retransmits", form.retransmits);
}

void SetTimeout(int fd) {
  const timeval limit{.tv_sec = kTimeout / 1s, .tv_usec = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

// False at the end of the connection before all has come.
Result<bool> ReceiveAll(int fd, char* to, size_t size) {
  while (size > 0) {
    const ssize_t count = ::recv(fd, to, size, MSG_WAITALL);
    if (count == 0) return false;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FailErrno("receive", errno);
    to += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

Status SendAll(int fd, const char* from, size_t size) {
  while (size > 0) {
    const ssize_t count = ::send(fd, from, size, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FailErrno("send", errno);
    from += count;
    size -= static_cast<size_t>(count);
  }
  return {};
}

int64_t RetransmitsOf(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_total_retrans : 0;
}

Result<UniqueFd> OpenData(const DataAddress& to, uint64_t message_bytes, const Clock& clock) {
  UniqueFd fd = TRY_CONTEXT(cluster::Connect(to.address, clock.Now() + 10s, clock), "a data connection to");
  SetTimeout(fd.get());
  Header header{};
  std::memcpy(header.cookie, to.cookie.data(), std::min(kCookieBytes, to.cookie.size()));
  header.message_bytes = message_bytes;
  TRY_STATUS(SendAll(fd.get(), reinterpret_cast<const char*>(&header), sizeof header));
  return fd;
}

// Bytes that no link can make smaller.
std::vector<char> MakeMessage(uint64_t size) {
  std::vector<char> bytes(size);
  Random random(1);
  for (size_t at = 0; at < bytes.size(); at += 8) {
    const uint64_t word = random.Next();
    std::memcpy(&bytes[at], &word, std::min<size_t>(8, bytes.size() - at));
  }
  return bytes;
}

}  // namespace

Json StreamUse::ToJson() const {
  return FieldsToJson(Form{.bytes = bytes,
                           .all_bytes = all_bytes,
                           .time_ns = time.count(),
                           .cpu_ns = cpu.count(),
                           .wall_ns = wall.count(),
                           .retransmits = retransmits});
}

Result<StreamUse> StreamUse::FromJson(const Json& json) {
  const Form form = TRY(FieldsFromJson<Form>(json));
  return StreamUse{.bytes = form.bytes,
                   .time = Duration(form.time_ns),
                   .cpu = Duration(form.cpu_ns),
                   .wall = Duration(form.wall_ns),
                   .all_bytes = form.all_bytes,
                   .retransmits = form.retransmits};
}

NetworkAgent::~NetworkAgent() {
  accept_ = std::jthread();
  const MutexLock lock(mutex_);
  for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
}

Result<cluster::Message> NetworkAgent::Open(cluster::CallContext& context) {
  if (!socket_.valid()) {
    const std::string here = TRY(cluster::HostOf(context.connection(), false));
    socket_ = TRY(cluster::Listen({.host = here, .port = 0}));
    std::array<unsigned char, kCookieBytes / 2> bytes;
    if (::getrandom(bytes.data(), bytes.size(), 0) != std::ssize(bytes)) return FailErrno("getrandom", errno);
    for (const unsigned char byte : bytes) cookie_ += fmt::format("{:02x}", byte);
    accept_ = StartThread("net-accept", [this](const std::stop_token& over) { AcceptAll(over); });
  }
  return cluster::Message{.body = {{"port", TRY(cluster::PortOf(socket_.get()))}, {"cookie", cookie_}},
                          .block = ""};
}

Result<cluster::Message> NetworkAgent::Take(cluster::CallContext& context) {
  const std::stop_token stop = context.stop();
  const MutexLock lock(mutex_);
  while (running_ > 0) {
    if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped");
    changed_.WaitUntil(mutex_, clock_.Now() + 50ms);
  }
  if (!faults_.empty()) return Fail(ErrorCode::kIo, std::exchange(faults_, {}).front());
  Json list = Json::array();
  for (const StreamUse& use : std::exchange(ended_, {})) list.push_back(use.ToJson());
  return cluster::Message{.body = {{"streams", list}}, .block = ""};
}

void NetworkAgent::AcceptAll(const std::stop_token& over) {
  while (!over.stop_requested()) {
    auto fd = cluster::Accept(socket_.get(), clock_.Now() + 50ms, clock_);
    if (!fd || !fd->valid()) continue;
    SetTimeout(fd->get());
    {
      const MutexLock lock(mutex_);
      ++running_;
      open_.insert(fd->get());
    }
    threads_.push_back(
        StartThread(fmt::format("net-{}", threads_.size()),
                    [this, fd = *std::move(fd)](const std::stop_token&) mutable { Serve(std::move(fd)); }));
  }
}

void NetworkAgent::Serve(UniqueFd fd) {
  Header header{};
  const auto read = ReceiveAll(fd.get(), reinterpret_cast<char*>(&header), sizeof header);
  const bool ours = read && *read && std::memcmp(header.cookie, cookie_.data(), kCookieBytes) == 0 &&
                    header.message_bytes <= kMostNetworkBytes;
  const auto use = !ours                      ? Result<StreamUse>(Fail(ErrorCode::kIo, "not ours"))
                   : header.message_bytes > 0 ? ServeMessages(fd.get(), header.message_bytes)
                                              : ServeStream(fd.get());
  const MutexLock lock(mutex_);
  open_.erase(fd.get());
  fd = UniqueFd();  // the caller sees that all was taken
  --running_;
  if (use)
    ended_.push_back(*use);
  else if (ours)
    faults_.push_back(use.error().message);
  changed_.NotifyAll();
}

Result<StreamUse> NetworkAgent::ServeStream(int fd) {
  std::vector<char> piece(kPieceBytes);
  StreamUse use;
  const Duration cpu = ThreadCpuTime();
  std::optional<Instant> first, from;
  while (true) {
    const ssize_t count = ::recv(fd, piece.data(), piece.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FailErrno("receive", errno);
    if (count == 0) break;
    const Instant now = clock_.Now();
    if (!first) first = now;
    use.all_bytes += static_cast<uint64_t>(count);
    use.wall = now - *first;
    if (from) {
      use.bytes += static_cast<uint64_t>(count);
      use.time = now - *from;
    } else if (use.wall >= kOmitted) {
      from = now;
    }
  }
  use.cpu = ThreadCpuTime() - cpu;
  return use;
}

Result<StreamUse> NetworkAgent::ServeMessages(int fd, uint64_t bytes) {
  std::vector<char> message(bytes);
  constexpr char kAnswer[kAnswerBytes] = {'d', 'o', 'n', 'e'};
  StreamUse use;
  const Instant begin = clock_.Now();
  const Duration cpu = ThreadCpuTime();
  while (TRY(ReceiveAll(fd, message.data(), message.size()))) {
    use.all_bytes += bytes;
    TRY_STATUS(SendAll(fd, kAnswer, sizeof kAnswer));
  }
  use.cpu = ThreadCpuTime() - cpu;
  use.wall = clock_.Now() - begin;
  return use;
}

Result<StreamUse> SendStream(const DataAddress& to, uint64_t message_bytes, Instant until, const Clock& clock,
                             const std::stop_token& stop) {
  const std::vector<char> message = MakeMessage(message_bytes);
  const UniqueFd fd = TRY(OpenData(to, 0, clock));
  const int off = 0;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &off, sizeof off);
  StreamUse use;
  const Instant begin = clock.Now();
  const Duration cpu = ThreadCpuTime();
  while (clock.Now() < until && !stop.stop_requested()) {
    TRY_STATUS(SendAll(fd.get(), message.data(), message.size()));
    use.all_bytes += message_bytes;
  }
  use.wall = clock.Now() - begin;
  use.retransmits = RetransmitsOf(fd.get());
  ::shutdown(fd.get(), SHUT_WR);
  char end = 0;
  TRY(ReceiveAll(fd.get(), &end, 1));
  use.cpu = ThreadCpuTime() - cpu;
  return use;
}

Result<StreamUse> SendMessages(const DataAddress& to, uint64_t message_bytes, Instant until, int fewest,
                               stats::Histogram& latency_ns, const Clock& clock,
                               const std::stop_token& stop) {
  const std::vector<char> message = MakeMessage(message_bytes);
  const UniqueFd fd = TRY(OpenData(to, message_bytes, clock));
  char answer[kAnswerBytes];
  StreamUse use;
  const Duration cpu = ThreadCpuTime();
  const Instant begin = clock.Now();
  Instant sent = begin;
  for (int number = 0; (sent < until || number < fewest + kLeftOut) && !stop.stop_requested(); ++number) {
    TRY_STATUS(SendAll(fd.get(), message.data(), message.size()));
    if (!TRY(ReceiveAll(fd.get(), answer, sizeof answer)))
      return Fail(ErrorCode::kIo, "the agent closed a data connection");
    const Instant answered = clock.Now();
    if (number >= kLeftOut) latency_ns.Add((answered - sent).count());
    use.all_bytes += message_bytes;
    sent = answered;
  }
  use.cpu = ThreadCpuTime() - cpu;
  use.wall = clock.Now() - begin;
  use.retransmits = RetransmitsOf(fd.get());
  return use;
}

}  // namespace weir::probe
