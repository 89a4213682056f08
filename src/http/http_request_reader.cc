#include "http/http_request_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include <boost/beast/http/basic_parser.hpp>

namespace weir::http {
namespace {

namespace beast = boost::beast;
using beast::http::field;

// The most that is read at once, which is also how far a body may pass the budget; and the most of an
// announced chunk that memory is taken for.
constexpr size_t kReadAtOnce = 1 << 20;
constexpr size_t kLeastChunked = 4096;
constexpr size_t kUsualHeaders = 16;

HttpRefusal BadChunkLine() { return {400, "not a request of HTTP/1.1: a line of a chunk ends badly"}; }
HttpRefusal TooManyBytes() { return {503, "too many bytes of requests are in flight", true}; }

// The length of the head with its empty line; 0 while it has not all come. Nothing when a line ends without
// a carriage return or goes on in the next: what proxies read differently is not read at all. `scanned` is
// where to go on.
std::optional<size_t> HeadLength(std::string_view text, size_t& scanned) {
  while (true) {
    const size_t line_feed = text.find('\n', scanned);
    if (line_feed == text.npos) {
      scanned = text.size();
      return 0;
    }
    if (line_feed == 0 || text[line_feed - 1] != '\r') return std::nullopt;
    scanned = line_feed;
    const std::string_view next = text.substr(line_feed + 1);
    if (next.empty() || next == "\r") return 0;
    if (next[0] == ' ' || next[0] == '\t') return std::nullopt;
    if (next.starts_with("\r\n")) return line_feed + 3;
    if (next[0] == '\r') return std::nullopt;
    ++scanned;
  }
}

// The end of a chunk and the header of the next one that have not all come, or trailers: no line of them may
// end without a carriage return. `text` may go on with bytes of a body where `first_only`.
bool HasBareLineFeed(std::string_view text, bool first_only) {
  size_t at = text.starts_with("\r\n") ? 2 : 0;
  while ((at = text.find('\n', at)) != text.npos) {
    if (at == 0 || text[at - 1] != '\r') return true;
    if (first_only) return false;
    ++at;
  }
  return false;
}

HttpRefusal Refused(beast::error_code code, const HttpLimits& limits) {
  using beast::http::error;
  if (code == error::body_limit)
    return {413, fmt::format("the body is larger than {} bytes", limits.max_body)};
  return {400, fmt::format("not a request of HTTP/1.1: {}", code.message())};
}

}  // namespace

// Beast's parser, telling the reader what it finds. One message; the reader makes another for the next.
class HttpRequestReader::Parser final : public beast::http::basic_parser<true> {
 public:
  explicit Parser(HttpRequestReader& reader) : reader_(reader) {
    header_limit(static_cast<std::uint32_t>(std::min<size_t>(reader.capacity_, 1U << 30)));
    body_limit(reader.limits_.max_body);
  }

  // Consumes what it can of `data`; a refusal where the message is broken or wants what is not to be had.
  std::variant<size_t, HttpRefusal> Put(std::span<const std::byte> data) {
    beast::error_code error;
    const size_t used = put(boost::asio::const_buffer(data.data(), data.size()), error);
    if (refusal_) return *std::move(refusal_);
    if (error && error != beast::http::error::need_more) return Refused(error, reader_.limits_);
    return used;
  }
  bool is_http10() const { return is_http10_; }
  bool expects_continue() const { return expects_continue_; }
  size_t aligned() const { return aligned_; }
  std::uint64_t chunk_left() const { return chunk_left_; }

 private:
  using string_view = beast::string_view;
  using error_code = beast::error_code;

  void Refuse(HttpRefusal refusal, error_code& error) {
    refusal_ = std::move(refusal);
    error = beast::http::error::bad_value;
  }
  void Refuse(int status, std::string message, error_code& error) {
    Refuse(HttpRefusal{status, std::move(message)}, error);
  }

  void on_request_impl(beast::http::verb, string_view method, string_view target, int version,
                       error_code& error) override {
    std::string_view path = target;
    if (!path.starts_with('/')) path = OfAbsolute(path, reader_.request_.host);
    if (path.empty()) return Refuse(400, "the request's target is no path", error);
    const size_t query = std::min(path.find('?'), path.size());
    reader_.request_.method = method;
    reader_.request_.path = path.substr(0, query);
    reader_.request_.query = path.substr(std::min(query + 1, path.size()));
    is_http10_ = version < 11;
  }

  // The path of "http://host/path", which servers must take as well, and whose `host` overrules the header;
  // "*" as it is.
  static std::string_view OfAbsolute(std::string_view target, std::string_view& host) {
    if (target == "*") return target;
    const size_t scheme = target.find("://");
    if (scheme == target.npos) return {};
    const size_t path = std::min(target.find('/', scheme + 3), target.size());
    host = target.substr(scheme + 3, path - scheme - 3);
    if (host.empty()) return {};
    return path == target.size() ? "/" : target.substr(path);
  }

