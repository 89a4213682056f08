#include "oip/grpc/acceptor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/thread.h"
#include "http/tcp.h"
#include "oip/grpc/tap.h"

namespace weir::oip {
namespace {

constexpr Duration kLookEvery = 250ms;
constexpr Duration kLookSoon = 25ms;  // while unfinished messages take much of what they may
constexpr Duration kRecently = 10ms;
constexpr int kAcceptedInARow = 64;
constexpr uint64_t kListener = 0, kWake = 1;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Result<SocketAddress> ParseAddress(const std::string& text, int port) {
  SocketAddress address;
  auto* const four = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* const six = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (inet_pton(AF_INET, text.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(static_cast<uint16_t>(port));
    address.size = sizeof *four;
  } else if (inet_pton(AF_INET6, text.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(static_cast<uint16_t>(port));
    address.size = sizeof *six;
  } else {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("listen on {}: not an IP address; give one such as 127.0.0.1", text));
  }
  return address;
}

// The address, and the peer as the library writes it. An IPv4 address that came through IPv6 is IPv4 to both.
struct Names {
  std::string who, peer;
};
Names NamesOf(const SocketAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.storage.ss_family == AF_INET) {
    const auto* const four = reinterpret_cast<const sockaddr_in*>(&address.storage);
    inet_ntop(AF_INET, &four->sin_addr, text.data(), text.size());
    return {text.data(), fmt::format("ipv4:{}:{}", text.data(), ntohs(four->sin_port))};
  }
  const auto* const six = reinterpret_cast<const sockaddr_in6*>(&address.storage);
  const int port = ntohs(six->sin6_port);
  if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
    inet_ntop(AF_INET, six->sin6_addr.s6_addr + 12, text.data(), text.size());
    return {text.data(), fmt::format("ipv4:{}:{}", text.data(), port)};
  }
  inet_ntop(AF_INET6, &six->sin6_addr, text.data(), text.size());
  const std::string scope = six->sin6_scope_id != 0 ? fmt::format("%25{}", six->sin6_scope_id) : "";
  return {text.data(), fmt::format("ipv6:%5B{}{}%5D:{}", text.data(), scope, port)};
}

UniqueFd OpenReserve() { return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

bool IsLackOfDescriptors(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

GrpcAcceptor::GrpcAcceptor(Options options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      calls_(std::make_shared<GrpcCalls>(options_.admission.max_bytes)),
      admission_(options_.admission) {}

Result<std::unique_ptr<GrpcAcceptor>> GrpcAcceptor::Listen(Options options, const Clock& clock) {
  std::unique_ptr<GrpcAcceptor> acceptor(new GrpcAcceptor(std::move(options), clock));
  TRY_STATUS(acceptor->Bind());
  return acceptor;
}

Status GrpcAcceptor::Bind() {
  const bool six = options_.address.find(':') != std::string::npos;
  const std::string name =
      fmt::format("{}{}{}:{}", six ? "[" : "", options_.address, six ? "]" : "", options_.port);
  const auto failed = [&]() -> std::unexpected<Error> {
    if (errno == EADDRINUSE) {
      return Fail(ErrorCode::kIo, fmt::format("gRPC port {} is in use on {}; choose another with --grpc-port",
                                              options_.port, options_.address));
    }
    return FailErrno(fmt::format("listen on {} for gRPC", name), errno);
  };
  SocketAddress address = TRY(ParseAddress(options_.address, options_.port));
  listener_ =
      UniqueFd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!listener_.valid()) return failed();
  const int on = 1;
  ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(listener_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // its connections inherit it
  if (::bind(listener_.get(), address.get(), address.size) != 0) return failed();
  if (::listen(listener_.get(), SOMAXCONN) != 0) return failed();
  SocketAddress bound;
  if (::getsockname(listener_.get(), bound.get(), &bound.size) != 0) return failed();
  port_ = ntohs(six ? reinterpret_cast<sockaddr_in6*>(&bound.storage)->sin6_port
                    : reinterpret_cast<sockaddr_in*>(&bound.storage)->sin_port);
  epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  wake_ = UniqueFd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  reserve_ = OpenReserve();
  if (!epoll_.valid() || !wake_.valid() || !reserve_.valid()) return failed();
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWake}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) return failed();
  event.data.u64 = kListener;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event) != 0) return failed();
  return {};
}

