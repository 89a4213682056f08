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
  constexpr std::string_view kName = "boundary=";
  size_t at = 0;
  while (at < type.size() && !SameName(type.substr(at, kName.size()), kName)) ++at;
  if (at == type.size()) return "";
  std::string_view value = type.substr(at + kName.size());
  value = Trim(value.substr(0, value.find(';')));
  if (value.size() >= 2 && value.front() == '"') value = value.substr(1, value.find('"', 1) - 1);
  return std::string(value);
}

// The blank line that ends a head: where the head ends, and where what follows begins. Lines may end with LF
// alone, as those of simple cameras do.
struct HeadEnd {
  size_t end = 0, next = 0;
};
std::optional<HeadEnd> FindHeadEnd(std::string_view text) {
  for (size_t line = text.find('\n'); line != std::string_view::npos; line = text.find('\n', line + 1)) {
    const std::string_view after = text.substr(line + 1);
    if (after.starts_with('\n')) return HeadEnd{line, line + 2};
    if (after.starts_with("\r\n")) return HeadEnd{line, line + 3};
  }
  return std::nullopt;
}

std::string_view WithoutLineEnd(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

// Whether the bytes are those of a JPEG up to its end mark, with line ends or padding behind it.
bool IsWholeJpeg(std::string_view data) {
  if (!data.starts_with("\xff\xd8")) return false;
  while (!data.empty() && (data.back() == '\0' || data.back() == '\r' || data.back() == '\n'))
    data.remove_suffix(1);
  return data.ends_with("\xff\xd9");
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
  while (true) {
    const auto end = FindHeadEnd(raw_);
    if (!end) {
      if (raw_.size() > options_.max_head)
        return Fail(ErrorCode::kOverloaded, "the response's headers are too long");
      return false;
    }
    TRY_STATUS(ReadResponse(std::string_view(raw_).substr(0, end->end)));
    raw_.erase(0, end->next);
    if (response_->status >= 200) break;  // the others announce one that follows
  }
  begun_ = true;
  if (!chunked_) body_ = std::exchange(raw_, {});
  return true;
}

Status MultipartReader::ReadResponse(std::string_view head) {
  if (!head.starts_with("HTTP/1.")) return Corrupt("the answer is not HTTP/1");
  const auto status = ParseCount(head.substr(std::min<size_t>(9, head.size())), 10);
  if (!status || *status < 100 || *status > 999) return Corrupt("the answer has no status");
  response_.emplace(Response{.status = static_cast<int64_t>(*status), .location = {}, .challenges = {}});
  std::string type;
  ForEachHeader(head, [&](std::string_view name, std::string_view value) {
    if (SameName(name, "content-type")) type = value;
    if (SameName(name, "transfer-encoding") && SameName(value, "chunked")) chunked_ = true;
    if (SameName(name, "location")) response_->location = value;
    if (SameName(name, "www-authenticate")) response_->challenges.emplace_back(value);
  });
  if (*status < 200) return {};
  if (*status == 401)
    return Fail(ErrorCode::kInvalidArgument,
                "status 401: it wants a user and a password: http://USER:PASSWORD@HOST/...");
  const bool later = *status >= 500 || *status == 408 || *status == 429;
  if (*status != 200)
    return Fail(later ? ErrorCode::kIo : ErrorCode::kInvalidArgument, fmt::format("status {}", *status));
  if (!SameName(std::string_view(type).substr(0, 9), "multipart"))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("it sends {}, not multipart/x-mixed-replace", Quoted(type)));
  boundary_ = BoundaryOf(type);
  if (boundary_.size() > 200) return Corrupt("the boundary is too long");
  if (!boundary_.starts_with("--")) boundary_ = "--" + boundary_;
  return {};
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

// Servers write another delimiter than they declare, with two dashes more or less: the first line that looks
// like one is it.
Result<bool> MultipartReader::FindBoundary() {
  std::string_view text = rest();
  text.remove_prefix(std::min(text.find_first_not_of("\r\n"), text.size()));
  const size_t line = text.find('\n');
  if (line == std::string_view::npos) {
    if (text.size() > options_.max_head) return Corrupt("there is no boundary where a part should begin");
    return false;
  }
  const std::string_view first = Trim(text.substr(0, line));
  if (first.size() <= 200 && first.starts_with("--") && first != boundary_ + "--") {
    boundary_ = first;
  } else if (first.size() <= 200 && first.size() > 2 && "--" + std::string(first) == boundary_) {
    boundary_ = first;
  }
  boundary_seen_ = true;
  return true;
}

// False: more bytes are needed, or the stream has ended.
Result<bool> MultipartReader::BeginPart() {
  if (!boundary_seen_ && !TRY(FindBoundary())) return false;
  const size_t mark = rest().find(boundary_);
  if (mark == std::string_view::npos) {
    if (rest().size() > options_.max_head) return Corrupt("there is no boundary where a part should begin");
    return false;
  }
  const std::string_view after = rest().substr(mark + boundary_.size());
  if (after.starts_with("--")) {
    ended_ = true;
    return false;
  }
  const auto end = FindHeadEnd(after);
  if (!end) {
    if (after.size() > options_.max_head)
      return Fail(ErrorCode::kOverloaded, "a part's headers are too long");
    return false;
  }
  TRY_STATUS(ReadPartHead(after.substr(0, end->end)));
  at_ += mark + boundary_.size() + end->next;
  in_part_ = true;
  doubtful_ = false;
  searched_ = 0;
  return true;
}

// Where the line begins that is the next delimiter, from the part's begin.
std::optional<size_t> MultipartReader::FindDelimiter(std::string_view text) {
  const std::string line = "\n" + boundary_;
  const size_t found = text.find(line, searched_);
  if (found != std::string_view::npos) return found + 1;
  searched_ = text.size() - std::min(text.size(), line.size());
  return std::nullopt;
}

// The bytes of the part, once they are known. A length is believed where the data is a whole JPEG, or a
// delimiter follows; else the next delimiter ends the part.
Result<std::optional<size_t>> MultipartReader::PartSize() {
  const std::string_view text = rest();
  const bool arrived = length_ && text.size() >= *length_;
  if (arrived) {
    if (IsWholeJpeg(text.substr(0, *length_))) return length_;
    std::string_view after = text.substr(*length_);
    after.remove_prefix(std::min(after.find_first_not_of("\r\n"), after.size()));
    if (after.starts_with(boundary_)) return length_;
    if (boundary_.starts_with(after.substr(0, boundary_.size()))) return std::optional<size_t>();
  }
  if (arrived && std::exchange(doubtful_, false)) searched_ = 0;
  const auto delimiter = FindDelimiter(text);
  if (!delimiter) {
    if (text.size() > options_.max_part)
      return Fail(ErrorCode::kOverloaded, "a frame without a delimiter is over the limit");
    return std::optional<size_t>();
  }
  const std::string_view data = WithoutLineEnd(text.substr(0, *delimiter));
  // Before its length has come, bytes of a picture may look like a delimiter.
  if (length_ && !arrived && !IsWholeJpeg(data)) {
    searched_ = *delimiter;
    doubtful_ = true;
    return std::optional<size_t>();
  }
  wrong_length_ = length_ && *length_ != data.size() && *length_ != *delimiter;
  return data.size();
}

MultipartReader::Part MultipartReader::TakePart(size_t size) {
  Part part{std::string(rest().substr(0, size)), timestamp_, std::exchange(wrong_length_, false)};
  body_.erase(0, at_ + size);
  at_ = 0;
  in_part_ = false;
  return part;
}

Result<std::optional<MultipartReader::Part>> MultipartReader::Next() {
  if (!begun_ && !TRY(ReadHead())) return std::optional<Part>();
  if (chunked_) TRY_STATUS(Dechunk());
  if (!in_part_ && !TRY(BeginPart())) {
    ended_ = ended_ || last_chunk_;
    return std::optional<Part>();
  }
  const auto size = TRY(PartSize());
  if (size) return std::optional(TakePart(*size));
  if (!last_chunk_) return std::optional<Part>();
  ended_ = true;
  return Close();
}

std::optional<MultipartReader::Part> MultipartReader::Close() {
  if (!in_part_) return std::nullopt;
  const std::string_view data = WithoutLineEnd(rest());
  const bool whole = IsWholeJpeg(data);
  if (!whole && (!length_ || data.size() != *length_)) return std::nullopt;
  wrong_length_ = length_ && *length_ != data.size() && *length_ != rest().size();
  return TakePart(rest().size());
}

}  // namespace weir::watch
