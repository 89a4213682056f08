#include "object/plain_connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace weir::object {
namespace {

using Progress = PlainConnection::Progress;

TEST(PlainTarget, IsOfGetsOverHttpWhoseUrlGoesAsItStands) {
  const auto target = [](const char* url) {
    const HttpRequest request{.url = url};
    const auto found = PlainTargetOf(request);
    return found ? std::string(found->authority) + " " + std::string(found->path) : "curl's";
  };
  EXPECT_EQ(target("http://store:9000/b/k%20x?a=b/c"), "store:9000 /b/k%20x?a=b/c");
  EXPECT_EQ(target("http://[::1]:80/"), "[::1]:80 /");
  for (const char* url :
       {"https://store/k", "http://store", "http:///k", "http://user:word@store/k", "http://store/a b",
        "http://store/a#b", "http://store/\xc3\xa4", "http://st\xc3\xb6re/k", "http://store/a\r\nb"})
    EXPECT_EQ(target(url), "curl's") << url;
  EXPECT_FALSE(PlainTargetOf({.method = "HEAD", .url = "http://store/k"}));
}

TEST(AnswerHead, SaysStatusLengthAndHeaders) {
  const auto head =
      ParseAnswerHead("HTTP/1.1 206 Partial Content\r\nContent-Length: 12\r\nETag:\"a:b\" \r\nX:\r\n");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 206);
  EXPECT_EQ(head->length, 12U);
  EXPECT_TRUE(head->keep_alive);
  EXPECT_EQ(head->headers.at("etag"), "\"a:b\"");
  EXPECT_EQ(head->headers.at("x"), "");
  EXPECT_FALSE(ParseAnswerHead("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: Close\r\n")->keep_alive);
}

TEST(AnswerHead, OfAnotherKindIsCurls) {
  for (const char* head : {"",
                           "HTTP/1.1",
                           "HTTP/1.1 200\r\n",
                           "HTTP/1.1 200 OK\r\n",
                           "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n",
                           "HTTP/1.1 2000 OK\r\nContent-Length: 1\r\n",
                           "HTTP/1.1 2x0 OK\r\nContent-Length: 1\r\n",
                           "HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n",
                           "HTTP/1.1 204 No\r\nContent-Length: 1\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: \r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length : 1\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n folded\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nword\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n: x\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: 1"})
    EXPECT_FALSE(ParseAnswerHead(head)) << head;
}

class PlainConnectionTest : public testing::Test {
 protected:
  PlainConnectionTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    server = UniqueFd(ends[1]);
    connection.emplace(UniqueFd(ends[0]), "store:80");
  }
  bool Ask(HttpRequest request = {}) {
    request.url = "http://store:80/key";
    return connection->Send(request, *PlainTargetOf(request));
  }
  std::string Asked() {
    std::array<char, 4096> bytes;
    const ssize_t got = ::read(server.get(), bytes.data(), bytes.size());
    return got > 0 ? std::string(bytes.data(), static_cast<size_t>(got)) : "";
  }
  Progress Gives(std::string_view text) {
    EXPECT_EQ(::write(server.get(), text.data(), text.size()), std::ssize(text));
    return connection->Read();
  }
  UniqueFd server;
  std::optional<PlainConnection> connection;
};

TEST_F(PlainConnectionTest, SendsTheRequest) {
  ASSERT_TRUE(Ask({.headers = {{"Range", "bytes=0-3"}, {"x-empty", ""}}}));
  EXPECT_EQ(Asked(),
            "GET /key HTTP/1.1\r\nHost: store\r\nUser-Agent: weir\r\nAccept: */*\r\nRange: bytes=0-3\r\n"
            "x-empty: \r\n\r\n");
}

TEST_F(PlainConnectionTest, TakesAnAnswerInPiecesOfAnySize) {
  const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: e\r\n\r\n0123456789";
  for (size_t piece = 1; piece <= answer.size(); ++piece) {
    ASSERT_TRUE(connection->IsQuiet());
    ASSERT_TRUE(Ask());
    EXPECT_FALSE(connection->begun());
    size_t at = 0;
    for (; at + piece < answer.size(); at += piece)
      ASSERT_EQ(Gives(std::string_view(answer).substr(at, piece)), Progress::kUnderWay) << piece << " " << at;
    ASSERT_EQ(Gives(std::string_view(answer).substr(at)), Progress::kWhole) << piece;
    const HttpResponse response = connection->Take();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body.text(), "0123456789");
    EXPECT_EQ(response.headers.at("etag"), "e");
    EXPECT_TRUE(connection->may_carry_another());
  }
}

TEST_F(PlainConnectionTest, AnEmptyBodyIsWholeWithItsHead) {
  ASSERT_TRUE(Ask());
  ASSERT_EQ(Gives("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), Progress::kWhole);
  EXPECT_EQ(connection->Take().status, 404);
}

TEST_F(PlainConnectionTest, BytesThatNobodyAskedForEndItsUse) {
  ASSERT_TRUE(Ask());
  ASSERT_EQ(Gives("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 200 OK\r\n"), Progress::kWhole);
  EXPECT_EQ(connection->Take().body.text(), "ab");
  EXPECT_FALSE(connection->may_carry_another());
  ASSERT_EQ(::write(server.get(), "x", 1), 1);
  EXPECT_FALSE(connection->IsQuiet());
}

TEST_F(PlainConnectionTest, AnEndIsToldBeforeTheFirstByteAndWithinTheBody) {
  ASSERT_TRUE(Ask());
  ASSERT_EQ(Gives("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"), Progress::kUnderWay);
  server = UniqueFd();
  EXPECT_EQ(connection->Read(), Progress::kEnded);
  EXPECT_TRUE(connection->begun());
  EXPECT_FALSE(connection->IsQuiet());
}

TEST_F(PlainConnectionTest, ABodyLongerThanAllowedIsRefusedByItsHead) {
  ASSERT_TRUE(Ask({.max_bytes = 9}));
  EXPECT_EQ(Gives("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"), Progress::kTooLarge);
}

TEST_F(PlainConnectionTest, ARedirectIsCurlsWhereItIsFollowed) {
  const std::string_view answer = "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /b\r\n\r\n";
  ASSERT_TRUE(Ask());
  ASSERT_EQ(Gives(answer), Progress::kWhole);
  EXPECT_EQ(connection->Take().status, 302);
  ASSERT_TRUE(Ask({.follow_redirects = true}));
  EXPECT_EQ(Gives(answer), Progress::kForCurl);
}

TEST_F(PlainConnectionTest, AHeadWithoutAnEndIsGivenUp) {
  ASSERT_TRUE(Ask());
  Progress progress = Gives("HTTP/1.1 200 OK\r\n");
  for (int i = 0; i < 20 && progress == Progress::kUnderWay; ++i)
    progress = Gives("x: " + std::string(1000, 'y') + "\r\n");
  EXPECT_EQ(progress, Progress::kForCurl);
}

}  // namespace
}  // namespace weir::object