  void on_field_impl(field name, string_view name_text, string_view value, error_code& error) override {
    if (in_body_) return;  // trailers say nothing to us
    reader_.request_.headers.emplace_back(name_text, value);
    if (name == field::host) {
      if (std::exchange(has_host_, true)) Refuse(400, "more than one Host", error);
      if (reader_.request_.host.empty()) reader_.request_.host = value;
    } else if (name == field::origin) {
      if (reader_.request_.origin) Refuse(400, "more than one Origin", error);
      reader_.request_.origin = value;
    } else if (name == field::content_length) {
      if (std::exchange(has_length_, true)) Refuse(400, "more than one Content-Length", error);
      if (value.find(',') != value.npos) Refuse(400, "a list as Content-Length", error);
    } else if (name == field::transfer_encoding) {
      if (is_http10_) return Refuse(400, "a Transfer-Encoding in HTTP/1.0", error);
      if (!beast::iequals(value, "chunked")) {
        Refuse(501, "a Transfer-Encoding other than chunked is not supported", error);
      }
    } else if (name == field::content_encoding) {
      if (!beast::iequals(value, "identity")) {
        Refuse(415, "compressed bodies are not supported: send it without a Content-Encoding", error);
      }
    } else if (name == field::expect) {
      if (!beast::iequals(value, "100-continue")) return Refuse(417, "an unknown expectation", error);
      expects_continue_ = !is_http10_;
    } else if (!reader_.limits_.align_after.empty() &&
               beast::iequals(name_text, reader_.limits_.align_after)) {
      std::from_chars(value.data(), value.data() + value.size(), aligned_);
    }
  }

  void on_header_impl(error_code& error) override {
    if (!has_host_ && !is_http10_)
      return Refuse(400, "a request of HTTP/1.1 has a Host, and this has none", error);
    in_body_ = true;
    eager(true);
  }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  size_t on_body_impl(string_view, error_code&) override { return 0; }  // the reader takes it itself
  void on_chunk_header_impl(std::uint64_t size, string_view, error_code&) override { chunk_left_ = size; }
  size_t on_chunk_body_impl(std::uint64_t remaining, string_view data, error_code& error) override {
    if (!reader_.Grow(data.size(), std::min<std::uint64_t>(remaining, kReadAtOnce))) {
      Refuse(TooManyBytes(), error);
      return 0;
    }
    std::memcpy(reader_.request_.body.mutable_data() + reader_.body_filled_, data.data(), data.size());
    reader_.body_filled_ += data.size();
    chunk_left_ -= data.size();
    return data.size();
  }
  void on_response_impl(int, string_view, int, error_code&) override {}
  void on_finish_impl(error_code&) override {}