GrpcAcceptor::~GrpcAcceptor() { Stop(); }

void GrpcAcceptor::Start(std::unique_ptr<Library> library) {
  library_ = std::move(library);
  thread_ = StartThread("grpc-accept", [this](const std::stop_token& stop) { Run(stop); });
}

void GrpcAcceptor::Stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
    thread_.join();
  }
  listener_ = UniqueFd();
  open_.clear();
  MutexLock lock(mutex_);
  by_peer_.clear();
}

std::shared_ptr<GrpcConnection> GrpcAcceptor::Find(const std::string& peer) const {
  MutexLock lock(mutex_);
  const auto found = by_peer_.find(peer);
  return found == by_peer_.end() ? nullptr : found->second;
}

int GrpcAcceptor::Patience() const {
  if (open_.empty() && listening_ && next_look_ == Instant{}) return -1;
  const Duration left = std::max(Duration{}, next_look_ - clock_.Now());
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

void GrpcAcceptor::Run(const std::stop_token& stop) {
  std::array<epoll_event, 64> events{};
  while (!stop.stop_requested()) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), Patience());
    bool accept = false;
    for (int i = 0; i < count; ++i) {
      const uint64_t id = events[static_cast<size_t>(i)].data.u64;
      if (id == kListener) {
        accept = true;
      } else if (id != kWake) {
        Forget(id);
      }
    }
    if (accept && !stop.stop_requested()) AcceptAll();
    const Instant now = clock_.Now();
    if (now < next_look_ || (open_.empty() && next_look_ == Instant{} && listening_)) continue;
    const bool more = Look() || !open_.empty();
    const bool soon = admission_.unfinished_bytes() > options_.admission.max_bytes / 4;
    next_look_ = more ? now + (soon ? kLookSoon : kLookEvery) : Instant{};
  }
}

void GrpcAcceptor::Listening(bool on) {
  if (std::exchange(listening_, on) == on) return;
  epoll_event event{.events = on ? uint32_t{EPOLLIN} : 0, .data = {.u64 = kListener}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &event);
}

void GrpcAcceptor::AcceptAll() {
  if (admission_.crowded() && clock_.Now() - observed_ > kRecently) Observe();
  for (int i = 0; i < kAcceptedInARow; ++i) {
    if (!AcceptOne()) return;
  }
}

// Returns whether there may be another.
bool GrpcAcceptor::AcceptOne() {
  SocketAddress from;
  const int fd = ::accept4(listener_.get(), from.get(), &from.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
    if (!IsLackOfDescriptors(errno)) return true;  // that connection has gone
    OutOfDescriptors();
    return false;
  }
  Names names = NamesOf(from);
  Admit(UniqueFd(fd), std::move(names.peer), std::move(names.who));
  return true;
}

