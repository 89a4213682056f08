#include "http/http_response_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "base/seed.h"

namespace weir::http {
namespace {

// Feeds `text` in steps of at most `step` bytes, then the end; the first whole answer, or the error.
Result<HttpClientResponse> ReadAnswer(std::string_view text, size_t step) {
  HttpResponseReader reader;
  while (!text.empty()) {
    const std::span<std::byte> room = reader.Room();
    const size_t size = std::min({step, text.size(), room.size()});
    CHECK(size > 0);
    std::memcpy(room.data(), text.data(), size);
    text.remove_prefix(size);
    if (TRY(reader.Filled(size))) return reader.Take();
  }
  if (!reader.begun()) return Fail(ErrorCode::kIo, "nothing came");
  TRY(reader.Closed());
  return reader.Take();
}

TEST(AnswerReader, ReadsEveryKindOfBodyInAnySteps) {
  const struct {
    const char *text, *body;
    int status;
    bool keep_alive;
  } rows[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", 200, true},
      {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", 200, true},
      {"HTTP/1.1 204 No Content\r\n\r\n", "", 204, true},
      {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", 200, false},
      {"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno", "no", 404, false},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", "abcde",
       200, true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", 200, true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n00;x\r\nT: y\r\n\r\n", "a", 200, true},
      {"HTTP/1.1 200 OK\r\n\r\nuntil the end", "until the end", 200, false},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "x", 200, true},
  };
  for (const auto& row : rows) {
    for (const size_t step : {1, 2, 3, 4, 7, 1000}) {
      const auto answer = ReadAnswer(row.text, step);
      ASSERT_TRUE(answer) << row.text << ": " << answer.error().message;
      EXPECT_EQ(answer->body.text(), row.body);
      EXPECT_EQ(answer->status, row.status);
      EXPECT_EQ(answer->keep_alive, row.keep_alive) << row.text;
    }
  }
}

TEST(AnswerReader, RefusesABodyThatIsLongerThanItMayBe) {
  for (const std::string head :
       {"Content-Length: 3000000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n2dc6c0\r\n", "\r\n"}) {
    HttpResponseReader reader;
    reader.Limit(2 << 20);
    std::string text = "HTTP/1.1 200 OK\r\n" + head;
    Status status;
    for (size_t sent = 0; status && sent < (3 << 20); sent += text.size(), text = std::string(8192, 'x')) {
      const std::span<std::byte> room = reader.Room();
      ASSERT_GE(room.size(), text.size());
      std::memcpy(room.data(), text.data(), text.size());
      if (const auto read = reader.Filled(text.size()); !read) status = std::unexpected(read.error());
    }
    ASSERT_FALSE(status) << head;
    EXPECT_TRUE(status.error().message.starts_with("the answer is longer than 2 MiB"))
        << status.error().message;
  }
}

TEST(AnswerReader, LaysTheFirstBinaryTensorAligned) {
  for (const char* framing :
       {"Content-Length: 25\r\n\r\n{\"n\":1}, then the tensors",
        "Transfer-Encoding: chunked\r\n\r\n19\r\n{\"n\":1}, then the tensors\r\n0\r\n\r\n"}) {
    const auto answer =
        ReadAnswer(std::string("HTTP/1.1 200 OK\r\nInference-Header-Content-Length: 7\r\n") + framing, 1000);
    ASSERT_TRUE(answer) << answer.error().message;
    ASSERT_EQ(answer->header_length, 7U);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(answer->body.data() + 7) % 64, 0U);
  }
}

TEST(AnswerReader, RefusesWhatIsNoAnswer) {
  const struct {
    std::string text;
    ErrorCode code;
  } rows[] = {
      {"SSH-2.0-OpenSSH_9.2\r\n", ErrorCode::kCorrupt},
      {"SSH", ErrorCode::kCorrupt},
      {"HTTP/1.1 20 OK\r\n\r\n", ErrorCode::kCorrupt},
      {"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", ErrorCode::kCorrupt},
      {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", ErrorCode::kCorrupt},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", ErrorCode::kCorrupt},
      {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n", ErrorCode::kCorrupt},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzzz\r\n", ErrorCode::kCorrupt},
      {"HTTP/1.1 200 OK\r\nInference-Header-Content-Length: 3\r\nContent-Length: 2\r\n\r\nok",
       ErrorCode::kCorrupt},
      {"HTTP/1.1 200 OK\r\nInference-Header-Content-Length: 3\r\n\r\nok", ErrorCode::kCorrupt},
      {"HTTP/1.1 200 OK\r\nInference-Header-Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       ErrorCode::kCorrupt},
      {"HTTP/1.1 200 OK\r\nInference-Header-Content-Length: 3x\r\nContent-Length: 9\r\n\r\n",
       ErrorCode::kCorrupt},
      {"HTTP/1.1 200 OK\r\nX: " + std::string(20000, 'x'), ErrorCode::kCorrupt},
      {"HTTP/1.1 200 OK\r\nContent-Le", ErrorCode::kIo},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", ErrorCode::kIo},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", ErrorCode::kIo},
  };
  for (const auto& row : rows) {
    for (const size_t step : {1, 1000}) {
      const auto answer = ReadAnswer(row.text, step);
      ASSERT_FALSE(answer) << row.text;
      EXPECT_EQ(answer.error().code, row.code) << row.text << ": " << answer.error().message;
    }
  }
}

TEST(AnswerReader, BytesBeyondTheAnswerEndTheConnection) {
  const auto answer = ReadAnswer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more", 1000);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body.text(), "ok");
  EXPECT_FALSE(answer->keep_alive);
}

TEST(AnswerReader, SurvivesDamagedAnswers) {
  const std::string whole[] = {
      "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nInference-Header-Content-Length: 2\r\n"
      "Content-Length: 12\r\n\r\n{}0123456789",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\nA\r\n0123456789\r\n0\r\nT: "
      "x\r\n\r\n",
  };
  Random random = Seed(7).Stream("damaged answers").MakeRandom();
  for (int round = 0; round < 20000; ++round) {
    std::string text = whole[round % 2];
    for (int64_t damages = random.Integer(1, 4); damages > 0; --damages) {
      const auto at = static_cast<size_t>(random.Integer(0, std::ssize(text) - 1));
      if (random.Integer(0, 3) == 0) {
        text.erase(at, static_cast<size_t>(random.Integer(0, 8)));
      } else {
        text[at] = static_cast<char>(random.Integer(0, 255));
      }
      if (text.empty()) text = "H";
    }
    (void)ReadAnswer(text, static_cast<size_t>(random.Integer(1, 40)));
  }
}

}  // namespace
}  // namespace weir::http
