#include "object/request_loop.h"

#include <gtest/gtest.h>

#include "object/testing/fake_transport.h"

namespace weir::object {
namespace {

class PlainBuilder final : public RequestBuilder {
 public:
  Result<HttpRequest> Build(const Operation& operation) override {
    return HttpRequest{
        .method = operation.method, .url = prefix + operation.key, .headers = operation.headers};
  }
  bool LearnFrom(const Operation&, const HttpResponse& response) override {
    if (response.status != 301) return false;
    prefix = "http://other/";
    return true;
  }
  std::string NameOf(const Operation& operation) const override { return "s3://bucket/" + operation.key; }

  std::string prefix = "http://store/";
};

class RequestLoopTest : public testing::Test {
 protected:
  void Submit(Operation operation) {
    const size_t place = results.size();
    results.emplace_back(Fail(ErrorCode::kInternal, "open"));
    operation.done = [this, place](Result<Response> result) {
      EXPECT_FALSE(results[place] || results[place].error().message != "open") << "answered twice";
      results[place] = std::move(result);
    };
    loop.Submit(std::move(operation));
    loop.Step();
  }
  void Get(const std::string& key) { Submit({.key = key, .may_hedge = true}); }
  void Pass(Duration time) {
    clock.Advance(time);
    loop.Step();
  }
  // Until the retries that wait have been sent.
  void PassRetries() { Pass(30s); }

