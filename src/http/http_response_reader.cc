#include "http/http_response_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string>
#include <utility>

#include <boost/beast/http/basic_parser.hpp>

namespace weir::http {
namespace {

namespace http = boost::beast::http;
using boost::beast::string_view;
using boost::system::error_code;

constexpr size_t kRoom = 16 << 10;  // of a head, and of the bytes that come with it
constexpr size_t kAlignment = 64;
// Fewer bytes never end a chunked body, and Beast's parser aborts where the last chunk comes in such pieces.
constexpr size_t kLeastOfChunks = 5;
constexpr std::string_view kTooShort = "Inference-Header-Content-Length is more than the body has";

// Memory for a body of `size` bytes whose byte number `header_length` is aligned.
Bytes AllocateBody(size_t size, uint64_t header_length) {
  const size_t before = (kAlignment - header_length % kAlignment) % kAlignment;
  return Bytes::AllocateUninitialized(before + size).Slice(before, size);
}

std::unexpected<Error> Corrupt(std::string_view what) {
  return Fail(ErrorCode::kCorrupt, fmt::format("the answer is not HTTP: {}", what));
}

}  // namespace

// Keeps what the head says, and the body where it comes in chunks or until the end.
class HttpResponseReader::Parser final : public http::basic_parser<false> {
 public:
  Parser() {
    eager(false);
    header_limit(kRoom);
    body_limit(kMostBody);
  }
  int status = 0;
  std::optional<uint64_t> header_length;
  std::string body;
  uint64_t most = kMostUnsizedBody;  // of it

 private:
  void on_request_impl(http::verb, string_view, string_view, int, error_code&) override {}
  void on_response_impl(int code, string_view, int, error_code&) override { status = code; }
  void on_field_impl(http::field, string_view name, string_view value, error_code& ec) override {
    if (!boost::beast::iequals(name, "Inference-Header-Content-Length")) return;
    uint64_t length = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
    if (error != std::errc() || end != value.data() + value.size()) ec = http::error::bad_value;
    header_length = length;
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<uint64_t>&, error_code&) override {}
  size_t on_body_impl(string_view part, error_code& ec) override {
    if (part.size() > most - body.size()) {
      ec = http::error::body_limit;
      return 0;
    }
    body.append(part.data(), part.size());
    return part.size();
  }
  void on_chunk_header_impl(uint64_t, string_view, error_code&) override {}
  size_t on_chunk_body_impl(uint64_t, string_view part, error_code& ec) override {
    return on_body_impl(part, ec);
  }
  void on_finish_impl(error_code&) override {}
};

struct HttpResponseReader::State {
  enum class Phase { kHead, kSized, kUnsized, kWhole };

  // Works through what lies in `room`. True: the answer is whole.
  Result<bool> Parse();
  Result<bool> HeadRead();
  Result<bool> EndUnsized();
  void TakeSizedFromRoom();
  std::unexpected<Error> TooLong() const {
    const bool unsized = parser->is_header_done() && (parser->chunked() || parser->need_eof());
    return Fail(ErrorCode::kCorrupt, fmt::format("the answer is longer than {} MiB{}",
                                                 (unsized ? std::min(most, kMostUnsizedBody) : most) >> 20,
                                                 unsized ? " and does not say its length beforehand" : ""));
  }
  // The parser looks at a head only once it is whole, which a server of another kind may never send.
  bool LooksLikeHttp() const {
    constexpr std::string_view kBegin = "HTTP/1.";
    return std::memcmp(room.data(), kBegin.data(), std::min(held, kBegin.size())) == 0;
  }
  void Consume(size_t size) {
    std::memmove(room.data(), room.data() + size, held - size);
    held -= size;
  }

