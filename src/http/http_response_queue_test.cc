#include "http/http_response_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace weir::http {
namespace {

constexpr Instant kNow(1s);

HttpResponse Said(std::string_view body) { return {.body = {Bytes::Copy(body)}}; }

// Sends the ready responses in pieces of at most `piece` bytes.
std::string Send(HttpResponseQueue& answers, size_t piece = std::string::npos) {
  std::string text;
  std::array<std::span<const std::byte>, 3> parts;
  while (const size_t count = answers.Gather(parts)) {
    std::string gathered;
    for (size_t i = 0; i < count; ++i)
      gathered.append(reinterpret_cast<const char*>(parts[i].data()), parts[i].size());
    gathered.resize(std::min(piece, gathered.size()));
    text += gathered;
    answers.Advance(gathered.size(), kNow);
    if (answers.closed()) break;
  }
  return text;
}

TEST(HttpResponseQueue, AreWrittenInTheOrderOfTheirRequests) {
  HttpResponseQueue answers;
  const uint64_t first = answers.Open({}), second = answers.Open({});
  answers.Put(second, Said("two"), {});
  EXPECT_EQ(Send(answers), "");
  answers.Put(first, Said("one"), {});
  EXPECT_EQ(Send(answers),
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\none"
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\ntwo");
  EXPECT_EQ(answers.open(), 0u);
}

TEST(HttpResponseQueue, CountAgainstTheBudgetUntilTheyAreSent) {
  const auto budget = std::make_shared<ByteBudget>(10);
  HttpResponseQueue answers;
  const uint64_t number = answers.Open({});
  answers.Put(number, Said("one"), {}, budget);
  EXPECT_GT(budget->used(), 10u);
  EXPECT_FALSE(budget->Take(1));
  Send(answers);
  EXPECT_EQ(budget->used(), 0u);
}

TEST(HttpResponseQueue, AreTheSameInWhateverPiecesTheyGo) {
  const auto all = [](size_t piece) {
    HttpResponseQueue answers;
    const uint64_t first = answers.Open({}), second = answers.Open({.close = true});
    answers.Put(first,
                {.status = 503,
                 .headers = {{"Retry-After", "1"}},
                 .body = {Bytes::Copy("a"), Bytes(), Bytes::Copy("bcd"), Bytes::Copy("e")}},
                {});
    answers.Put(second, Said("last"), {});
    return Send(answers, piece);
  };
  const std::string whole = all(std::string::npos);
  EXPECT_NE(whole.find("HTTP/1.1 503 Service Unavailable\r\n"), whole.npos);
  EXPECT_NE(whole.find("Content-Length: 5\r\nRetry-After: 1\r\n\r\nabcde"), whole.npos);
  EXPECT_TRUE(whole.ends_with("Connection: close\r\n\r\nlast"));
  for (size_t piece = 1; piece < whole.size(); ++piece) EXPECT_EQ(all(piece), whole) << piece;
}

TEST(HttpResponseQueue, MayBeginBeforeTheyAreThere) {
  HttpResponseQueue answers;
  EXPECT_TRUE(answers.EarlyBytes().empty());
  const uint64_t number = answers.Open({});
  const std::span<const std::byte> early = answers.EarlyBytes();
  const std::string text(reinterpret_cast<const char*>(early.data()), early.size());
  answers.Advance(early.size(), kNow);
  EXPECT_TRUE(answers.EarlyBytes().empty()) << "once";
  answers.Put(number, Said("one"), {});
  EXPECT_EQ(text + Send(answers),
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\none");
  EXPECT_EQ(answers.open(), 0u);
}

TEST(HttpResponseQueue, TellWhenTheLastByteWent) {
  HttpResponseQueue answers;
  int sent = 0;
  answers.Put(answers.Open({}), Said("x"), [&](Instant at) { sent += at == kNow; });
  answers.Advance(5, kNow);
  EXPECT_EQ(sent, 0);
  Send(answers);
  EXPECT_EQ(sent, 1);
}

TEST(HttpResponseQueue, SayContinueInItsTurn) {
  HttpResponseQueue answers;
  const uint64_t first = answers.Open({});
  answers.Continue();
  EXPECT_EQ(Send(answers), "");
  answers.Put(first, Said("x"), {});
  EXPECT_TRUE(
      Send(answers).ends_with("x"
                              "HTTP/1.1 100 Continue\r\n\r\n"));
  const uint64_t second = answers.Open({});
  answers.Put(second, Said("y"), {});
  EXPECT_TRUE(Send(answers).ends_with("y"));
}

TEST(HttpResponseQueue, HaveNoBodyForHeadAndSayWhatOldClientsNeed) {
  HttpResponseQueue answers;
  answers.Put(answers.Open({.is_head = true}), Said("abc"), {});
  EXPECT_TRUE(Send(answers).ends_with("Content-Length: 3\r\n\r\n"));
  answers.Put(answers.Open({.is_http10 = true}), Said("abc"), {});
  EXPECT_TRUE(Send(answers).ends_with("Connection: keep-alive\r\n\r\nabc"));
}

TEST(HttpResponseQueue, EndTheConnectionWithTheLastOneOpen) {
  HttpResponseQueue answers;
  const uint64_t first = answers.Open({}), second = answers.Open({});
  answers.CloseWithLast();
  EXPECT_FALSE(answers.Put(first, Said("a"), {}));
  EXPECT_TRUE(answers.Put(second, Said("b"), {}));
  EXPECT_TRUE(Send(answers).ends_with("Connection: close\r\n\r\nb"));
  EXPECT_TRUE(answers.closed());
}

TEST(HttpResponseQueue, AskForAStopWhenTheClientLeaves) {
  HttpResponseQueue answers;
  const uint64_t number = answers.Open({});
  const std::stop_token left = answers.left(number);
  EXPECT_FALSE(left.stop_requested());
  answers.ClientLeft();
  EXPECT_TRUE(left.stop_requested());
}

TEST(HttpResponseQueue, TellThoseWhoWaitWhenTheyAreAbandoned) {
  HttpResponseQueue answers;
  const uint64_t first = answers.Open({});
  const std::stop_token left = answers.left(first);
  int sent = 0;
  answers.Put(answers.Open({}), Said("x"), [&](Instant) { ++sent; });
  answers.Abandon(kNow);
  EXPECT_TRUE(left.stop_requested());
  EXPECT_EQ(sent, 1);
  EXPECT_EQ(answers.open(), 0u);
  EXPECT_TRUE(answers.closed());
}

}  // namespace
}  // namespace weir::http