  ManualClock clock;
  FakeTransport transport;
  PlainBuilder builder;
  RequestLoop loop{transport, builder, clock, {.retries = 3, .depth = {.first = 4, .least = 1, .most = 8}}};
  std::vector<Result<Response>> results;
};

TEST_F(RequestLoopTest, GivesTheBodyItsSizeAndItsETag) {
  Get("a");
  transport.Answer(200, "abc", {{"etag", "\"x\""}});
  ASSERT_TRUE(results[0]) << results[0].error().message;
  EXPECT_EQ(results[0]->body.text(), "abc");
  EXPECT_EQ(results[0]->etag, "\"x\"");
  EXPECT_EQ(results[0]->total, 3);
  EXPECT_TRUE(loop.is_idle());
}

TEST_F(RequestLoopTest, AnETagThatCouldEndALineIsRefused) {
  Get("a");
  transport.Answer(200, "abc", {{"etag", "\"x\"\nx-amz-acl: public-read"}});
  ASSERT_FALSE(results[0]);
  EXPECT_EQ(results[0].error().code, ErrorCode::kCorrupt);
  Submit({.key = "a", .headers = {{"If-Match", "x\r\ny: z"}}});
  EXPECT_EQ(transport.open(), 0U);
  EXPECT_EQ(results[1].error().code, ErrorCode::kInvalidArgument);
}

TEST_F(RequestLoopTest, APartThatDoesNotSayWhichIsRefused) {
  Submit({.key = "a", .range = Range{0, 10}});
  transport.Answer(206, "abc");
  ASSERT_FALSE(results[0]);
  EXPECT_EQ(results[0].error().code, ErrorCode::kCorrupt);
}

TEST_F(RequestLoopTest, WhatMayPassIsSentAgainLater) {
  Get("a");
  transport.Answer(503, "");
  EXPECT_EQ(transport.open(), 0U);
  PassRetries();
  transport.Break();
  PassRetries();
  transport.Answer(200, "abc");
  ASSERT_TRUE(results[0]);
  EXPECT_EQ(loop.counts().retries, 2);
}

TEST_F(RequestLoopTest, TheLastFailureIsGivenWhenTheRetriesAreUsedUp) {
  Get("a");
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(transport.open(), 1U);
    transport.Answer(503, "<Error><Code>SlowDown</Code></Error>");
    PassRetries();
  }
  ASSERT_FALSE(results[0]);
  EXPECT_EQ(results[0].error(),
            (Error{ErrorCode::kOverloaded, "s3://bucket/a: the server answered 503 SlowDown (4 tries)"}));
}

TEST_F(RequestLoopTest, RetryAfterIsWaitedFor) {
  Get("a");
  transport.Answer(429, "", {{"retry-after", "5"}});
  Pass(4900ms);
  EXPECT_EQ(transport.open(), 0U);
  Pass(200ms);
  EXPECT_EQ(transport.open(), 1U);
}

TEST_F(RequestLoopTest, WhatWillNotPassIsNotSentAgain) {
  const std::pair<int, ErrorCode> cases[] = {{404, ErrorCode::kNotFound},
                                             {403, ErrorCode::kInvalidArgument},
                                             {412, ErrorCode::kCorrupt},
                                             {400, ErrorCode::kInvalidArgument}};
  for (const auto& [status, code] : cases) {
    Get("a");
    transport.Answer(status, "");
    ASSERT_FALSE(results.back());
    EXPECT_EQ(results.back().error().code, code) << status;
  }
  EXPECT_EQ(loop.counts().retries, 0);
}

TEST_F(RequestLoopTest, ExpiredCredentialsAreNamed) {
  Get("a");
  transport.Answer(400, "<?xml version=\"1.0\"?><Error><Code>ExpiredToken</Code></Error>");
  EXPECT_TRUE(results[0].error().message.contains("have expired")) << results[0].error().message;
}

TEST_F(RequestLoopTest, AnotherRegionIsAskedOnceInstead) {
  Get("a");
  transport.Answer(301, "");
  loop.Step();
  EXPECT_EQ(transport.requests.back().url, "http://other/a");
  transport.Answer(301, "");
  EXPECT_FALSE(results[0]);
}

TEST_F(RequestLoopTest, NoMoreThanTheDepthAreInFlightAndItGrows) {
  for (int i = 0; i < 100; ++i) Get("a");
  EXPECT_EQ(transport.open(), 4U);
  while (transport.open() > 0) {
    transport.Answer(200, "");
    loop.Step();
  }
  EXPECT_EQ(transport.most_open, 8U);
  EXPECT_TRUE(loop.is_idle());
}

TEST_F(RequestLoopTest, ARefusalLowersTheDepth) {
  for (int i = 0; i < 20; ++i) Get("a");
  transport.Answer(503, "");
  EXPECT_EQ(loop.depth(), 2);
  loop.CancelAll();
  EXPECT_EQ(results[7].error().code, ErrorCode::kCancelled);
}

TEST_F(RequestLoopTest, ASecondRequestGoesOutWhenTheFirstIsSlowAndTheFirstResponseCounts) {
  for (int i = 0; i < 64; ++i) {
    Get("a");
    clock.Advance(10ms);
    transport.Answer(200, "old");
    loop.Step();
  }
  Get("slow");
  Pass(19ms);
  EXPECT_EQ(transport.open(), 1U);
  Pass(2ms);
  ASSERT_EQ(transport.open(), 2U);
  transport.Answer(200, "second", {}, 1);
  ASSERT_TRUE(results.back());
  EXPECT_EQ(results.back()->body.text(), "second");
  EXPECT_EQ(transport.cancelled, 1);
  EXPECT_EQ(transport.open(), 0U);
  EXPECT_EQ(loop.counts().hedges_won, 1);
}

TEST_F(RequestLoopTest, NoSecondRequestGoesOutWhileBytesOfTheFirstCome) {
  for (int i = 0; i < 64; ++i) {
    Get("a");
    clock.Advance(10ms);
    transport.Answer(200, "old");
    loop.Step();
  }
  Get("large");
  for (int i = 0; i < 10; ++i) {
    transport.last_bytes = clock.Now();
    Pass(15ms);
    EXPECT_EQ(transport.open(), 1U) << i;
  }
  Pass(4ms);
  EXPECT_EQ(transport.open(), 1U);
  Pass(2ms);
  EXPECT_EQ(transport.open(), 2U) << "nothing has come for 21 ms";
}

TEST_F(RequestLoopTest, AFailureOfOneOfTwoRequestsWaitsForTheOther) {
  for (int i = 0; i < 64; ++i) {
    Get("a");
    clock.Advance(10ms);
    transport.Answer(200, "old");
    loop.Step();
  }
  Get("slow");
  Pass(21ms);
  ASSERT_EQ(transport.open(), 2U);
  transport.Break();
  EXPECT_EQ(loop.counts().retries, 0);
  transport.Answer(200, "second");
  EXPECT_TRUE(results.back());
}

TEST_F(RequestLoopTest, ARangeIsCheckedByItsHeaderNotByTheStatus) {
  Submit({.key = "a", .range = Range{4, 3}});
  transport.Answer(200, "efg", {{"content-range", "bytes 4-6/10"}});
  ASSERT_TRUE(results[0]);
  EXPECT_EQ(results[0]->total, 10);
  Submit({.key = "a", .range = Range{8, 5}});
  transport.Answer(206, "ij", {{"content-range", "bytes 8-9/10"}});
  EXPECT_TRUE(results[1]) << "the end of the object";
}

TEST_F(RequestLoopTest, AWrongRangeIsNoData) {
  const std::pair<const char*, const char*> cases[] = {{"abc", "bytes 0-2/10"},
                                                       {"efg", "bytes 4-7/10"},
                                                       {"ef", "bytes 4-5/10"},
                                                       {"efg", "rubbish"},
                                                       {"abcdefghij", ""}};
  for (const auto& [body, header] : cases) {
    Submit({.key = "a", .range = Range{4, 3}});
    transport.Answer(206, body,
                     *header ? std::map<std::string, std::string, std::less<>>{{"content-range", header}}
                             : std::map<std::string, std::string, std::less<>>{});
    ASSERT_FALSE(results.back()) << header;
    EXPECT_EQ(results.back().error().code, ErrorCode::kCorrupt);
  }
}

TEST_F(RequestLoopTest, AnotherETagIsNeverMixedIn) {
  Submit({.key = "a", .range = Range{0, 3}, .etag = "\"x\""});
  transport.Answer(206, "abc", {{"content-range", "bytes 0-2/10"}, {"etag", "\"y\""}});
  ASSERT_FALSE(results[0]);
  EXPECT_EQ(results[0].error(),
            (Error{ErrorCode::kCorrupt, "s3://bucket/a: the object was changed while it was read"}));
}

TEST_F(RequestLoopTest, AShortBodyWithStatus200IsReadAgain) {
  Submit({.key = "a", .size = 3});
  transport.Answer(200, "ab");
  PassRetries();
  transport.Answer(200, "abc");
  EXPECT_TRUE(results[0]);
}

TEST_F(RequestLoopTest, ACompressedAnswerIsRefused) {
  Get("a");
  transport.Answer(200, "\x1f\x8b", {{"content-encoding", "gzip"}});
  EXPECT_EQ(results[0].error().code, ErrorCode::kUnsupported);
}

TEST_F(RequestLoopTest, ARangeOfAnEmptyObjectIsEmpty) {
  Submit({.key = "a", .range = Range{0, 3}});
  transport.Answer(416, "", {{"content-range", "bytes */0"}});
  ASSERT_TRUE(results[0]);
  EXPECT_EQ(results[0]->total, 0);
}

}  // namespace
}  // namespace weir::object
