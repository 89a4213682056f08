#include "watch/multipart.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text.h"

namespace weir::watch {
namespace {

std::unexpected<Error> Corrupt(std::string message) { return Fail(ErrorCode::kCorrupt, std::move(message)); }

bool SameName(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return lower(x) == lower(y);
  });
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

// Calls `take(name, value)` for each line "name: value".
template <typename Take>
void ForEachHeader(std::string_view head, Take take) {
  while (!head.empty()) {
    const size_t end = std::min(head.find('\n'), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 1, head.size()));
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos) take(Trim(line.substr(0, colon)), Trim(line.substr(colon + 1)));
  }
}

std::optional<size_t> ParseCount(std::string_view text, int base) {
  size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// "multipart/x-mixed-replace; boundary=--x" to "--x"; empty if there is none.
std::string BoundaryOf(std::string_view type) {
  const size_t at = type.find("boundary=");
  if (at == std::string_view::npos) return "";
  std::string_view value = type.substr(at + 9);
  value = Trim(value.substr(0, value.find(';')));
  if (value.size() >= 2 && value.front() == '"') value = value.substr(1, value.find('"', 1) - 1);
  return std::string(value);
}

}  // namespace

void MultipartReader::Add(std::string_view bytes) { (begun_ && !chunked_ ? body_ : raw_).append(bytes); }

// Moves whole chunks from raw_ to body_.
Status MultipartReader::Dechunk() {
  size_t at = 0;
  while (!last_chunk_ && at < raw_.size()) {
    if (chunk_left_ > 0) {
      const size_t take = std::min(chunk_left_, raw_.size() - at);
      body_.append(raw_, at, take);
      at += take;
      chunk_left_ -= take;
      chunk_end_ = chunk_left_ == 0;
      continue;
    }
    const size_t line = raw_.find('\n', at);
    if (line == std::string::npos) {
      if (raw_.size() - at > 64) return Corrupt("a chunk's size is too long");
      break;
    }
    const std::string_view text = Trim(std::string_view(raw_).substr(at, line - at));
    at = line + 1;
    if (chunk_end_) {
      chunk_end_ = false;
      if (!text.empty()) return Corrupt("a chunk is longer than it says");
      continue;
    }
    const auto size = ParseCount(text, 16);
    if (!size || *size > (size_t{1} << 40)) return Corrupt("a chunk's size is no number");
    chunk_left_ = *size;
    last_chunk_ = *size == 0;
  }
  raw_.erase(0, at);
  return {};
}

Result<bool> MultipartReader::ReadHead() {
  const size_t end = raw_.find("\r\n\r\n");
  if (end == std::string::npos) {
    if (raw_.size() > options_.max_head)
      return Fail(ErrorCode::kOverloaded, "the response's headers are too long");
    return false;
  }
  const std::string_view head = std::string_view(raw_).substr(0, end);
  if (!head.starts_with("HTTP/1.")) return Corrupt("the answer is not HTTP/1");
  const auto status = ParseCount(head.substr(std::min<size_t>(9, head.size())), 10);
  if (!status) return Corrupt("the answer has no status");
  if (*status == 401)
    return Fail(ErrorCode::kInvalidArgument,
                "status 401: it wants a user and a password: http://USER:PASSWORD@HOST/...");
  if (*status != 200) return Fail(ErrorCode::kInvalidArgument, fmt::format("status {}", *status));
  std::string type;
  ForEachHeader(head, [&](std::string_view name, std::string_view value) {
    if (SameName(name, "content-type")) type = value;
    if (SameName(name, "transfer-encoding") && SameName(value, "chunked")) chunked_ = true;
  });
  if (!SameName(std::string_view(type).substr(0, 9), "multipart"))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("it sends {}, not multipart/x-mixed-replace", Quoted(type)));
  boundary_ = BoundaryOf(type);
  if (boundary_.size() > 200) return Corrupt("the boundary is too long");
  if (!boundary_.starts_with("--")) boundary_ = "--" + boundary_;
  begun_ = true;
  raw_.erase(0, end + 4);
  if (!chunked_) body_ = std::exchange(raw_, {});
  return true;
}

Status MultipartReader::ReadPartHead(std::string_view head) {
  length_.reset();
  timestamp_.reset();
  bool bad = false;
  ForEachHeader(head, [&](std::string_view name, std::string_view value) {
    if (SameName(name, "content-length")) {
      length_ = ParseCount(value, 10);
      bad = !length_;
    } else if (SameName(name, "x-timestamp")) {
      double seconds = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
      if (error == std::errc() && seconds > 0 && seconds < 1e10) timestamp_ = FromSeconds(seconds);
    }
  });
  if (bad) return Corrupt("a part's Content-Length is no number");
  if (length_ && *length_ > options_.max_part)
    return Fail(ErrorCode::kOverloaded,
                fmt::format("a frame of {} bytes is over the limit of {}", *length_, options_.max_part));
  return {};
}

Result<std::optional<MultipartReader::Part>> MultipartReader::Next() {
  if (!begun_ && !TRY(ReadHead())) return std::optional<Part>();
  if (chunked_) TRY_STATUS(Dechunk());
  std::string_view rest = std::string_view(body_).substr(at_);
  if (!in_part_) {
    const size_t mark = rest.find(boundary_);
    if (mark == std::string_view::npos) {
      if (rest.size() > options_.max_head) return Corrupt("there is no boundary where a part should begin");
      ended_ = ended_ || last_chunk_;
      return std::optional<Part>();
    }
    if (rest.substr(mark + boundary_.size()).starts_with("--\r\n")) {
      ended_ = true;
      return std::optional<Part>();
    }
    const size_t end = rest.find("\r\n\r\n", mark);
    if (end == std::string_view::npos) {
      if (rest.size() - mark > options_.max_head)
        return Fail(ErrorCode::kOverloaded, "a part's headers are too long");
      return std::optional<Part>();
    }
    TRY_STATUS(ReadPartHead(rest.substr(mark + boundary_.size(), end - mark - boundary_.size())));
    at_ += end + 4;
    in_part_ = true;
    rest = std::string_view(body_).substr(at_);
  }
  size_t size = 0;
  if (length_) {
    if (rest.size() < *length_) return std::optional<Part>();
    size = *length_;
  } else {
    size = rest.find("\r\n" + boundary_);
    if (size == std::string_view::npos) {
      if (rest.size() > options_.max_part)
        return Fail(ErrorCode::kOverloaded, "a frame without a length is over the limit");
      return std::optional<Part>();
    }
  }
  Part part{std::string(rest.substr(0, size)), timestamp_};
  body_.erase(0, at_ + size);
  at_ = 0;
  in_part_ = false;
  return std::optional(std::move(part));
}

}  // namespace weir::watch
