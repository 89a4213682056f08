#include "oip/grpc/acceptor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <vector>

namespace weir::oip {
namespace {

// Owns the accepted sockets, as the library would.
class Taken {
 public:
  void Add(int fd) {
    MutexLock lock(mutex_);
    sockets_.emplace_back(fd);
    changed_.NotifyAll();
  }
  void Drop(size_t index) {
    MutexLock lock(mutex_);
    ::shutdown(sockets_[index].get(), SHUT_RDWR);  // as the library does
    sockets_[index] = UniqueFd();
  }
  void WaitFor(size_t count) {
    MutexLock lock(mutex_);
    while (sockets_.size() < count) changed_.Wait(mutex_);
  }
  size_t size() {
    MutexLock lock(mutex_);
    return sockets_.size();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<UniqueFd> sockets_ GUARDED_BY(mutex_);
};

class FakeLibrary final : public GrpcAcceptor::Library {
 public:
  explicit FakeLibrary(std::shared_ptr<Taken> taken) : taken_(std::move(taken)) {}
  void HandleNewConnection(NewConnectionParameters* parameters) override { taken_->Add(parameters->fd); }

 private:
  const std::shared_ptr<Taken> taken_;
};

class GrpcAcceptorOnLoopback : public testing::Test {
 protected:
  void Listen(GrpcAdmission::Options admission, const std::string& address = "127.0.0.1") {
    auto acceptor = GrpcAcceptor::Listen({.address = address,
                                          .port = 0,
                                          .admission = admission,
                                          .refused =
                                              [this](GrpcRefusal refusal, const std::string& who) {
                                                EXPECT_EQ(who, "127.0.0.1");
                                                MutexLock lock(mutex_);
                                                refusals_.push_back(refusal);
                                              },
                                          .tick = [](const GrpcAcceptor::Load&) { return false; }},
                                         clock_);
    ASSERT_TRUE(acceptor) << acceptor.error().message;
    acceptor_ = *std::move(acceptor);
  }
  void Start() { acceptor_->Start(std::make_unique<FakeLibrary>(taken_)); }

  UniqueFd Connect() const {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(acceptor_->port()));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    return socket;
  }
  // Returns whether the server has closed the connection by now.
  static bool IsClosedByNow(const UniqueFd& socket) {
    std::array<char, 1> byte{};
    const ssize_t got = ::recv(socket.get(), byte.data(), byte.size(), MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }
  // Blocks until the server has closed the connection.
  static bool IsClosed(const UniqueFd& socket) {
    std::array<char, 1> byte{};
    const ssize_t got = ::recv(socket.get(), byte.data(), byte.size(), 0);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }
  std::vector<GrpcRefusal> refusals() {
    MutexLock lock(mutex_);
    return refusals_;
  }

  const SteadyClock clock_;
  const std::shared_ptr<Taken> taken_ = std::make_shared<Taken>();
  Mutex mutex_;
  std::vector<GrpcRefusal> refusals_ GUARDED_BY(mutex_);
  std::unique_ptr<GrpcAcceptor> acceptor_;
};

TEST_F(GrpcAcceptorOnLoopback, RefusesConnectionsOverTheLimitAndTakesOthersWhenOneHasEnded) {
  Listen({.max_connections = 2, .max_per_address = 2, .silence = 1h});
  Start();
  const UniqueFd first = Connect(), second = Connect();
  taken_->WaitFor(2);
  EXPECT_TRUE(IsClosed(Connect()));
  EXPECT_EQ(refusals(), std::vector<GrpcRefusal>{GrpcRefusal::kAddress});
  taken_->Drop(0);
  EXPECT_TRUE(IsClosed(first)) << "the descriptor kept by the acceptor must not keep the connection open";
  std::vector<UniqueFd> others;
  while (taken_->size() < 3) others.push_back(Connect());  // the end is noticed a moment later
}

TEST_F(GrpcAcceptorOnLoopback, ClosesASilentConnectionForANewOne) {
  Listen({.max_connections = 2, .max_per_address = 2, .silence = 0s});
  Start();
  const UniqueFd first = Connect();
  taken_->WaitFor(1);
  const UniqueFd second = Connect(), third = Connect();
  EXPECT_TRUE(IsClosed(first));
  taken_->WaitFor(3);
  EXPECT_EQ(refusals(), std::vector<GrpcRefusal>{GrpcRefusal::kSilent});
}

TEST_F(GrpcAcceptorOnLoopback, KnowsItsConnectionsByThePeerAsTheLibraryNamesIt) {
  Listen({});
  Start();
  const UniqueFd client = Connect();
  taken_->WaitFor(1);
  sockaddr_in own{};
  socklen_t size = sizeof own;
  ASSERT_EQ(::getsockname(client.get(), reinterpret_cast<sockaddr*>(&own), &size), 0);
  const std::string peer = "ipv4:127.0.0.1:" + std::to_string(ntohs(own.sin_port));
  EXPECT_NE(acceptor_->Find(peer), nullptr);
  EXPECT_EQ(acceptor_->Find("ipv4:127.0.0.1:1"), nullptr);
}

// A connection takes two descriptors: with one number of free ones the first is missing, with the other the
// second.
class GrpcAcceptorWithFewDescriptors : public GrpcAcceptorOnLoopback,
                                       public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Free, GrpcAcceptorWithFewDescriptors, testing::Values(10, 11));

TEST_P(GrpcAcceptorWithFewDescriptors, ServesAgain) {
  Listen({.silence = 1h});
  std::vector<UniqueFd> clients;
  for (int i = 0; i < 40; ++i) clients.push_back(Connect());  // the kernel holds them
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const UniqueFd highest(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(highest.get() + GetParam());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  Start();
  EXPECT_TRUE(IsClosed(clients.back())) << "all that do not fit are refused";
  EXPECT_FALSE(refusals().empty());
  for (const GrpcRefusal refusal : refusals()) EXPECT_EQ(refusal, GrpcRefusal::kDescriptors);
  EXPECT_GT(taken_->size(), 0u);
  EXPECT_LT(taken_->size(), 10u);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  const size_t taken = taken_->size();
  // The acceptor may still be refusing: it then refuses this connection as well.
  UniqueFd late = Connect();
  while (taken_->size() == taken) {
    if (IsClosedByNow(late)) late = Connect();
  }
}

TEST_F(GrpcAcceptorOnLoopback, ListensOnIpAddressesAlone) {
  const auto acceptor = GrpcAcceptor::Listen({.address = "localhost"}, clock_);
  ASSERT_FALSE(acceptor);
  EXPECT_EQ(acceptor.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace weir::oip
