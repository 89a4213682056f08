#include "probe/network_data.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/fields.h"
#include "base/seed.h"
#include "base/thread.h"

namespace weir::probe {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 18;    // of a receive
constexpr Duration kTimeout = 20s;                 // without a byte
constexpr int kLeftOut = 5;                        // messages
constexpr size_t kMostWaiting = 2 * kMostStreams;  // connections without a cookie
constexpr int kAcceptedAtOnce = 64;
constexpr Duration kCookieTimeout = 5s;
constexpr size_t kMostEnded = 4096;                   // streams between two calls
constexpr size_t kMostBufferBytes = size_t{8} << 20;  // of a message that is received

struct Header {
  char cookie[kCookieBytes];
  uint64_t message_bytes;  // 0: a stream without answers
};

// A StreamUse in JSON.
struct Form {
  uint64_t bytes = 0, all_bytes = 0;
  int64_t time_ns = 0, cpu_ns = 0, wall_ns = 0, retransmits = 0;
};
struct FormList {
  std::vector<Form> streams;
};
constexpr int64_t kMostCount = int64_t{1} << 53;  // sums of kMostStreams stay numbers

template <typename F>
void Describe(F& fields, Described<F, Form>& form) {
  fields("bytes", form.bytes);
  fields("all_bytes", form.all_bytes);
  fields.FromZero("time_ns", form.time_ns);
  fields.FromZero("cpu_ns", form.cpu_ns);
  fields.FromZero("wall_ns", form.wall_ns);
  fields.FromZero("retransmits", form.retransmits);
  for (const int64_t value : {form.time_ns, form.cpu_ns, form.wall_ns, form.retransmits})
    fields.Require(value <= kMostCount, "a number that is too large");
  for (const uint64_t value : {form.bytes, form.all_bytes})
    fields.Require(value <= uint64_t{kMostCount}, "a number of bytes that is too large");
}

template <typename F>
void Describe(F& fields, Described<F, FormList>& list) {
  fields("streams", list.streams);
  fields.Require(list.streams.size() <= kMostEnded, "more streams than there can be");
}

void SetTimeout(int fd) {
  const timeval limit{.tv_sec = kTimeout / 1s, .tv_usec = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

// Takes the same time whatever differs.
bool SameCookie(const char* given, const std::string& cookie) {
  int differences = 0;
  for (size_t i = 0; i < kCookieBytes; ++i) differences |= given[i] ^ cookie[i];
  return differences == 0;
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

// The same for a message that may be larger than the memory for it, which later parts overwrite.
Result<bool> ReceiveMessage(int fd, uint64_t size, std::vector<char>& buffer) {
  while (size > 0) {
    const size_t part = std::min<uint64_t>(size, buffer.size());
    if (!TRY(ReceiveAll(fd, buffer.data(), part))) return false;
    size -= part;
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

template <typename F>
void Describe(F& fields, Described<F, DataPort>& port) {
  fields("port", port.port);
  fields("cookie", port.cookie);
  fields.Require(port.port != 0 && port.cookie.size() == kCookieBytes, "no place for data connections");
}

Json DataPort::ToJson() const { return FieldsToJson(*this); }
Result<DataPort> DataPort::FromJson(const Json& json) { return FieldsFromJson<DataPort>(json); }

Json StreamsToJson(const std::vector<StreamUse>& streams) {
  FormList list;
  for (const StreamUse& use : streams)
    list.streams.push_back({.bytes = use.bytes,
                            .all_bytes = use.all_bytes,
                            .time_ns = use.time.count(),
                            .cpu_ns = use.cpu.count(),
                            .wall_ns = use.wall.count(),
                            .retransmits = use.retransmits});
  return FieldsToJson(list);
}

Result<std::vector<StreamUse>> StreamsFromJson(const Json& json) {
  std::vector<StreamUse> streams;
  for (const Form& form : TRY(FieldsFromJson<FormList>(json)).streams)
    streams.push_back({.bytes = form.bytes,
                       .time = Duration(form.time_ns),
                       .cpu = Duration(form.cpu_ns),
                       .wall = Duration(form.wall_ns),
                       .all_bytes = form.all_bytes,
                       .retransmits = form.retransmits});
  return streams;
}

// A connection whose header is not whole.
struct NetworkAgent::Waiting {
  UniqueFd fd;
  Instant until;
  Header header{};
  size_t got = 0;
};

struct NetworkAgent::Stream {
  UniqueFd fd;
  std::atomic<bool> ended = false;
  std::jthread thread;  // the last member: it ends first
};

NetworkAgent::NetworkAgent(const Clock& clock) : clock_(clock) {}

NetworkAgent::~NetworkAgent() {
  accept_ = std::jthread();
  for (const Stream& stream : streams_)
    if (stream.fd.valid()) ::shutdown(stream.fd.get(), SHUT_RDWR);
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
  const DataPort port{.port = TRY(cluster::PortOf(socket_.get())), .cookie = cookie_};
  return cluster::Message{.body = port.ToJson(), .block = ""};
}

Result<cluster::Message> NetworkAgent::Take(cluster::CallContext& context) {
  const std::stop_token stop = context.stop();
  const MutexLock lock(mutex_);
  while (running_ > 0) {
    if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped");
    changed_.WaitUntil(mutex_, clock_.Now() + 50ms);
  }
  if (!faults_.empty()) return Fail(ErrorCode::kIo, std::exchange(faults_, {}).front());
  return cluster::Message{.body = StreamsToJson(std::exchange(ended_, {})), .block = ""};
}

void NetworkAgent::AcceptAll(const std::stop_token& over) {
  std::deque<Waiting> waiting;  // the oldest first
  while (!over.stop_requested()) {
    std::vector<pollfd> ready{{.fd = socket_.get(), .events = POLLIN, .revents = 0}};
    for (const Waiting& each : waiting)
      ready.push_back({.fd = each.fd.get(), .events = POLLIN, .revents = 0});
    cluster::WaitForAny(ready, clock_.Now() + 50ms, clock_);
    TakeCookies(waiting);
    if (ready.front().revents != 0) AcceptNew(waiting);
    std::erase_if(streams_, [](const Stream& stream) { return stream.ended.load(); });  // joins its thread
  }
}

void NetworkAgent::AcceptNew(std::deque<Waiting>& waiting) {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    const Instant now = clock_.Now();
    auto fd = cluster::Accept(socket_.get(), now, clock_);
    if (!fd && !waiting.empty()) waiting.pop_front();  // descriptors are used up
    if (!fd && waiting.empty()) SleepUntil(now + 20ms);
    if (!fd || !fd->valid()) return;
    if (waiting.size() >= kMostWaiting) waiting.pop_front();
    SetTimeout(fd->get());
    waiting.push_back({.fd = *std::move(fd), .until = now + kCookieTimeout});
  }
}

void NetworkAgent::TakeCookies(std::deque<Waiting>& waiting) {
  const Instant now = clock_.Now();
  std::erase_if(waiting, [&](Waiting& each) {
    char* const to = reinterpret_cast<char*>(&each.header) + each.got;
    const ssize_t count = ::recv(each.fd.get(), to, sizeof(Header) - each.got, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return now >= each.until;
    if (count <= 0) return true;
    each.got += static_cast<size_t>(count);
    if (each.got < sizeof(Header)) return now >= each.until;
    if (SameCookie(each.header.cookie, cookie_) && each.header.message_bytes <= kMostNetworkBytes)
      Begin(std::move(each.fd), each.header.message_bytes);
    return true;
  });
}

void NetworkAgent::Begin(UniqueFd fd, uint64_t message_bytes) {
  {
    const MutexLock lock(mutex_);
    if (running_ >= kMostStreams || ended_.size() + faults_.size() >= kMostEnded) return;
    ++running_;
  }
  Stream& stream = streams_.emplace_back();
  stream.fd = std::move(fd);
  stream.thread = StartThread(fmt::format("net-{}", begun_++ % 1000),
                              [this, &stream, message_bytes](const std::stop_token&) {
                                Serve(stream, message_bytes);
                                stream.ended = true;
                              });
}

void NetworkAgent::Serve(Stream& stream, uint64_t message_bytes) {
  const int fd = stream.fd.get();
  const auto use = message_bytes > 0 ? ServeMessages(fd, message_bytes) : ServeStream(fd);
  const MutexLock lock(mutex_);
  ::shutdown(fd, SHUT_RDWR);  // the caller sees that all was taken
  --running_;
  if (use)
    ended_.push_back(*use);
  else
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
  std::vector<char> buffer(std::min<uint64_t>(bytes, kMostBufferBytes));
  constexpr char kAnswer[kAnswerBytes] = {'d', 'o', 'n', 'e'};
  StreamUse use;
  const Instant begin = clock_.Now();
  const Duration cpu = ThreadCpuTime();
  while (TRY(ReceiveMessage(fd, bytes, buffer))) {
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