  HttpRequestReader& reader_;
  std::optional<HttpRefusal> refusal_;
  size_t aligned_ = 0;
  std::uint64_t chunk_left_ = 0;  // bytes of the chunk that are to come
  bool is_http10_ = false, has_length_ = false, has_host_ = false, expects_continue_ = false,
       in_body_ = false;
};

HttpRequestReader::HttpRequestReader(const HttpLimits& limits, std::shared_ptr<ByteBudget> budget)
    : limits_(limits),
      budget_(std::move(budget)),
      capacity_(std::max<size_t>(limits.max_header, 4096)),
      parser_(std::make_unique<std::optional<Parser>>()) {}

HttpRequestReader::~HttpRequestReader() = default;

std::span<const std::byte> HttpRequestReader::Waiting() const {
  return {buffer_.get() + begin_, buffer_.get() + end_};
}

std::span<std::byte> HttpRequestReader::Space() {
  if (state_ == State::kLength) {
    return request_.body.mutable_span().subspan(body_filled_,
                                                std::min(kReadAtOnce, body_size_ - body_filled_));
  }
  if (!buffer_) buffer_ = std::make_unique_for_overwrite<std::byte[]>(capacity_);
  if (begin_ > 0 && (begin_ == end_ || end_ == capacity_)) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  return {buffer_.get() + end_, buffer_.get() + capacity_};
}

void HttpRequestReader::Filled(size_t size, Instant now) {
  filled_at_ = now;
  if (state_ == State::kLength) {
    body_filled_ += size;
    over_budget_ = !body_share_->Grow(size);
    return;
  }
  if (phase() == Phase::kIdle) first_byte_ = now;
  end_ += size;
}

void HttpRequestReader::Discard() {
  begin_ = end_ = 0;
  state_ = State::kRefused;
}

HttpRequestReader::Phase HttpRequestReader::phase() const {
  if (state_ != State::kHead) return Phase::kBody;
  return begin_ == end_ ? Phase::kIdle : Phase::kHead;
}

bool HttpRequestReader::TakeExpectsContinue() {
  return phase() == Phase::kBody && std::exchange(expects_continue_, false);
}

HttpRequestReader::Step HttpRequestReader::Next() {
  Step step = NeedMore{};
  if (state_ == State::kHead) step = ReadHead();
  if (state_ == State::kChunks) step = ReadChunks();
  if (state_ == State::kLength && over_budget_) {
    step = TooManyBytes();
  } else if (state_ == State::kLength && body_filled_ == body_size_) {
    step = Finish();
  }
  if (std::holds_alternative<HttpRefusal>(step)) Discard();
  return step;
}

HttpRequestReader::Step HttpRequestReader::ReadHead() {
  const auto text = [this] {
    return std::string_view(reinterpret_cast<const char*>(Waiting().data()), Waiting().size());
  };
  // Empty lines before a request are to be passed over (RFC 9112, 2.2).
  while (text().starts_with("\r\n")) {
    begin_ += 2;
    scanned_ = 0;
  }
  const std::optional<size_t> length = HeadLength(text(), scanned_);
  if (!length) return HttpRefusal{400, "not a request of HTTP/1.1: a line ends badly or is folded"};
  if (*length > limits_.max_header || (*length == 0 && Waiting().size() >= limits_.max_header)) {
    return HttpRefusal{431, fmt::format("the headers are larger than {} bytes", limits_.max_header)};
  }
  if (*length == 0) return NeedMore{};

  request_ = {};
  const auto head = std::make_shared_for_overwrite<std::byte[]>(*length);
  std::memcpy(head.get(), Waiting().data(), *length);
  request_.head = Bytes::Wrap(head, head.get(), *length);
  request_.headers.reserve(kUsualHeaders);
  request_.first_byte = first_byte_;
  begin_ += *length;
  scanned_ = 0;
  Parser& parser = parser_->emplace(*this);
  auto put = parser.Put(request_.head.span());
  if (auto* refusal = std::get_if<HttpRefusal>(&put)) return std::move(*refusal);
  if (!parser.is_header_done()) return HttpRefusal{400, "not a request of HTTP/1.1"};
  keep_alive_ = parser.keep_alive();
  is_http10_ = parser.is_http10();
  is_head_ = request_.method == "HEAD";
  return StartBody(parser);
}

HttpRequestReader::Step HttpRequestReader::StartBody(const Parser& parser) {
  aligned_ = parser.aligned();
  body_began_ = filled_at_;
  body_filled_ = 0;
  expects_continue_ = parser.expects_continue() && Waiting().empty();
  if (parser.chunked()) {
    state_ = State::kChunks;
    return NeedMore{};
  }
  body_size_ = parser.content_length().value_or(0);
  if (body_size_ == 0) return Finish();
  body_filled_ = std::min(body_size_, Waiting().size());
  auto body = budget_->AllocatePartly(body_size_, aligned_, body_filled_);
  if (!body) return TooManyBytes();
  request_.body = std::move(body->bytes);
  body_share_ = body->share;
  over_budget_ = false;
  std::memcpy(request_.body.mutable_data(), Waiting().data(), body_filled_);
  begin_ += body_filled_;
  state_ = State::kLength;
  return NeedMore{};
}

HttpRequestReader::Step HttpRequestReader::ReadChunks() {
  // The parser takes it for granted that the end of a chunked body has five bytes, and aborts when it is
  // asked with fewer; no body ends in fewer.
  constexpr std::string_view kEnd = "0\r\n\r\n";
  // Behind what is left of a chunk.
  const auto behind = [this] {
    const std::string_view text(reinterpret_cast<const char*>(Waiting().data()), Waiting().size());
    return text.substr(std::min<std::uint64_t>((*parser_)->chunk_left(), text.size()));
  };
  if (Waiting().size() < kEnd.size()) {
    if (HasBareLineFeed(behind(), true)) return BadChunkLine();
    return NeedMore{};
  }
  auto put = (*parser_)->Put(Waiting());
  if (auto* refusal = std::get_if<HttpRefusal>(&put)) return std::move(*refusal);
  begin_ += std::get<size_t>(put);
  if ((*parser_)->is_done()) {
    request_.body = request_.body.Slice(0, body_filled_);
    return Finish();
  }
  if (HasBareLineFeed(behind(), false)) return BadChunkLine();
  if (Waiting().size() >= capacity_) return HttpRefusal{400, "a chunk's header or the trailers are too long"};
  return NeedMore{};
}

bool HttpRequestReader::Grow(size_t more, size_t announced) {
  if (body_filled_ + more > request_.body.size()) {
    const size_t wanted =
        std::max({body_filled_ + std::max(more, announced), 2 * request_.body.size(), kLeastChunked});
    auto grown = budget_->AllocatePartly(std::min(wanted, limits_.max_body), aligned_, body_filled_);
    if (!grown) return false;
    if (body_filled_ > 0) std::memcpy(grown->bytes.mutable_data(), request_.body.data(), body_filled_);
    request_.body = std::move(grown->bytes);
    body_share_ = grown->share;
  }
  return body_share_->Grow(more);
}

HttpRequestReader::Step HttpRequestReader::Finish() {
  state_ = State::kHead;
  expects_continue_ = false;
  request_.received = filled_at_;
  first_byte_ = filled_at_;  // of the next request, should a part of it be here already
  return std::move(request_);
}

}  // namespace weir::http
