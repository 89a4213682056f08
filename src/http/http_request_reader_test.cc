#include "http/http_request_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace weir::http {
namespace {

constexpr Instant kStart(1s);

// A reader, and what comes out of it when bytes go in.
struct Harness {
  explicit Harness(HttpLimits given = {}, size_t budget_bytes = 1 << 30)
      : limits(std::move(given)),
        budget(std::make_shared<ByteBudget>(budget_bytes)),
        reader(limits, budget) {}

  // Feeds `text` in pieces of at most `piece` bytes, each a millisecond after the one before.
  void Feed(std::string_view text, size_t piece = std::string::npos) {
    while (!text.empty() && !refusal) {
      const std::span<std::byte> space = reader.Space();
      ASSERT_FALSE(space.empty());
      const size_t size = std::min({piece, space.size(), text.size()});
      std::memcpy(space.data(), text.data(), size);
      reader.Filled(size, now);
      now += 1ms;
      text.remove_prefix(size);
      Take();
    }
  }
  void Take() {
    while (true) {
      auto next = reader.Next();
      if (auto* request = std::get_if<HttpRequest>(&next)) {
        keep_alive.push_back(reader.keep_alive());
        requests.push_back(std::move(*request));
      } else if (auto* refused = std::get_if<HttpRefusal>(&next)) {
        refusal = std::move(*refused);
        return;
      } else {
        continues += reader.TakeExpectsContinue();
        return;
      }
    }
  }

