#include "launch/process/ready.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/file.h"

namespace weir::launch {
namespace {

using testing::HasSubstr;

// A listener on a free port of this machine's loopback, which gives one caller one answer.
class Answerer {
 public:
  explicit Answerer(std::string answer) {
    socket_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_.get(), 1), 0);
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/v2/health/ready";
    thread_ = std::jthread([this, answer = std::move(answer)] {
      const UniqueFd caller(::accept(socket_.get(), nullptr, nullptr));
      char buffer[4096];
      const ssize_t got = ::recv(caller.get(), buffer, sizeof buffer, 0);
      request_.assign(buffer, static_cast<size_t>(std::max<ssize_t>(got, 0)));
      ::send(caller.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    });
  }
  const std::string& url() const { return url_; }
  std::string Request() {
    thread_.join();
    return request_;
  }

 private:
  UniqueFd socket_;
  std::string url_, request_;
  std::jthread thread_;
};

TEST(AskHttp, IsContentWithAGoodStatus) {
  Answerer server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  const Status asked = AskHttp(server.url(), 60s);
  EXPECT_TRUE(asked.has_value()) << asked.error().message;
  EXPECT_THAT(server.Request(), testing::StartsWith("GET /v2/health/ready HTTP/1.1\r\nHost: 127.0.0.1:"));
}

TEST(AskHttp, SaysWhatCameInstead) {
  Answerer busy("HTTP/1.1 503 Service Unavailable\r\n\r\n");
  EXPECT_THAT(AskHttp(busy.url(), 60s).error().message,
              HasSubstr("answered HTTP/1.1 503 Service Unavailable"));
  Answerer told("HTTP/1.1 503 Service Unavailable\r\n\r\n{\"error\": \"model m is not loaded\"}");
  EXPECT_THAT(AskHttp(told.url(), 60s).error().message, HasSubstr("503 Service Unavailable: model m is"));
  Answerer other("\x01\xff\xff");
  EXPECT_THAT(AskHttp(other.url(), 60s).error().message, HasSubstr("is not HTTP"));
  Answerer silent("");
  EXPECT_THAT(AskHttp(silent.url(), 60s).error().message, HasSubstr("answered nothing"));
}

TEST(AskHttp, SaysThatNobodyListens) {
  const Status asked = AskHttp("http://127.0.0.1:1/", 60s);
  ASSERT_FALSE(asked.has_value());
  EXPECT_EQ(asked.error().message, "http://127.0.0.1:1/: connect: Connection refused");
}

TEST(AskReady, TakesAConnectionForAnAnswerWhereThereIsNoHttp) {
  Answerer server("");
  const std::string place = server.url().substr(7, server.url().find('/', 7) - 7);
  const Status asked = AskReady("tcp://" + place, 60s);
  EXPECT_TRUE(asked.has_value()) << asked.error().message;
  EXPECT_EQ(AskReady("tcp://127.0.0.1:1", 60s).error().message,
            "tcp://127.0.0.1:1: connect: Connection refused");
  EXPECT_THAT(AskReady("http://127.0.0.1:1/", 60s).error().message, HasSubstr("refused"));
}

TEST(AskHttp, WaitsNoLongerThanItsTime) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(socket.get(), 1), 0);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  const Status asked = AskHttp("http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)), 10ms);
  ASSERT_FALSE(asked.has_value());
  EXPECT_EQ(asked.error().code, ErrorCode::kDeadline);
}

TEST(ParseHttpUrl, TakesHostPortAndPathApart) {
  const auto check = [](const std::string& url, const char* host, const char* port, const char* path) {
    const auto parsed = ParseHttpUrl(url);
    ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
    EXPECT_EQ(parsed->host, host) << url;
    EXPECT_EQ(parsed->port, port) << url;
    EXPECT_EQ(parsed->path, path) << url;
  };
  check("http://localhost:8000/v2/health/ready", "localhost", "8000", "/v2/health/ready");
  check("http://10.0.0.1", "10.0.0.1", "80", "/");
  check("http://[::1]:8000/x", "::1", "8000", "/x");
  check("http://[fe80::1]/", "fe80::1", "80", "/");
}

TEST(ParseHttpUrl, NamesWhatIsWrong) {
  for (const char* url :
       {"", "https://host", "host:80", "http://", "http://:80", "http://host:", "http://host:80a",
        "http://host:123456", "http://[::1:80", "http://ho st/", "http://host/a\r\nX: y"}) {
    const auto parsed = ParseHttpUrl(url);
    ASSERT_FALSE(parsed.has_value()) << url;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace weir::launch