  Phase phase = Phase::kHead;
  bool begun = false;
  bool is_http = false;  // the parser, which takes a head by its lines, has its first bytes
  std::optional<Parser> parser{std::in_place};
  std::array<std::byte, kRoom> room;
  uint64_t most = kMostBody;
  size_t held = 0;    // bytes in `room`
  Bytes body;         // of a known size
  size_t filled = 0;  // of it
};

Result<bool> HttpResponseReader::State::Parse() {
  while (held > 0) {
    if (phase == Phase::kHead && !std::exchange(is_http, true) && !LooksLikeHttp())
      return Corrupt("it does not begin with HTTP/1.");
    if (phase == Phase::kUnsized && parser->chunked() && held < kLeastOfChunks) return false;
    error_code ec;
    const size_t used = parser->put(boost::asio::const_buffer(room.data(), held), ec);
    Consume(used);
    if (ec == http::error::need_more) {
      if (held == room.size()) return Corrupt("its head is too long");
      return false;
    }
    if (ec == http::error::body_limit) return TooLong();
    if (ec) return Corrupt(ec.message());
    if (phase == Phase::kHead && parser->is_header_done()) {
      if (parser->status / 100 == 1) {  // 100 Continue and the like: the answer comes after it
        parser.emplace();
        is_http = false;
        continue;
      }
      if (TRY(HeadRead())) return true;
      if (phase == Phase::kSized) return false;
    }
    if (parser->is_done()) return EndUnsized();
  }
  return false;
}

Result<bool> HttpResponseReader::State::EndUnsized() {
  if (parser->header_length.value_or(0) > parser->body.size()) return Corrupt(kTooShort);
  phase = Phase::kWhole;
  return true;
}

// The head is there: what kind of body follows? True: none that has not come with it.
Result<bool> HttpResponseReader::State::HeadRead() {
  if (parser->chunked() || parser->need_eof()) {
    phase = Phase::kUnsized;
    parser->eager(true);
    parser->most = std::min(most, kMostUnsizedBody);
    return false;
  }
  const uint64_t size = parser->content_length_remaining().value_or(0);
  const uint64_t header_length = parser->header_length.value_or(0);
  if (size > most) return TooLong();
  if (header_length > size) return Corrupt(kTooShort);
  phase = Phase::kSized;
  filled = 0;
  body = AllocateBody(size, header_length);
  TakeSizedFromRoom();
  return phase == Phase::kWhole;
}

void HttpResponseReader::State::TakeSizedFromRoom() {
  const size_t there = std::min(held, body.size());
  if (there > 0) std::memcpy(body.mutable_data(), room.data(), there);
  Consume(there);
  filled = there;
  if (filled == body.size()) phase = Phase::kWhole;
}

HttpResponseReader::HttpResponseReader() : state_(std::make_unique<State>()) {}
HttpResponseReader::~HttpResponseReader() = default;

void HttpResponseReader::Limit(uint64_t most) { state_->most = std::min(most, kMostBody); }

bool HttpResponseReader::begun() const { return state_->begun; }

std::span<std::byte> HttpResponseReader::Room() {
  State& s = *state_;
  if (s.phase == State::Phase::kWhole) return {};
  if (s.phase == State::Phase::kSized) return s.body.mutable_span().subspan(s.filled);
  return std::span(s.room).subspan(s.held);
}

bool HttpResponseReader::EndsWithRoom() const { return state_->phase == State::Phase::kSized; }

Result<bool> HttpResponseReader::Filled(size_t size) {
  State& s = *state_;
  CHECK(size <= Room().size());
  s.begun = s.begun || size > 0;
  if (s.phase != State::Phase::kSized) {
    s.held += size;
    return s.Parse();
  }
  s.filled += size;
  if (s.filled < s.body.size()) return false;
  s.phase = State::Phase::kWhole;
  return true;
}

Result<bool> HttpResponseReader::Closed() {
  State& s = *state_;
  if (s.phase == State::Phase::kWhole) return true;
  error_code ec;
  if (s.phase == State::Phase::kUnsized && s.parser->need_eof()) s.parser->put_eof(ec);
  if (s.phase != State::Phase::kUnsized || ec || !s.parser->is_done()) {
    return Fail(ErrorCode::kIo, "the server closed the connection in the middle of its answer");
  }
  return s.EndUnsized();
}

HttpClientResponse HttpResponseReader::Take() {
  State& s = *state_;
  CHECK(s.phase == State::Phase::kWhole);
  HttpClientResponse answer{.status = s.parser->status,
                            .header_length = s.parser->header_length,
                            .body = std::move(s.body),
                            .keep_alive = s.parser->keep_alive() && s.held == 0};
  if (std::string& body = s.parser->body; !body.empty()) {
    if (const auto length = s.parser->header_length) {
      answer.body = AllocateBody(body.size(), *length);
      std::memcpy(answer.body.mutable_data(), body.data(), body.size());
    } else {
      const auto kept = std::make_shared<std::string>(std::move(body));
      answer.body = Bytes::Wrap(kept, reinterpret_cast<std::byte*>(kept->data()), kept->size());
    }
  }
  s.body = {};
  s.begun = false;
  s.is_http = false;
  s.held = 0;
  s.phase = State::Phase::kHead;
  s.parser.emplace();
  return answer;
}

}  // namespace weir::http