  HttpLimits limits;
  std::shared_ptr<ByteBudget> budget;
  HttpRequestReader reader;
  Instant now = kStart;
  std::vector<HttpRequest> requests;
  std::vector<bool> keep_alive;
  std::optional<HttpRefusal> refusal;
  int continues = 0;
};

int StatusOf(std::string_view text, HttpLimits limits = {}) {
  Harness harness(std::move(limits));
  harness.Feed(text);
  return harness.refusal ? harness.refusal->status : harness.requests.empty() ? 0 : 200;
}

TEST(HttpRequestReader, GivesTheRequestWithItsPathQueryHeadersAndBody) {
  Harness harness;
  harness.Feed(
      "POST /v2/models/m%2Fn/infer?a=1&b HTTP/1.1\r\nHost: x\r\ncontent-LENGTH: 5\r\nX-Two:  a b "
      "\r\n\r\nhello");
  ASSERT_EQ(harness.requests.size(), 1u);
  const HttpRequest& request = harness.requests[0];
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/v2/models/m%2Fn/infer");
  EXPECT_EQ(request.query, "a=1&b");
  EXPECT_EQ(request.Header("x-two"), "a b");
  EXPECT_EQ(request.Header("Content-Length"), "5");
  EXPECT_FALSE(request.Header("X-None").has_value());
  EXPECT_EQ(request.body.text(), "hello");
  EXPECT_TRUE(harness.keep_alive[0]);
}

TEST(HttpRequestReader, GivesTheSameInWhateverPiecesTheBytesCome) {
  const std::string plain = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n0123456789";
  const std::string chunked =
      "POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
      "chunked\r\n\r\n4\r\nabcd\r\n1;x=\"y\"\r\ne\r\n0\r\nTrailer: "
      "t\r\n\r\n";
  const std::string bare = "GET /c HTTP/1.1\r\nHost: x\r\n\r\n";
  for (size_t piece = 1; piece < 60; ++piece) {
    Harness harness;
    harness.Feed(plain + chunked + bare + plain, piece);
    ASSERT_EQ(harness.requests.size(), 4u) << piece;
    EXPECT_EQ(harness.requests[0].body.text(), "0123456789");
    EXPECT_EQ(harness.requests[1].body.text(), "abcde");
    EXPECT_EQ(harness.requests[1].headers.size(), 2u) << "trailers are no headers";
    EXPECT_EQ(harness.requests[2].path, "/c");
    EXPECT_EQ(harness.requests[3].body.text(), "0123456789");
  }
}

TEST(HttpRequestReader, TakesAnEmptyChunkedBodyByteByByte) {
  Harness harness;
  harness.Feed("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: t\r\n\r\n", 1);
  harness.Feed("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 1);
  ASSERT_EQ(harness.requests.size(), 2u);
  EXPECT_TRUE(harness.requests[1].body.empty());
}

TEST(HttpRequestReader, StampsTheFirstByteAndTheLast) {
  Harness harness;
  harness.Feed("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(harness.reader.phase(), HttpRequestReader::Phase::kBody);
  harness.Feed("abc");
  EXPECT_EQ(harness.requests.at(0).first_byte, kStart);
  EXPECT_EQ(harness.requests.at(0).received, kStart + 1ms);
  EXPECT_EQ(harness.reader.phase(), HttpRequestReader::Phase::kIdle);
  harness.Feed("G");
  EXPECT_EQ(harness.reader.phase(), HttpRequestReader::Phase::kHead);
  EXPECT_EQ(harness.reader.first_byte(), kStart + 2ms);
}

TEST(HttpRequestReader, AlignsTheByteAfterTheHeaderThatGivesANumber) {
  for (const size_t header : {0, 1, 17, 63, 64, 178}) {
    for (const std::string length : {"Content-Length: 400", "Transfer-Encoding: chunked"}) {
      Harness harness({.align_after = "Inference-Header-Content-Length"});
      const std::string body(400, 'x');
      harness.Feed(
          fmt::format("POST / HTTP/1.1\r\nHost: x\r\n{}\r\ninference-header-content-length: {}\r\n\r\n",
                      length, header) +
          (length.starts_with("C") ? body : "190\r\n" + body + "\r\n0\r\n\r\n"));
      ASSERT_EQ(harness.requests.size(), 1u);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(harness.requests[0].body.data() + header) % 64, 0u) << header;
    }
  }
}

TEST(HttpRequestReader, ReadsABodyOfKnownLengthWhereItStays) {
  Harness harness;
  harness.Feed("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
  const std::span<std::byte> space = harness.reader.Space();
  EXPECT_EQ(space.size(), 100000u);
  harness.Feed(std::string(100000, 'x'));
  EXPECT_EQ(harness.requests.at(0).body.data(), space.data());
}

TEST(HttpRequestReader, RefusesWhatSmugglesARequest) {
  const std::string post = "POST / HTTP/1.1\r\nHost: x\r\n";
  EXPECT_EQ(StatusOf(post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc"), 400);
  EXPECT_EQ(StatusOf(post + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(post + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"), 400);
  EXPECT_EQ(StatusOf(post + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"), 400);
  EXPECT_EQ(StatusOf(post + "Content-Length: 3, 3\r\n\r\nabc"), 400);
  EXPECT_EQ(StatusOf(post + "Content-Length: -3\r\n\r\nabc"), 400);
  EXPECT_EQ(StatusOf(post + "Content-Length: +3\r\n\r\nabc"), 400);
  EXPECT_EQ(StatusOf(post + "Content-Length: 0x3\r\n\r\nabc"), 400);
  EXPECT_EQ(StatusOf(post + "Content-Length: \r\n\r\nabc"), 400);
  EXPECT_EQ(StatusOf(post + "Content-Length: 99999999999999999999999\r\n\r\nabc"), 400);
  EXPECT_EQ(StatusOf(post + "Content-Length : 3\r\n\r\nabc"), 400);
  EXPECT_EQ(StatusOf(post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            400);
  EXPECT_EQ(StatusOf("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(post + "X: a\r\n b\r\n\r\n"), 400) << "a folded line";
  EXPECT_EQ(StatusOf(post + "X: a\nY: b\r\n\r\n"), 400) << "a line without a carriage return";
  EXPECT_EQ(StatusOf(post + "X: a\rb\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(post + std::string("X: a\0b\r\n\r\n", 10)), 400) << "a NUL";
  EXPECT_EQ(StatusOf(post + ": nameless\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(post + "X Y: b\r\n\r\n"), 400);
}

TEST(HttpRequestReader, RefusesChunksThatAreNot) {
  const std::string post = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(StatusOf(post + "x\r\nabc\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(post + "-3\r\nabc\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(post + "0x3\r\nabc\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(post + " 3\r\nabc\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(post + "3 \r\nabc\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(post + "3\nabc\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(post + "3\r\nabcd\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(post + "fffffffffffffffff\r\nabc\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(post + "3;" + std::string(20000, 'x')), 400) << "a chunk's header without end";
  EXPECT_EQ(StatusOf(post + "0\r\nContent-Length: 5\r\n\r\n"), 400);
}

TEST(HttpRequestReader, RefusesCodingsItDoesNotKnow) {
  EXPECT_EQ(StatusOf("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"), 501);
  EXPECT_EQ(StatusOf("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n"), 501);
  EXPECT_EQ(StatusOf("POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n"),
            415);
  EXPECT_EQ(
      StatusOf("POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: Identity\r\nContent-Length: 3\r\n\r\nabc"),
      200);
  EXPECT_EQ(StatusOf("POST / HTTP/1.1\r\nHost: x\r\nExpect: a miracle\r\nContent-Length: 3\r\n\r\n"), 417);
}

TEST(HttpRequestReader, RefusesWhatIsNotHttp) {
  EXPECT_EQ(StatusOf("hello\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET /\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/2.0\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET  / HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET nowhere HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\n\n"), 400);
  EXPECT_EQ(StatusOf("\x16\x03\x01\x02\n"), 400) << "TLS";
}

TEST(HttpRequestReader, TakesAWholeAddressAsItsPathAndEmptyLinesInFront) {
  Harness harness;
  harness.Feed(
      "\r\n\r\nGET http://host:80/v2?x HTTP/1.1\r\nHost: h\r\n\r\nGET http://host HTTP/1.1\r\nHost: "
      "x\r\n\r\n");
  ASSERT_EQ(harness.requests.size(), 2u);
  EXPECT_EQ(harness.requests[0].path, "/v2");
  EXPECT_EQ(harness.requests[0].query, "x");
  EXPECT_EQ(harness.requests[1].path, "/");
}

TEST(HttpRequestReader, RefusesTooMuchBeforeItIsRead) {
  EXPECT_EQ(StatusOf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n", {.max_body = 10}), 413);
  EXPECT_EQ(StatusOf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551615\r\n\r\n"), 413);
  EXPECT_EQ(
      StatusOf("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nab", {.max_body = 10}),
      413);
  EXPECT_EQ(StatusOf("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n6\r\n",
                     {.max_body = 10}),
            413);
  EXPECT_EQ(StatusOf("GET /" + std::string(20000, 'x')), 431);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(20000, 'x')), 431);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(2000, 'x') + "\r\n\r\n",
                     {.max_header = 1000}),
            431);
}

TEST(HttpRequestReader, CountsBodiesAgainstTheBudgetForAsLongAsTheyAreHeld) {
  Harness harness({}, 100);
  harness.Feed("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 60\r\n\r\n" + std::string(60, 'x'));
  EXPECT_EQ(harness.budget->used(), 60u);
  Bytes part = harness.requests.at(0).body.Slice(10, 1);
  harness.requests.clear();
  EXPECT_EQ(harness.budget->used(), 60u);
  part = {};
  EXPECT_EQ(harness.budget->used(), 0u);
  Bytes first = *harness.budget->Allocate(60, 0);
  harness.Feed("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 60\r\n\r\n");
  ASSERT_TRUE(harness.refusal);
  EXPECT_EQ(harness.refusal->status, 503);
}

TEST(HttpRequestReader, CountsWhatHasComeAndNotWhatIsAnnounced) {
  Harness harness({}, size_t{3} << 20);
  harness.Feed("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3145728\r\n\r\nabc");
  EXPECT_EQ(harness.budget->used(), 3u);
  harness.Feed(std::string((1 << 20) - 3, 'x'));
  EXPECT_EQ(harness.budget->used(), size_t{1} << 20);
  const auto others = harness.budget->Take(2 << 20);
  ASSERT_TRUE(others);
  harness.Feed("x");
  ASSERT_TRUE(harness.refusal);
  EXPECT_EQ(harness.refusal->status, 503);
  EXPECT_TRUE(harness.refusal->over_budget);
}

TEST(HttpRequestReader, CountsWhatHasComeOfAChunkAndNotWhatIsAnnounced) {
  Harness harness({}, size_t{3} << 20);
  harness.Feed("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n300000\r\nabcdefgh");
  EXPECT_EQ(harness.budget->used(), 8u);
  harness.Feed(std::string(10000, 'x'));
  EXPECT_EQ(harness.budget->used(), 10008u);
  const auto others = harness.budget->Take((3 << 20) - 10008);
  ASSERT_TRUE(others);
  harness.Feed("xxxxx");
  ASSERT_TRUE(harness.refusal);
  EXPECT_EQ(harness.refusal->status, 503);
}

TEST(HttpRequestReader, ReadsNoMoreThanAMebibyteAtOnce) {
  Harness harness;
  harness.Feed("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3145728\r\n\r\nabc");
  EXPECT_EQ(harness.reader.Space().size(), size_t{1} << 20);
}

TEST(HttpRequestReader, WantsOneHost) {
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost:\r\n\r\n"), 200);
  EXPECT_EQ(StatusOf("GET / HTTP/1.0\r\n\r\n"), 200);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a\r\nOrigin: http://a\r\nOrigin: http://b\r\n\r\n"), 400);
}

TEST(HttpRequestReader, TellsTheHostAndTheOrigin) {
  Harness harness;
  harness.Feed("GET / HTTP/1.1\r\nHost: a:1\r\nOrigin: http://b\r\n\r\n");
  harness.Feed("GET http://c:2/x HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_EQ(harness.requests.size(), 2u);
  EXPECT_EQ(harness.requests[0].host, "a:1");
  EXPECT_EQ(harness.requests[0].origin, "http://b");
  EXPECT_EQ(harness.requests[1].host, "c:2") << "the target's own overrules the header";
  EXPECT_FALSE(harness.requests[1].origin);
}

TEST(HttpRequestReader, RefusesALineOfAChunkThatEndsWithoutACarriageReturnAtOnce) {
  const std::string post = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string body : {"3\n", "3\nabc", "3;x=y\n", "3\r\nabc\n", "3\r\nabc\r\n1\n", "0\n",
                                 "0\r\nT: t\n", "0\r\nT: t\r\nU: u\n"}) {
    EXPECT_EQ(StatusOf(post + body), 400) << body;
    Harness harness;
    harness.Feed(post + body, 1);
    EXPECT_TRUE(harness.refusal) << body;
  }
  for (const std::string body : {"1\r\n\n\r\n0\r\n\r\n", "4\r\na\nb\n\r\n0\r\n\r\n"}) {
    for (size_t piece = 1; piece < 20; ++piece) {
      Harness harness;
      harness.Feed(post + body, piece);
      EXPECT_EQ(harness.requests.size(), 1u) << "line feeds in the body are the client's own";
    }
  }
}

TEST(HttpRequestReader, HoldsAMillionTinyChunksInNoMoreThanTwiceTheirBytes) {
  Harness harness({}, 3 << 20);
  harness.Feed("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  std::string thousand;
  for (int i = 0; i < 1000; ++i) thousand += "1\r\nx\r\n";
  for (int i = 0; i < 1000; ++i) harness.Feed(thousand);
  EXPECT_FALSE(harness.refusal);
  EXPECT_LE(harness.budget->used(), size_t{2 << 20});
  harness.Feed("0\r\n\r\n");
  ASSERT_EQ(harness.requests.size(), 1u);
  EXPECT_EQ(harness.requests[0].body.size(), 1000000u);
}

TEST(HttpRequestReader, TellsOnceThatTheClientWaitsToSendItsBody) {
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
  Harness harness;
  harness.Feed(head);
  EXPECT_EQ(harness.continues, 1);
  harness.Feed("a");
  harness.Feed("bc");
  EXPECT_EQ(harness.continues, 1);
  EXPECT_EQ(harness.requests.size(), 1u);
  harness.Feed(head + "abc");
  EXPECT_EQ(harness.continues, 1) << "the body was here";
  harness.Feed("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(harness.continues, 2);
}

TEST(HttpRequestReader, KnowsWhetherTheConnectionGoesOn) {
  Harness harness;
  harness.Feed(
      "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / "
      "HTTP/1.1\r\nHost: x\r\nConnection: "
      "close\r\n\r\n"
      "GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(harness.keep_alive, (std::vector{true, true, false, false}));
}

}  // namespace
}  // namespace weir::http
