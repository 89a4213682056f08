#include "dataset/tar.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/file.h"
#include "dataset/file_at.h"

namespace weir::dataset {
namespace {

constexpr int64_t kMaxWords = 1 << 20;  // bytes of a pax header, which may hold more than names
constexpr size_t kMaxName = 64 << 10;   // bytes: more than any file system takes
constexpr int64_t kMaxSize = int64_t{1} << 60;

// Places in a header (POSIX.1-2001, "ustar Interchange Format").
struct Field {
  size_t at, size;
};
constexpr Field kName{0, 100}, kMode{100, 8}, kUser{108, 8}, kGroup{116, 8}, kSize{124, 12}, kTime{136, 12},
    kChecksum{148, 8}, kType{156, 1}, kLink{157, 100}, kMagic{257, 8}, kPrefix{345, 155};

std::string_view Get(std::string_view block, Field field) { return block.substr(field.at, field.size); }

// The text of a field up to its first zero.
std::string_view GetText(std::string_view block, Field field) {
  const std::string_view text = Get(block, field);
  return text.substr(0, text.find('\0'));
}

void PutOctal(std::string& block, Field field, int64_t value) {
  block.replace(field.at, field.size - 1, fmt::format("{:0{}o}", value, field.size - 1));
}

// The sums of all bytes, with the checksum's taken as blanks. Some old programs summed signed bytes.
struct Sums {
  int64_t of_unsigned = 0, of_signed = 0;
};
Sums SumOf(std::string_view block) {
  Sums sums;
  for (size_t i = 0; i < block.size(); ++i) {
    const char c = i >= kChecksum.at && i < kChecksum.at + kChecksum.size ? ' ' : block[i];
    sums.of_unsigned += static_cast<unsigned char>(c);
    sums.of_signed += static_cast<signed char>(c);
  }
  return sums;
}

// Octal digits between blanks, or GNU's base 256 where the first bit is set.
Result<int64_t> GetNumber(std::string_view block, Field field) {
  std::string_view text = Get(block, field);
  const auto wrong = [&] {
    return Fail(ErrorCode::kCorrupt, fmt::format("the number at byte {} of a header is none", field.at));
  };
  if ((static_cast<unsigned char>(text[0]) & 0x80) != 0) {
    uint64_t value = static_cast<unsigned char>(text[0]) & 0x7f;
    for (const char c : text.substr(1)) {
      if (value >> 52 != 0) return wrong();
      value = value << 8 | static_cast<unsigned char>(c);
    }
    if (value > static_cast<uint64_t>(kMaxSize)) return wrong();
    return static_cast<int64_t>(value);
  }
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  text = text.substr(0, std::min(text.find_first_of(std::string_view(" \0", 2)), text.size()));
  if (text.empty()) return 0;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > kMaxSize)
    return wrong();
  return value;
}

// The facts that headers of type 'x', 'L' and 'K' give about the member behind them.
struct Words {
  std::string name, link;
  int64_t size = -1;
};

// Records "LENGTH KEY=VALUE\n", LENGTH counting all of it.
Status ReadPax(std::string_view text, Words& words) {
  const auto wrong = [] { return Fail(ErrorCode::kCorrupt, "a pax header is wrong"); };
  while (!text.empty()) {
    size_t length = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<size_t>(end - text.data());
    if (error != std::errc() || length > text.size() || length < digits + 3 || text[digits] != ' ' ||
        text[length - 1] != '\n') {
      return wrong();
    }
    const std::string_view record = text.substr(digits + 1, length - digits - 2);
    const size_t equals = record.find('=');
    if (equals == record.npos) return wrong();
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") words.name = value;
    if (key == "linkpath") words.link = value;
    if (key == "size") {
      const auto [stop, bad] = std::from_chars(value.data(), value.data() + value.size(), words.size);
      if (bad != std::errc() || stop != value.data() + value.size() || words.size < 0 ||
          words.size > kMaxSize)
        return wrong();
    }
    if (key.starts_with("GNU.sparse")) {
      return Fail(ErrorCode::kUnsupported, "a sparse member: write the archive without --sparse");
    }
    text.remove_prefix(length);
  }
  return {};
}

std::string_view CompressionOf(std::string_view head) {
  using namespace std::string_view_literals;
  if (head.starts_with("\x1f\x8b"sv)) return "gzip";
  if (head.starts_with("BZh"sv)) return "bzip2";
  if (head.starts_with("\xfd"
                       "7zXZ"sv))
    return "xz";
  if (head.starts_with("\x28\xb5\x2f\xfd"sv)) return "zstd";
  return "";
}

TarKind KindOf(char type) {
  if (type == '1') return TarKind::kHardLink;
  if (type == '2') return TarKind::kSoftLink;
  return type == '0' || type == '\0' || type == '7' ? TarKind::kFile : TarKind::kOther;
}

// Walks over the headers of one archive.
class Scan {
 public:
  Scan(const TarRead& read, int64_t archive_bytes, const std::function<Status(const TarMember&)>& found)
      : read_(read), end_(archive_bytes), found_(found) {}

