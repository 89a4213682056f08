#include "http/http_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <semaphore>
#include <utility>

#include "http/rx_timestamps.h"
#include "http/testing/scripted_server.h"

namespace weir::http {
namespace {

using testing::Peer;
using testing::ScriptedServer;

struct Told {
  Result<HttpClientResponse> answer;
  HttpExchange::Stamps stamps;
};

// A request whose end can be waited for.
std::future<Told> Send(HttpTransport& transport, HttpExchange exchange, std::string body = "body") {
  auto promise = std::make_shared<std::promise<Told>>();
  exchange.head = Bytes::Copy(
      "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n");
  exchange.parts = {Bytes::Copy(body)};
  exchange.done = [promise](Result<HttpClientResponse> answer, const HttpExchange::Stamps& stamps) {
    promise->set_value({std::move(answer), stamps});
  };
  transport.Send(std::move(exchange));
  return promise->get_future();
}

class TransportTest : public ::testing::Test {
 protected:
  std::unique_ptr<HttpTransport> Open(const ScriptedServer& server, const ClientOptions& options = {}) {
    return *HttpTransport::Create(*ParseServerUrl(server.url()), options, clock_);
  }
  // Drives a transport without threads.
  void DriveUntil(HttpTransport& transport, const std::function<bool()>& done) const {
    while (!done()) transport.Drive(clock_.Now() + 1ms, {});
  }
  Told DriveToEnd(HttpTransport& transport, std::future<Told> told) const {
    DriveUntil(transport, [&] { return told.wait_for(0s) == std::future_status::ready; });
    return told.get();
  }
  const SteadyClock clock_;
};

void AnswerAll(Peer& peer, int number) {
  while (!peer.ReadRequest().empty()) peer.WriteOk(std::to_string(number));
}

TEST_F(TransportTest, OneConnectionCarriesOneCallAfterTheOther) {
  ScriptedServer server(AnswerAll);
  const auto transport = Open(server);
  for (int i = 0; i < 5; ++i) {
    const Told told = Send(*transport, {}).get();
    ASSERT_TRUE(told.answer) << told.answer.error().message;
    EXPECT_EQ(told.answer->body.text(), "0");
    EXPECT_LE(told.stamps.first_byte, told.stamps.done);
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(TransportTest, AnAnswerIsDoneWhenItCameHoweverLateItIsRead) {
  std::binary_semaphore asked(0), go(0), written(0);
  ScriptedServer server([&](Peer& peer, int) {
    while (!peer.ReadRequest().empty()) {
      asked.release();
      go.acquire();
      peer.WriteOk("here");
      written.release();
    }
  });
  const auto transport = Open(server, {.threads = 0});
  constexpr Duration kReading = 1us;  // of two clocks, one after the other
  bool came_before = false;
  for (int i = 0; i < 100 && !came_before; ++i) {  // the kernel begins to stamp a while after it is asked to
    auto told = Send(*transport, {});
    DriveUntil(*transport, [&] { return asked.try_acquire(); });
    const Instant before = clock_.Now();
    go.release();
    written.acquire();
    const Instant after = clock_.Now();
    const HttpExchange::Stamps stamps = DriveToEnd(*transport, std::move(told)).stamps;
    EXPECT_LE(*stamps.begun, *stamps.written);
    EXPECT_LE(*stamps.written, before);
    EXPECT_GE(*stamps.first_byte, before - kReading);
    EXPECT_LE(*stamps.first_byte, *stamps.done);
    came_before = *stamps.done <= after + kReading;
  }
  EXPECT_TRUE(came_before);
}

TEST_F(TransportTest, AnAnswerOfBeforeTheRequestIsNotItsAnswer) {
  std::binary_semaphore again(0), written(0);
  ScriptedServer server([&](Peer& peer, int) {
    peer.ReadRequest();
    peer.WriteOk("first");
    again.acquire();
    peer.Write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    written.release();
    peer.WaitUntilClosed();
  });
  const auto ask = [&](HttpTransport& transport) {
    return DriveToEnd(transport, Send(transport, {})).answer;
  };
  bool is_refused = false;
  for (int i = 0; i < 100 && !is_refused; ++i) {  // the kernel begins to stamp a while after it is asked to
    const auto transport = Open(server, {.threads = 0});
    ASSERT_TRUE(ask(*transport));
    again.release();
    written.acquire();
    const Instant later = clock_.Now() + 10 * WallClockConverter::kStep;
    while (clock_.Now() < later) continue;
    const Result<HttpClientResponse> second = ask(*transport);
    is_refused = !second;
    if (is_refused) {
      EXPECT_THAT(second.error().message, ::testing::EndsWith("an answer came before the request"));
    }
  }
  EXPECT_TRUE(is_refused);
}

TEST_F(TransportTest, WhatComesBehindALargeBodyIsOfNoAnswer) {
  const std::string body(20'000, 'x');  // more than is read with the head
  std::binary_semaphore asked(0), go(0), written(0);
  ScriptedServer server([&](Peer& peer, int) {
    peer.ReadRequest();
    asked.release();
    go.acquire();
    for (int i = 0; i < 2; ++i) peer.WriteOk(body);
    written.release();
    EXPECT_EQ(peer.Read(1), "");
  });
  const auto transport = Open(server, {.threads = 0});
  for (int i = 0; i < 3; ++i) {
    auto told = Send(*transport, {});
    DriveUntil(*transport, [&] { return asked.try_acquire(); });
    go.release();
    written.acquire();
    const Told answer = DriveToEnd(*transport, std::move(told));
    ASSERT_TRUE(answer.answer) << answer.answer.error().message;
    EXPECT_TRUE(answer.answer->body.text() == body);
  }
  EXPECT_EQ(server.connections(), 3);
}

TEST_F(TransportTest, CallsAtTheSameTimeHaveAConnectionEach) {
  std::counting_semaphore<> arrived(0), go(0);
  ScriptedServer server([&](Peer& peer, int) {
    peer.ReadRequest();
    arrived.release();
    go.acquire();
    peer.WriteOk("");
    peer.WaitUntilClosed();
  });
  const auto transport = Open(server);
  std::vector<std::future<Told>> told;
  for (int i = 0; i < 8; ++i) told.push_back(Send(*transport, {}));
  for (int i = 0; i < 8; ++i) arrived.acquire();  // all are under way at once
  go.release(8);
  for (auto& each : told) EXPECT_TRUE(each.get().answer);
  EXPECT_EQ(server.connections(), 8);
}

TEST_F(TransportTest, CallsBeyondTheMostConnectionsWaitForOne) {
  ScriptedServer server(AnswerAll);
  const auto transport = Open(server, {.connections = 2});
  std::vector<std::future<Told>> told;
  for (int i = 0; i < 20; ++i) told.push_back(Send(*transport, {}));
  for (auto& each : told) EXPECT_TRUE(each.get().answer);
  EXPECT_LE(server.connections(), 2);
}

TEST_F(TransportTest, ThreadsShareTheConnectionsAmongThem) {
  ScriptedServer server(AnswerAll);
  const auto transport = Open(server, {.connections = 3, .threads = 8});
  std::vector<std::future<Told>> told;
  for (int i = 0; i < 50; ++i) told.push_back(Send(*transport, {}));
  for (auto& each : told) EXPECT_TRUE(each.get().answer);
  EXPECT_LE(server.connections(), 3);
}

TEST_F(TransportTest, ACallOnAConnectionThatTheServerHadClosedIsSentAgain) {
  ScriptedServer server([](Peer& peer, int number) {
    if (!peer.ReadRequest().empty()) peer.WriteOk(std::to_string(number));
  });
  const auto transport = Open(server);
  for (int i = 0; i < 20; ++i) {
    const Told told = Send(*transport, {}, std::string(100'000, 'x')).get();
    ASSERT_TRUE(told.answer) << told.answer.error().message;
    EXPECT_EQ(told.answer->body.text(), std::to_string(i));
  }
}

TEST_F(TransportTest, AConnectionThatEndsWithItsAnswerCarriesNoOther) {
  constexpr int kCalls = 20;
  std::binary_semaphore asked(0), go(0), closed(0);
  ScriptedServer server([&](Peer& peer, int) {
    peer.ReadRequest();
    asked.release();
    go.acquire();
    peer.WriteOk("");
    peer.EndAnswers();
    closed.release();
    EXPECT_EQ(peer.Read(1), "");
  });
  const auto transport = Open(server, {.threads = 0});
  int answered = 0;
  std::function<void()> send = [&] {
    HttpExchange exchange{.head = Bytes::Copy("GET / HTTP/1.1\r\n\r\n")};
    exchange.done = [&](const Result<HttpClientResponse>& answer, const auto&) {
      EXPECT_TRUE(answer);
      if (++answered < kCalls) send();
    };
    transport->Send(std::move(exchange));
  };
  send();
  for (int i = 0; i < kCalls; ++i) {
    DriveUntil(*transport, [&] { return asked.try_acquire(); });
    go.release();
    closed.acquire();
    DriveUntil(*transport, [&] { return answered > i; });
  }
  EXPECT_EQ(server.connections(), kCalls);
}

TEST_F(TransportTest, ACallThatTheServerMayHaveBegunIsNotSentAgain) {
  ScriptedServer server([](Peer& peer, int) {
    peer.ReadRequest();
    peer.WriteOk("");
    peer.ReadRequest();  // and dies of it
  });
  const auto transport = Open(server);
  ASSERT_TRUE(Send(*transport, {}).get().answer);
  const Told told = Send(*transport, {}).get();
  ASSERT_FALSE(told.answer);
  EXPECT_EQ(told.answer.error().code, ErrorCode::kIo);
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(TransportTest, AConnectionThatEndsUnusedIsNotTriedTwice) {
  ScriptedServer server([](Peer&, int) {});
  const auto transport = Open(server);
  const Told told = Send(*transport, {}).get();
  ASSERT_FALSE(told.answer);
  EXPECT_EQ(told.answer.error().code, ErrorCode::kIo);
}

TEST_F(TransportTest, NoServerIsAnErrorThatNamesTheAddress) {
  std::string url;
  {
    const ScriptedServer gone(AnswerAll);
    url = gone.url();
  }
  const auto transport = *HttpTransport::Create(*ParseServerUrl(url), {}, clock_);
  const Told told = Send(*transport, {}).get();
  ASSERT_FALSE(told.answer);
  EXPECT_EQ(told.answer.error().code, ErrorCode::kIo);
  EXPECT_EQ(told.answer.error().message, "connect to " + url.substr(7) + ": Connection refused");
}

TEST_F(TransportTest, AConnectionThatFailsAtOnceIsNotToldFromWithinSend) {
  const auto transport =
      *HttpTransport::Create(*ParseServerUrl("http://255.255.255.255:1"), {.threads = 0}, clock_);
  auto told = Send(*transport, {});
  EXPECT_EQ(told.wait_for(0s), std::future_status::timeout);
  EXPECT_EQ(DriveToEnd(*transport, std::move(told)).answer.error().code, ErrorCode::kIo);
}

TEST_F(TransportTest, AServerByNameIsFound) {
  ScriptedServer server(AnswerAll);
  const auto transport = *HttpTransport::Create(
      {.scheme = "http", .host = "localhost", .port = static_cast<uint16_t>(server.port())}, {}, clock_);
  std::vector<std::future<Told>> told;
  for (int i = 0; i < 8; ++i) told.push_back(Send(*transport, {}));
  for (auto& each : told) EXPECT_TRUE(each.get().answer);
}

TEST_F(TransportTest, ANameThatNobodyHasIsAnErrorThatNamesIt) {
  const auto transport = *HttpTransport::Create(*ParseServerUrl("http://no.such.host.invalid:1"), {}, clock_);
  const Told told = Send(*transport, {}).get();
  ASSERT_FALSE(told.answer);
  EXPECT_EQ(told.answer.error().code, ErrorCode::kIo);
  EXPECT_TRUE(told.answer.error().message.starts_with("connect to no.such.host.invalid:1: "));
}

// The bytes and the end of the connection are told of together.
TEST_F(TransportTest, AnAnswerThatTheCloseEndsIsWhole) {
  std::binary_semaphore written(0);
  ScriptedServer server([&](Peer& peer, int) {
    peer.ReadRequest();
    peer.Write("HTTP/1.1 200 OK\r\n\r\nall of it");
    peer.EndAnswers();
    written.release();
    peer.WaitUntilClosed();
  });
  const auto transport = Open(server, {.threads = 0});
  auto told = Send(*transport, {});
  DriveUntil(*transport, [&] { return written.try_acquire(); });
  const Told answer = DriveToEnd(*transport, std::move(told));
  ASSERT_TRUE(answer.answer) << answer.answer.error().message;
  EXPECT_EQ(answer.answer->body.text(), "all of it");
}

TEST_F(TransportTest, TheDeadlineEndsTheCallAndItsConnection) {
  std::binary_semaphore closed(0);
  ScriptedServer server([&](Peer& peer, int) {
    peer.WaitUntilClosed();
    closed.release();
  });
  const auto transport = Open(server);
  const Told told = Send(*transport, {.due = clock_.Now() + 20ms}).get();
  ASSERT_FALSE(told.answer);
  EXPECT_EQ(told.answer.error().code, ErrorCode::kDeadline);
  closed.acquire();
}

TEST_F(TransportTest, ACallThatIsAlreadyLateIsNotSent) {
  ScriptedServer server(AnswerAll);
  const auto transport = Open(server);
  const Told told = Send(*transport, {.due = clock_.Now() - 1s}).get();
  ASSERT_FALSE(told.answer);
  EXPECT_EQ(told.answer.error().code, ErrorCode::kDeadline);
  EXPECT_EQ(server.connections(), 0);
}

TEST_F(TransportTest, DeadlinesHoldForCallsThatWaitForAConnection) {
  ScriptedServer server([](Peer& peer, int) { peer.WaitUntilClosed(); });
  const auto transport = Open(server, {.connections = 1});
  auto first = Send(*transport, {.due = clock_.Now() + 60s});
  auto second = Send(*transport, {.due = clock_.Now() + 10ms});
  EXPECT_EQ(second.get().answer.error().code, ErrorCode::kDeadline);
  EXPECT_EQ(first.wait_for(0s), std::future_status::timeout);
}

TEST_F(TransportTest, TheCallersWishEndsTheCallAndItsConnection) {
  std::binary_semaphore arrived(0), closed(0);
  ScriptedServer server([&](Peer& peer, int) {
    peer.ReadRequest();
    arrived.release();
    peer.WaitUntilClosed();
    closed.release();
  });
  const auto transport = Open(server);
  std::stop_source caller;
  auto told = Send(*transport, {.cancelled = caller.get_token()});
  arrived.acquire();
  caller.request_stop();
  EXPECT_EQ(told.get().answer.error().code, ErrorCode::kCancelled);
  closed.acquire();
}

TEST_F(TransportTest, ACallCancelledBeforeItIsSentOpensNoConnection) {
  ScriptedServer server(AnswerAll);
  const auto transport = Open(server);
  std::stop_source caller;
  caller.request_stop();
  EXPECT_EQ(Send(*transport, {.cancelled = caller.get_token()}).get().answer.error().code,
            ErrorCode::kCancelled);
  EXPECT_EQ(server.connections(), 0);
}

TEST_F(TransportTest, TheEndAnswersWhatIsUnderWayAndWhatWaits) {
  ScriptedServer server([](Peer& peer, int) { peer.WaitUntilClosed(); });
  auto transport = Open(server, {.connections = 1});
  auto carried = Send(*transport, {}), waiting = Send(*transport, {});
  transport.reset();
  EXPECT_EQ(carried.get().answer.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(waiting.get().answer.error().code, ErrorCode::kCancelled);
}

TEST_F(TransportTest, WhatIsSentWhileItEndsIsAnsweredToo) {
  ScriptedServer server([](Peer& peer, int) { peer.WaitUntilClosed(); });
  auto transport = Open(server, {.threads = 0});
  HttpTransport& alive = *transport;
  int told = 0;
  std::function<void(Duration, int)> send = [&](Duration left, int more) {
    HttpExchange exchange{.head = Bytes::Copy("GET / HTTP/1.1\r\n\r\n"), .due = clock_.Now() + left};
    exchange.done = [&, more](const Result<HttpClientResponse>& answer, const auto&) {
      EXPECT_FALSE(answer);
      ++told;
      if (more > 0) send(1h, more - 1);
    };
    alive.Send(std::move(exchange));
  };
  send(1h, 3);
  send(-1s, 3);  // too late, which it is told from the loop
  transport.reset();
  EXPECT_EQ(told, 8);
}

TEST_F(TransportTest, ARetryTakesNoMoreConnectionsThanThereMayBe) {
  std::atomic<int> open = 0, most = 0;
  ScriptedServer server([&](Peer& peer, int) {  // a keep-alive that is none
    const int now = ++open;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
    if (!peer.ReadRequest().empty()) peer.WriteOk("");
    --open;
  });
  const auto transport = Open(server, {.connections = 2});
  std::vector<std::future<Told>> told;
  for (int i = 0; i < 200; ++i) told.push_back(Send(*transport, {}, std::string(1000, 'x')));
  for (auto& each : told) each.wait();
  EXPECT_LE(most, 4);  // a script may see the end of its connection late
}

TEST_F(TransportTest, UrgentDataEndTheConnection) {
  ScriptedServer server([](Peer& peer, int) {
    peer.ReadRequest();
    peer.Write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
    peer.WriteUrgent('!');
    peer.Write("cd");
    peer.WaitUntilClosed();
  });
  const auto transport = Open(server);
  const Told told = Send(*transport, {}).get();
  ASSERT_FALSE(told.answer);
  EXPECT_EQ(told.answer.error().code, ErrorCode::kCorrupt);
}

TEST_F(TransportTest, AnAnswerThatComesBeforeTheRequestIsReadIsTheAnswer) {
  ScriptedServer server([](Peer& peer, int) {
    peer.Write("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
    peer.EndAnswers();
    peer.WaitUntilClosed();
  });
  const auto transport = Open(server);
  const Told told = Send(*transport, {}, std::string(20 << 20, 'x')).get();
  ASSERT_TRUE(told.answer) << told.answer.error().message;
  EXPECT_EQ(told.answer->status, 413);
}

TEST_F(TransportTest, AnAnswerThatIsNotHttpIsCorrupt) {
  ScriptedServer server([](Peer& peer, int) {
    peer.ReadRequest();
    peer.Write("220 ready\r\n");
    peer.WaitUntilClosed();
  });
  const auto transport = Open(server);
  EXPECT_EQ(Send(*transport, {}).get().answer.error().code, ErrorCode::kCorrupt);
}

TEST_F(TransportTest, LargeBodiesArriveWholeBothWays) {
  std::string body(8 << 20, '\0');
  for (size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 2654435761U >> 13);
  ScriptedServer server([](Peer& peer, int) {
    for (std::string request; !(request = peer.ReadRequest()).empty();)
      peer.WriteOk(std::string_view(request).substr(request.find("\r\n\r\n") + 4));
  });
  const auto transport = Open(server);
  for (int i = 0; i < 3; ++i) {
    const Told told = Send(*transport, {}, body).get();
    ASSERT_TRUE(told.answer) << told.answer.error().message;
    EXPECT_TRUE(told.answer->body.text() == body);
  }
}

TEST_F(TransportTest, ThePayloadIsLetGoOfOnceItIsSent) {
  ScriptedServer server(AnswerAll);
  const auto transport = Open(server);
  for (int i = 0; i < 2; ++i) {  // on a new connection and on a used one
    std::promise<bool> let_go;
    auto payload = std::make_shared<std::string>("payload");
    HttpExchange exchange{.head = Bytes::Copy("POST / HTTP/1.1\r\nContent-Length: 7\r\n\r\n")};
    exchange.parts = {Bytes::Wrap(payload, reinterpret_cast<std::byte*>(payload->data()), payload->size())};
    exchange.done = [&let_go, weak = std::weak_ptr(payload)](const auto&, const auto&) {
      let_go.set_value(weak.expired());
    };
    payload.reset();
    transport->Send(std::move(exchange));
    EXPECT_TRUE(let_go.get_future().get());
  }
}

TEST_F(TransportTest, WhoIsToldMaySendAgainAtOnce) {
  ScriptedServer server(AnswerAll);
  const auto transport = Open(server);
  std::promise<int> ended;
  std::function<void(int)> next = [&](int left) {
    HttpExchange exchange{.head = Bytes::Copy("GET / HTTP/1.1\r\n\r\n")};
    exchange.done = [&, left](const Result<HttpClientResponse>& answer, const auto&) {
      if (!answer || left == 0) return ended.set_value(left);
      next(left - 1);
    };
    transport->Send(std::move(exchange));
  };
  next(1000);
  EXPECT_EQ(ended.get_future().get(), 0);
  EXPECT_EQ(server.connections(), 1);
}

}  // namespace
}  // namespace weir::http
