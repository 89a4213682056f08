#include "feed/array_header.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "dataset/source.h"

namespace weir::feed {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

// Reads the dictionary of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (60, 3), }.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  struct Facts {
    std::optional<std::string> type;
    std::optional<bool> fortran;
    std::optional<std::vector<int64_t>> shape;
  };
  Result<Facts> Read() {
    Facts facts;
    if (!Take('{')) return Wrong();
    while (!Take('}')) {
      const std::string key = TRY(ReadText());
      if (!Take(':')) return Wrong();
      if (key == "descr") {
        if (Peek() == '[')
          return Fail(ErrorCode::kUnsupported, "an array of structures: split its fields into arrays");
        facts.type = TRY(ReadText());
      } else if (key == "fortran_order") {
        facts.fortran = TRY(ReadBool());
      } else if (key == "shape") {
        facts.shape = TRY(ReadShape());
      } else {
        return Wrong();
      }
      if (!Take(',') && Peek() != '}') return Wrong();
    }
    return facts;
  }

 private:
  static std::unexpected<Error> Wrong() {
    return Fail(ErrorCode::kCorrupt, "the header of an array cannot be read: not a file of numpy");
  }
  char Peek() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n')) text_.remove_prefix(1);
    return text_.empty() ? '\0' : text_.front();
  }
  bool Take(char wanted) {
    if (Peek() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }
  Result<std::string> ReadText() {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return Wrong();
    const size_t end = text_.find(quote, 1);
    if (end == text_.npos) return Wrong();
    std::string text(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return text;
  }
  Result<bool> ReadBool() {
    Peek();
    for (const std::string_view word : {"True", "False"}) {
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(word.size());
      return word == "True";
    }
    return Wrong();
  }
  Result<std::vector<int64_t>> ReadShape() {
    constexpr size_t kMostDimensions = 32;
    std::vector<int64_t> shape;
    if (!Take('(')) return Wrong();
    while (!Take(')')) {
      Peek();
      int64_t side = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), side);
      if (error != std::errc() || side < 0 || shape.size() == kMostDimensions) return Wrong();
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      shape.push_back(side);
      if (!Take(',') && Peek() != ')') return Wrong();
    }
    return shape;
  }

  std::string_view text_;
};

// Returns the bytes of one number: "<f4" has 4.
Result<size_t> BytesOfType(const std::string& type) {
  constexpr std::string_view kOrders = "<>|=", kKinds = "biufc";
  size_t bytes = 0;
  const char* const end = type.data() + type.size();
  const bool has_kind = type.size() >= 3 && kOrders.contains(type[0]) && kKinds.contains(type[1]);
  const auto read = has_kind ? std::from_chars(type.data() + 2, end, bytes) : std::from_chars_result{};
  if (has_kind && read.ec == std::errc() && read.ptr == end && bytes >= 1 && bytes <= 32) return bytes;
  return Fail(ErrorCode::kUnsupported,
              fmt::format("an array of type \"{}\": give numbers (integers, floats, complex, bool)",
                          EscapeBytes(type)));
}

}  // namespace

Result<ArrayHeader> ParseArrayHeader(std::span<const std::byte> head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const auto at = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(text[i])); };
  constexpr size_t kShort = 10, kLong = 12;  // what stands before the dictionary
  if (!text.starts_with(kMagic) || text.size() < kLong)
    return Fail(ErrorCode::kCorrupt, "not a file of numpy (.npy)");
  if (at(6) < 1 || at(6) > 3)
    return Fail(ErrorCode::kUnsupported, fmt::format("version {} of numpy's format: 1 to 3 are read", at(6)));
  const bool is_short = at(6) == 1;
  const size_t before = is_short ? kShort : kLong;
  const size_t length = is_short ? at(8) | at(9) << 8 : at(8) | at(9) << 8 | at(10) << 16 | at(11) << 24;
  if (length > text.size() - before)
    return Fail(ErrorCode::kCorrupt, "the header of an array is cut, or longer than any");
  const auto facts = TRY(HeaderReader(text.substr(before, length)).Read());
  if (!facts.type || !facts.fortran || !facts.shape)
    return Fail(ErrorCode::kCorrupt, "the header of an array lacks descr, fortran_order or shape");
  if (facts.shape->empty())
    return Fail(ErrorCode::kUnsupported, "an array without a dimension: the first one counts the records");
  if (*facts.fortran && facts.shape->size() > 1) {
    return Fail(ErrorCode::kUnsupported, "an array in Fortran's order: save numpy.ascontiguousarray of it");
  }
  ArrayHeader header;
  header.form.type = *facts.type;
  header.records = facts.shape->front();
  header.form.shape.assign(facts.shape->begin() + 1, facts.shape->end());
  header.begin = before + length;
  uint64_t bytes = TRY(BytesOfType(*facts.type));
  for (const int64_t side : header.form.shape) {
    if (static_cast<uint64_t>(side) > dataset::kMaxFileBytes / bytes) {
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("a record of more than {} bytes", dataset::kMaxFileBytes));
    }
    bytes *= static_cast<uint64_t>(side);
    if (bytes == 0) return Fail(ErrorCode::kUnsupported, "records without a number: a side is 0");
  }
  header.form.bytes = bytes;
  return header;
}

}  // namespace weir::feed