  Status Run() {
    while (at_ < end_) {
      const int64_t header_at = at_;
      Result<bool> more = Step();
      if (!more) return Context(fmt::format("byte {}", header_at), std::move(more).error());
      if (!*more) break;
    }
    return {};
  }

 private:
  // One header and what belongs to it; false at the archive's end.
  Result<bool> Step() {
    const std::string block = TRY(read_(at_, kTarBlock));
    if (at_ == 0 && !CompressionOf(block).empty()) {
      const std::string_view how = CompressionOf(block);
      return Fail(
          ErrorCode::kUnsupported,
          fmt::format("compressed with {}: uncompress it first, so that its pictures can be reached", how));
    }
    if (std::ssize(block) < kTarBlock) return Fail(ErrorCode::kCorrupt, "the archive is cut in a header");
    TarHeader header = TRY(ParseTarHeader(std::as_bytes(std::span(block))));
    if (header.is_end) return HasMoreBehindEnd();
    at_ += kTarBlock;
    if (header.type == 'L' || header.type == 'x' || header.type == 'g' || header.type == 'K') {
      TRY_STATUS(TakeWords(header));
      return true;
    }
    if (words_.name.size() > kMaxName) {
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("a member's name is of {} bytes, more than the {} that "
                              "are read: give it a shorter one",
                              words_.name.size(), kMaxName));
    }
    if (words_.size >= 0) header.size = words_.size;
    if (!words_.name.empty()) header.name = std::move(words_.name);
    if (!words_.link.empty()) header.link = std::move(words_.link);
    words_ = {};
    if (header.type == 'S') {
      return Fail(ErrorCode::kUnsupported, "a sparse member: write the archive without --sparse");
    }
    // Links and devices may tell of a size, and nothing follows them (POSIX, "size").
    const bool has_bytes = header.type < '1' || header.type > '6';
    if (!has_bytes) header.size = 0;
    if (header.size > end_ - at_) {
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("the archive is cut: a member of {} bytes has {}", header.size, end_ - at_));
    }
    // Old programs write a folder as a file whose name ends with a slash; GNU's 'D' and 'V' are no files.
    const bool is_folder =
        header.type == '5' || header.type == 'D' || header.type == 'V' || header.name.ends_with('/');
    if (!is_folder) {
      TRY_STATUS(
          found_({std::move(header.name), at_, header.size, KindOf(header.type), std::move(header.link)}));
    }
    at_ += (header.size + kTarBlock - 1) / kTarBlock * kTarBlock;
    return true;
  }

  // Passes over the zeros at the archive's end; true where another archive stands behind them.
  Result<bool> HasMoreBehindEnd() {
    while (at_ < end_) {
      const std::string part = TRY(read_(at_, kMaxWords));
      if (part.empty()) return false;
      const size_t used = part.find_first_not_of('\0');
      at_ += used == part.npos ? std::ssize(part) : static_cast<int64_t>(used) / kTarBlock * kTarBlock;
      if (used != part.npos) break;
    }
    if (at_ >= end_) return false;
    const std::string block = TRY(read_(at_, kTarBlock));
    if (std::ssize(block) == kTarBlock && ParseTarHeader(std::as_bytes(std::span(block)))) return true;
    TRY_STATUS(found_({"", at_, end_ - at_, TarKind::kRest, ""}));
    return false;
  }

  Status TakeWords(const TarHeader& header) {
    if (header.size > std::min(kMaxWords, end_ - at_)) {
      return Fail(ErrorCode::kCorrupt, fmt::format("{} bytes about a member", header.size));
    }
    const std::string text = TRY(read_(at_, header.size));
    if (std::ssize(text) != header.size) return Fail(ErrorCode::kCorrupt, "the archive is cut in a header");
    at_ += (header.size + kTarBlock - 1) / kTarBlock * kTarBlock;
    if (header.type == 'L') words_.name = text.substr(0, text.find('\0'));
    if (header.type == 'K') words_.link = text.substr(0, text.find('\0'));
    if (header.type == 'x') return ReadPax(text, words_);
    return {};
  }

  const TarRead& read_;
  const int64_t end_;
  const std::function<Status(const TarMember&)>& found_;
  int64_t at_ = 0;
  Words words_;
};

}  // namespace

