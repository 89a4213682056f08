#include "http/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/mutex.h"

namespace weir::http {
namespace {

// A client on loopback that blocks.
class Client {
 public:
  explicit Client(int port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  bool connected() const { return connected_; }

  void Send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      text.remove_prefix(static_cast<size_t>(sent));
    }
  }
  // Up to and with `end`; what there is when the server closes first.
  std::string ReadUntil(std::string_view end) {
    while (waiting_.find(end) == waiting_.npos && Receive()) {
    }
    return Cut(std::min(waiting_.find(end), waiting_.size() - std::min(end.size(), waiting_.size())) +
               end.size());
  }
  // An answer: its head and its body.
  std::pair<std::string, std::string> ReadAnswer() {
    const std::string head = ReadUntil("\r\n\r\n");
    const size_t at = head.find("Content-Length: ");
    const size_t size = at == head.npos ? 0 : std::stoul(head.substr(at + 16));
    while (waiting_.size() < size && Receive()) {
    }
    return {head, Cut(size)};
  }
  std::string ReadToEnd() {
    while (Receive()) {
    }
    return Cut(waiting_.size());
  }
  void Close() { fd_ = UniqueFd(); }
  void Reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    Close();
  }
  void EndSending() { ::shutdown(fd_.get(), SHUT_WR); }

 private:
  bool Receive() {
    char buffer[65536];
    const ssize_t size = recv(fd_.get(), buffer, sizeof buffer, 0);
    if (size > 0) waiting_.append(buffer, static_cast<size_t>(size));
    return size > 0;
  }
  std::string Cut(size_t size) {
    std::string text = waiting_.substr(0, size);
    waiting_.erase(0, text.size());
    return text;
  }

  UniqueFd fd_;
  bool connected_ = false;
  std::string waiting_;
};

// Requests that a test answers when it likes.
class Held {
 public:
  void Take(HttpRequest request, HttpResponder responder) {
    MutexLock lock(mutex_);
    requests_.emplace_back(std::move(request), std::move(responder));
    changed_.NotifyAll();
  }
  std::pair<HttpRequest, HttpResponder> Next() {
    MutexLock lock(mutex_);
    while (requests_.empty()) changed_.Wait(mutex_);
    auto next = std::move(requests_.front());
    requests_.erase(requests_.begin());
    return next;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::pair<HttpRequest, HttpResponder>> requests_ GUARDED_BY(mutex_);
};

void Echo(HttpRequest request, HttpResponder responder) {
  HttpResponse reply{.content_type = "text/plain", .body = {request.body}};
  if (request.body.empty()) reply.body = {Bytes::Copy(request.path)};
  responder.Send(std::move(reply));
}

std::string Post(std::string_view body, std::string_view more = "") {
  return "POST /p HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         std::string(more) + "\r\n" + std::string(body);
}

class HttpServerOnLoopback : public testing::Test {
 protected:
  std::unique_ptr<HttpServer> Serve(HttpServer::Handler handler, HttpServer::Options options = {}) {
    options.port = 0;
    options.on_event = [this](HttpEvent event) { ++events_[static_cast<size_t>(event)]; };
    auto server = HttpServer::Create(std::move(options), std::move(handler), clock_);
    EXPECT_TRUE(server);
    return *std::move(server);
  }
  HttpServer::Handler Hold() {
    return [this](HttpRequest request, HttpResponder responder) {
      held_.Take(std::move(request), std::move(responder));
    };
  }

  static bool IsProbe(const HttpRequest& request) { return request.path == "/health"; }
  int CountOf(HttpEvent event) const { return events_[static_cast<size_t>(event)]; }

  ManualClock clock_;
  Held held_;