// Connections that cannot be accepted stay in the kernel's queue and wake the thread again and again. They
// are accepted in the place of the reserve and closed; then the listener rests until the next look.
void GrpcAcceptor::OutOfDescriptors() {
  reserve_ = UniqueFd();
  for (int i = 0; i < kAcceptedInARow; ++i) {
    SocketAddress from;
    const UniqueFd refused(::accept4(listener_.get(), from.get(), &from.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!refused.valid()) break;
    options_.refused(GrpcRefusal::kDescriptors, NamesOf(from).who);
  }
  reserve_ = OpenReserve();
  const Instant now = clock_.Now();
  if (const auto closing = admission_.MakeRoom(now)) Close(*closing);
  Listening(false);
  next_look_ = now + kLookEvery;
}

void GrpcAcceptor::Admit(UniqueFd socket, std::string peer, std::string who) {
  const Instant now = clock_.Now();
  const Id id = ++last_id_;
  const GrpcAdmission::Decision decision = admission_.Offer(id, who, now);
  if (decision.instead) Close(*decision.instead);
  if (decision.refused) return options_.refused(*decision.refused, who);
  const auto refuse = [&] {
    admission_.Remove(id);
    options_.refused(GrpcRefusal::kDescriptors, who);
  };
  // No events but those that are always told: the connection has ended in both directions.
  epoll_event event{.events = EPOLLET, .data = {.u64 = id}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0) return refuse();
  Library::NewConnectionParameters parameters;
  parameters.listener_fd = listener_.get();
  parameters.fd = ::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0);  // the library closes it
  if (parameters.fd < 0) return refuse();
  auto connection = std::make_shared<GrpcConnection>(calls_, clock_);
  if (!TapSocket(parameters.fd, connection->streams)) {
    ::close(parameters.fd);
    return refuse();
  }
  {
    MutexLock lock(mutex_);
    by_peer_[peer] = connection;
  }
  open_[id] = {
      .socket = std::move(socket), .who = std::move(who), .peer = std::move(peer), .connection = connection};
  library_->HandleNewConnection(&parameters);
  if (next_look_ == Instant{}) next_look_ = now + kLookEvery;
}

// The library sees the end of the connection and closes its own descriptor.
void GrpcAcceptor::Close(const GrpcAdmission::Closing& closing) {
  const auto found = open_.find(closing.id);
  if (found == open_.end()) return;
  options_.refused(closing.reason, found->second.who);
  ::shutdown(found->second.socket.get(), SHUT_RDWR);
  Forget(closing.id);
}

void GrpcAcceptor::Forget(Id id) {
  admission_.Remove(id);
  const auto found = open_.find(id);
  if (found == open_.end()) return;
  if (const auto refusal = found->second.connection->streams->refusal())
    options_.refused(*refusal, found->second.who);
  {
    MutexLock lock(mutex_);
    const auto same = by_peer_.find(found->second.peer);
    if (same != by_peer_.end() && same->second == found->second.connection) by_peer_.erase(same);
  }
  // Closing it is not enough while the library has its own.
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.socket.get(), nullptr);
  open_.erase(found);
}

void GrpcAcceptor::Observe() {
  observed_ = clock_.Now();
  for (auto& [id, open] : open_) {
    const GrpcConnection& calls = *open.connection;
    calls.streams->Look(observed_);
    // In this order: what is complete has been received.
    GrpcAdmission::Traffic traffic{.messages = calls.messages, .message_bytes = calls.message_bytes};
    const auto counts = http::CountBytes(open.socket.get());
    if (!counts) continue;
    received_ += counts->received - std::exchange(open.received, counts->received);
    traffic.received = counts->received;
    traffic.sent = counts->acknowledged;
    admission_.Observe(id, traffic, observed_);
  }
}

// Returns whether another look is wanted though there may be no connection.
bool GrpcAcceptor::Look() {
  Observe();
  ClearSuspects();
  for (const GrpcAdmission::Closing& closing : admission_.Poll(clock_.Now())) Close(closing);
  Listening(true);
  return options_.tick(
      {.unfinished_bytes = admission_.unfinished_bytes(), .received_bytes = std::exchange(received_, 0)});
}

// A client that cancels a call leaves bytes that no message explains. If there is no stream of which the
// server does not know, there is no unfinished message.
void GrpcAcceptor::ClearSuspects() {
  const Instant now = clock_.Now();
  for (const Id id : admission_.Suspects(now)) {
    const GrpcConnection& connection = *open_.at(id).connection;
    if (connection.open_streams == 0 && connection.streams->open() <= connection.open_calls)
      admission_.Clear(id, now);
  }
}

}  // namespace weir::oip