std::string FormatTarHeader(std::string_view name, int64_t size) {
  CHECK(!name.empty() && name.size() <= kName.size && size >= 0 && size < int64_t{8} << 30);
  std::string block(kTarBlock, '\0');
  block.replace(kName.at, name.size(), name);
  PutOctal(block, kMode, 0644);
  PutOctal(block, kUser, 0);
  PutOctal(block, kGroup, 0);
  PutOctal(block, kSize, size);
  PutOctal(block, kTime, 0);
  block[kType.at] = '0';
  block.replace(kMagic.at, kMagic.size, std::string_view("ustar\00000", 8));
  block.replace(kChecksum.at, kChecksum.size, "        ");
  const std::string sum = fmt::format("{:06o}", SumOf(block).of_unsigned);
  block.replace(kChecksum.at, 6, sum);
  block[kChecksum.at + 6] = '\0';
  return block;
}

std::string TarPadding(int64_t size) {
  return std::string(static_cast<size_t>((kTarBlock - size % kTarBlock) % kTarBlock), '\0');
}

Result<TarHeader> ParseTarHeader(std::span<const std::byte> bytes) {
  CHECK(std::ssize(bytes) == kTarBlock);
  const std::string_view block(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  TarHeader header;
  if (block.find_first_not_of('\0') == block.npos) {
    header.is_end = true;
    return header;
  }
  const int64_t sum = TRY(GetNumber(block, kChecksum));
  const Sums sums = SumOf(block);
  if (sum != sums.of_unsigned && sum != sums.of_signed) {
    return Fail(ErrorCode::kCorrupt, "no tar header is here: its checksum is wrong");
  }
  header.type = block[kType.at];
  header.size = TRY(GetNumber(block, kSize));
  header.name = GetText(block, kName);
  header.link = GetText(block, kLink);
  // The prefix is POSIX's; GNU's header, whose magic ends in blanks, keeps other things there.
  if (Get(block, kMagic).starts_with(std::string_view("ustar\0", 6)) && !GetText(block, kPrefix).empty()) {
    header.name = fmt::format("{}/{}", GetText(block, kPrefix), header.name);
  }
  return header;
}

Status ScanTar(const TarRead& read, int64_t archive_bytes,
               const std::function<Status(const TarMember&)>& found) {
  return Scan(read, archive_bytes, found).Run();
}

Status ScanTar(const std::string& path, const std::function<Status(const TarMember&)>& found) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return FailErrno(path, errno);
  struct stat facts{};
  if (::fstat(fd.get(), &facts) != 0) return FailErrno(path, errno);
  if (!S_ISREG(facts.st_mode))
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: not a regular file", path));
  const TarRead read = [&](int64_t offset, int64_t size) -> Result<std::string> {
    std::string text(static_cast<size_t>(size), '\0');
    text.resize(TRY(ReadAt(fd, "reading", std::as_writable_bytes(std::span(text)), offset)));
    return text;
  };
  Status status = ScanTar(read, facts.st_size, found);
  if (!status) return Context(path, std::move(status).error());
  return {};
}

bool IsTar(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  std::array<std::byte, kTarBlock> block;
  if (!fd.valid() || ::read(fd.get(), block.data(), block.size()) != kTarBlock) return false;
  const Result<TarHeader> header = ParseTarHeader(block);
  return header && !header->is_end;
}

}  // namespace weir::dataset