 private:
  std::array<std::atomic<int>, 6> events_{};
};

TEST_F(HttpServerOnLoopback, AnswersManyRequestsOnOneConnection) {
  const auto server = Serve(Echo);
  Client client(server->port());
  for (int i = 0; i < 100; ++i) {
    client.Send(Post(std::to_string(i)));
    const auto [head, body] = client.ReadAnswer();
    EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n")) << head;
    EXPECT_EQ(body, std::to_string(i));
  }
}

TEST_F(HttpServerOnLoopback, RefusesOtherSitesWhateverItServes) {
  std::atomic<int> refused = 0;
  const auto server = Serve(Echo, {.on_refused = [&](const std::string&) { ++refused; }});
  Client rebound(server->port()), page(server->port());
  rebound.Send("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  EXPECT_TRUE(rebound.ReadAnswer().first.starts_with("HTTP/1.1 403 "));
  page.Send("GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n");
  EXPECT_TRUE(page.ReadAnswer().first.starts_with("HTTP/1.1 403 "));
  EXPECT_EQ(refused, 2);
}

TEST_F(HttpServerOnLoopback, TellsOfWhatIsNoHttp) {
  const auto server = Serve(Echo);
  Client client(server->port());
  client.Send("nonsense\r\n\r\n");
  EXPECT_TRUE(client.ReadToEnd().starts_with("HTTP/1.1 400 "));
  EXPECT_EQ(CountOf(HttpEvent::kMalformed), 1);
}

TEST_F(HttpServerOnLoopback, AnswersPipelinedRequestsInTheirOrder) {
  const auto server = Serve(Hold());
  Client client(server->port());
  client.Send(
      "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\nGET /b HTTP/1.1\r\nHost: localhost\r\n\r\nGET /c "
      "HTTP/1.1\r\nHost: localhost\r\n\r\n");
  auto a = held_.Next(), b = held_.Next(), c = held_.Next();
  for (auto* each : {&c, &a, &b}) Echo(std::move(each->first), std::move(each->second));
  EXPECT_EQ(client.ReadAnswer().second, "/a");
  EXPECT_EQ(client.ReadAnswer().second, "/b");
  EXPECT_EQ(client.ReadAnswer().second, "/c");
}

TEST_F(HttpServerOnLoopback, TakesNoMoreOfAPipelineThanItAnswers) {
  const auto server = Serve(Echo);
  Client client(server->port());
  std::string all;
  for (int i = 0; i < 1000; ++i) all += Post(std::to_string(i));
  std::jthread sender([&] { client.Send(all); });
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(client.ReadAnswer().second, std::to_string(i));
}

TEST_F(HttpServerOnLoopback, CarriesLargeBodiesBothWaysToClientsThatReadLate) {
  const auto server = Serve(Echo);
  std::string body(20 << 20, 'x');
  for (size_t i = 0; i < body.size(); i += 997) body[i] = static_cast<char>('a' + i % 26);
  Client client(server->port());
  std::jthread sender([&] { client.Send(Post(body) + Post(body)); });
  EXPECT_EQ(client.ReadAnswer().second, body);
  EXPECT_EQ(client.ReadAnswer().second, body);
}

TEST_F(HttpServerOnLoopback, SharesItsConnectionsOutToItsThreads) {
  const auto server = Serve(
      [](HttpRequest, HttpResponder responder) {
        char name[16] = {};
        pthread_getname_np(pthread_self(), name, sizeof name);
        responder.Send({.body = {Bytes::Copy(std::string_view(name))}});
      },
      {.threads = 2});
  std::vector<std::string> names;
  std::vector<Client> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back(server->port());
    clients.back().Send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    names.push_back(clients.back().ReadAnswer().second);
  }
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"http-0", "http-0", "http-1", "http-1"}));
}

TEST_F(HttpServerOnLoopback, WaitsForTheBodyOfAClientThatAsksFirst) {
  const auto server = Serve(Echo);
  Client client(server->port());
  client.Send("POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("ok");
  EXPECT_EQ(client.ReadAnswer().second, "ok");
}

TEST_F(HttpServerOnLoopback, ClosesWhenTheClientWishesIt) {
  const auto server = Serve(Echo);
  Client one(server->port());
  one.Send(
      "GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\nGET /never HTTP/1.1\r\nHost: "
      "localhost\r\n\r\n");
  const std::string answer = one.ReadToEnd();
  EXPECT_NE(answer.find("Connection: close\r\n"), answer.npos);
  EXPECT_TRUE(answer.ends_with("\r\n\r\n/x"));
  Client old(server->port());
  old.Send("GET /y HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(old.ReadToEnd().ends_with("\r\n\r\n/y"));
}

TEST_F(HttpServerOnLoopback, TellsAClientWhatItRefusedThoughItSendsOn) {
  const auto server = Serve(Echo, {.max_body = 1000});
  Client client(server->port());
  client.Send(Post(std::string(3 << 20, 'x')));
  const std::string answer = client.ReadToEnd();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 413 ")) << answer;
  EXPECT_TRUE(answer.ends_with(R"({"error":"the body is larger than 1000 bytes"})")) << answer;
}

TEST_F(HttpServerOnLoopback, RefusesConnectionsBeyondTheLimit) {
  const auto server = Serve(Echo, {.max_connections = 1});
  Client first(server->port());
  first.Send(Post("a"));
  EXPECT_EQ(first.ReadAnswer().second, "a");
  first.Send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n");
  Client second(server->port());
  second.Send(Post("x"));
  const std::string answer = second.ReadToEnd();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
  EXPECT_NE(answer.find("Retry-After: 1\r\n"), answer.npos);
  EXPECT_EQ(CountOf(HttpEvent::kTooManyConnections), 1);
  first.Send("b");
  EXPECT_EQ(first.ReadAnswer().second, "b");
}

TEST_F(HttpServerOnLoopback, RefusesABodyBeyondTheLimitOfConnectionsBeforeItComes) {
  const auto server = Serve(Echo, {.max_connections = 1});
  Client first(server->port()), second(server->port());
  first.Send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n");
  second.Send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_TRUE(second.ReadToEnd().starts_with("HTTP/1.1 503 "));
}

TEST_F(HttpServerOnLoopback, AnswersProbesBeyondTheLimitOfConnectionsHoweverManyHoldOn) {
  HttpServer::Options options{.max_connections = 4, .is_probe = IsProbe};
  const auto server = Serve(Echo, options);
  std::vector<Client> holding;
  for (int i = 0; i < 4 + 3 * options.spare_connections(); ++i) {
    holding.emplace_back(server->port());
    holding.back().Send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n");
    holding.emplace_back(server->port());  // says nothing
  }
  for (int i = 0; i < 20; ++i) {
    Client probe(server->port());
    probe.Send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const std::string answer = probe.ReadToEnd();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
    EXPECT_NE(answer.find("Connection: close\r\n"), answer.npos) << answer;
  }
  EXPECT_GT(CountOf(HttpEvent::kTooManyConnections), 0);
}

TEST_F(HttpServerOnLoopback, ClosesTheConnectionThatHasBeenIdleForLongestForANewOne) {
  const auto server = Serve(Echo, {.max_connections = 2});
  Client first(server->port());
  first.Send(Post("a"));
  first.ReadAnswer();
  clock_.Advance(1s);
  Client second(server->port());
  second.Send(Post("b"));
  second.ReadAnswer();
  first.Send(Post("a"));  // the second has been idle for longer now
  first.ReadAnswer();
  clock_.Advance(1s);
  Client third(server->port());
  third.Send(Post("c"));
  EXPECT_EQ(third.ReadAnswer().second, "c");
  EXPECT_EQ(CountOf(HttpEvent::kIdleClosed), 1);
  EXPECT_EQ(second.ReadToEnd(), "");
  first.Send(Post("a"));
  EXPECT_EQ(first.ReadAnswer().second, "a");
}

TEST_F(HttpServerOnLoopback, ClosesIdleConnectionsOfAllItsThreads) {
  const auto server = Serve(Echo, {.threads = 3, .max_connections = 3});
  std::vector<Client> clients;
  for (int i = 0; i < 9; ++i) {
    clients.emplace_back(server->port());
    clients.back().Send(Post("a"));
    ASSERT_EQ(clients.back().ReadAnswer().second, "a") << i;
    clock_.Advance(1s);
  }
  EXPECT_EQ(CountOf(HttpEvent::kIdleClosed), 6);
}

TEST_F(HttpServerOnLoopback, CutsABodyThatComesTooSlowly) {
  const auto server = Serve(Echo);
  Client slow(server->port());
  slow.Send("POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n");
  slow.ReadUntil("\r\n\r\n");
  Client last(server->port());
  last.Send(Post("x"));  // once this is answered, the thread has done with all before
  last.ReadAnswer();
  clock_.Advance(22s);
  slow.Send("x");
  EXPECT_TRUE(slow.ReadToEnd().starts_with("HTTP/1.1 408 "));
  EXPECT_EQ(CountOf(HttpEvent::kTooSlow), 1);
}

TEST_F(HttpServerOnLoopback, RefusesBodiesBeyondTheBudget) {
  const auto server = Serve(Hold(), {.max_bytes_in_flight = 1000});
  Client first(server->port()), second(server->port());
  first.Send(Post(std::string(600, 'x')));
  auto [request, responder] = held_.Next();
  second.Send(Post(std::string(600, 'y')));
  EXPECT_TRUE(second.ReadToEnd().starts_with("HTTP/1.1 503 "));
  Echo(std::move(request), std::move(responder));
  EXPECT_EQ(first.ReadAnswer().second.size(), 600u);
}

TEST_F(HttpServerOnLoopback, AsksForAStopWhenTheClientLeaves) {
  const auto server = Serve(Hold());
  Client client(server->port());
  client.Send(Post("x"));
  auto [request, responder] = held_.Next();
  std::promise<void> left;
  const std::stop_callback on_left(request.left, [&] { left.set_value(); });
  client.Close();
  left.get_future().wait();
  std::promise<void> sent;
  responder.Send({}, [&](Instant) { sent.set_value(); });
  sent.get_future().wait();
}

TEST_F(HttpServerOnLoopback, AnswersAClientThatSendsNoMoreAndCloses) {
  const auto server = Serve(Hold());
  Client client(server->port());
  client.Send(Post("x") + Post("y"));
  auto x = held_.Next(), y = held_.Next();
  client.EndSending();
  EXPECT_EQ(client.ReadUntil("HTTP/1.1 "), "HTTP/1.1 ") << "the server has seen it";
  EXPECT_FALSE(x.first.left.stop_requested());
  Echo(std::move(y.first), std::move(y.second));
  Echo(std::move(x.first), std::move(x.second));
  const std::string rest = client.ReadToEnd();
  EXPECT_TRUE(rest.starts_with("200 OK\r\n")) << rest;
  EXPECT_NE(rest.find("\r\n\r\nxHTTP/1.1 200 OK\r\n"), rest.npos) << rest;
  EXPECT_TRUE(rest.ends_with("\r\n\r\ny")) << rest;
}

TEST_F(HttpServerOnLoopback, BeginsNoPipelinedRequestOfAClientThatLeft) {
  const auto server = Serve(Hold());
  Client client(server->port());
  std::string all;
  for (int i = 0; i < 100; ++i) all += Post("x");
  client.Send(all);
  std::vector<std::pair<HttpRequest, HttpResponder>> begun;
  for (int i = 0; i < 32; ++i) begun.push_back(held_.Next());
  std::promise<void> left;
  const std::stop_callback on_left(begun.back().first.left, [&] { left.set_value(); });
  client.Reset();
  left.get_future().wait();
  begun.clear();  // answers them
  Client other(server->port());
  other.Send(Post("other"));
  EXPECT_EQ(held_.Next().first.body.text(), "other");
}

TEST_F(HttpServerOnLoopback, BeginsNoPipelinedRequestAfterAnAnswerShowsThatTheClientLeft) {
  const auto server = Serve(Hold());
  Client client(server->port());
  std::string all;
  for (int i = 0; i < 100; ++i) all += Post("x");
  client.Send(all);
  std::vector<std::pair<HttpRequest, HttpResponder>> begun;
  for (int i = 0; i < 32; ++i) begun.push_back(held_.Next());
  std::promise<void> left;
  const std::stop_callback on_left(begun.back().first.left, [&] { left.set_value(); });
  client.Close();  // what it sent before waits in front of its end
  begun.erase(begun.begin());
  left.get_future().wait();
  begun.clear();
  Client other(server->port());
  other.Send(Post("other"));
  int more = 0;
  while (held_.Next().first.body.text() != "other") ++more;
  EXPECT_LE(more, 1) << "the place of the one that was answered may have been taken before the reset came";
}

TEST_F(HttpServerOnLoopback, AnswersWhatTheHandlerDropped) {
  const auto server = Serve([](HttpRequest, HttpResponder) {});
  Client client(server->port());
  client.Send(Post("x"));
  const auto [head, body] = client.ReadAnswer();
  EXPECT_TRUE(head.starts_with("HTTP/1.1 500 ")) << head;
  EXPECT_NE(body.find("error"), body.npos);
}

TEST_F(HttpServerOnLoopback, CutsAClientThatStalls) {
  const auto server = Serve(Echo, {.timeouts = {.header = 10s, .stall = 30s, .idle = 120s, .least_rate = 0}});
  Client head(server->port()), body(server->port()), idle(server->port()), last(server->port());
  idle.Send(Post("x"));
  idle.ReadAnswer();
  head.Send("GET / HT");
  body.Send("POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n");
  body.ReadUntil("\r\n\r\n");
  last.Send(Post("x"));  // once this is answered, the thread has done with all before
  last.ReadAnswer();
  clock_.Advance(31s);
  EXPECT_TRUE(body.ReadToEnd().starts_with("HTTP/1.1 408 "));
  clock_.Advance(90s);
  EXPECT_EQ(idle.ReadToEnd(), "");
  const std::string answer = head.ReadToEnd();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 408 ")) << answer;
}

TEST_F(HttpServerOnLoopback, FinishesWhatIsUnderWayWhenItStops) {
  const auto server = Serve(Hold());
  Client client(server->port());
  client.Send(Post("x"));
  auto [request, responder] = held_.Next();
  server->StopAccepting();
  EXPECT_FALSE(server->WaitUntilIdle(SteadyClock().Now() + 1ms));
  Echo(std::move(request), std::move(responder));
  const std::string answer = client.ReadToEnd();
  EXPECT_NE(answer.find("Connection: close\r\n"), answer.npos);
  EXPECT_TRUE(answer.ends_with("\r\n\r\nx"));
  EXPECT_TRUE(server->WaitUntilIdle(SteadyClock().Now() + 60s));
}

TEST_F(HttpServerOnLoopback, RefusesNewConnectionsInWordsUntilItHasStopped) {
  auto server = Serve(Hold(), {.is_probe = IsProbe});
  const int port = server->port();
  Client client(port);
  client.Send(Post("x"));
  auto [request, responder] = held_.Next();
  server->StopAccepting();
  for (int i = 0; i < 3; ++i) {
    Client late(port);
    late.Send(Post("y"));
    const std::string answer = late.ReadToEnd();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
    EXPECT_NE(answer.find("the server is stopping"), answer.npos) << answer;
  }
  Client probe(port);
  probe.Send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  auto asked = held_.Next();
  Echo(std::move(asked.first), std::move(asked.second));
  EXPECT_TRUE(probe.ReadToEnd().starts_with("HTTP/1.1 200 "));
  Client silent(port);
  Echo(std::move(request), std::move(responder));
  EXPECT_TRUE(server->WaitUntilIdle(SteadyClock().Now() + 60s)) << "new connections do not hold it up";
  server.reset();
  EXPECT_FALSE(Client(port).connected());
}

TEST_F(HttpServerOnLoopback, WaitsForNoHalfRequestWhenItStops) {
  const auto server = Serve(Echo);
  Client half(server->port()), last(server->port());
  half.Send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf");
  last.Send(Post("x"));  // once this is answered, the thread has done with all before
  last.ReadAnswer();
  server->StopAccepting();
  EXPECT_TRUE(half.ReadToEnd().starts_with("HTTP/1.1 503 "));
}

TEST_F(HttpServerOnLoopback, MayBeGoneBeforeAnAnswerComes) {
  auto server = Serve(Hold());
  Client client(server->port());
  client.Send(Post("x"));
  auto [request, responder] = held_.Next();
  server.reset();
  EXPECT_TRUE(request.left.stop_requested());
  bool sent = false;
  responder.Send({}, [&](Instant) { sent = true; });
  EXPECT_TRUE(sent);
  EXPECT_EQ(client.ReadToEnd(), "");
}

TEST_F(HttpServerOnLoopback, SaysWhichAddressItCannotHave) {
  const auto server = Serve(Echo);
  const auto second = HttpServer::Create({.port = server->port()}, Echo, clock_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, "HTTP port " + std::to_string(server->port()) +
                                        " is in use on 127.0.0.1; choose another with --http-port");
  const auto metrics = HttpServer::Create(
      {.name = "metrics", .flag_prefix = "--metrics", .port = server->port()}, Echo, clock_);
  ASSERT_FALSE(metrics);
  EXPECT_EQ(metrics.error().message, "metrics port " + std::to_string(server->port()) +
                                         " is in use on 127.0.0.1; choose another with --metrics-port");
  const auto nowhere = HttpServer::Create({.address = "nowhere"}, Echo, clock_);
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().message.find("--http-address nowhere: not an IP address"), std::string::npos);
  const auto foreign = HttpServer::Create({.address = "192.0.2.1", .port = 0}, Echo, clock_);
  ASSERT_FALSE(foreign);
  EXPECT_NE(foreign.error().message.find("192.0.2.1: Cannot assign requested address"), std::string::npos);
  EXPECT_NE(foreign.error().message.find("--http-address"), std::string::npos);
}

}  // namespace
}  // namespace weir::http
