#include "identity/vectors_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/file.h"
#include "base/json.h"
#include "identity/code.h"

namespace weir::identity {
namespace {

constexpr size_t kMostLine = 1 << 20;  // bytes

// Some editors write the mark of UTF-8 at the beginning of a file.
std::string_view WithoutMark(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
}

// Lines of a file or of standard input.
class LineReader {
 public:
  explicit LineReader(UniqueFd fd) : fd_(std::move(fd)) {}
  // Returns the next line without its end; nullopt at the end.
  Result<std::optional<std::string>> Next() {
    for (;;) {
      const size_t end = buffer_.find('\n', begin_);
      if (end != std::string::npos || (ended_ && begin_ < buffer_.size())) {
        const size_t stop = end == std::string::npos ? buffer_.size() : end;
        std::string line = buffer_.substr(begin_, stop - begin_);
        begin_ = end == std::string::npos ? buffer_.size() : end + 1;
        if (number_++ == 0) line.erase(0, line.size() - WithoutMark(line).size());
        return line;
      }
      if (ended_) return std::nullopt;
      if (buffer_.size() - begin_ > kMostLine)
        return Fail(ErrorCode::kCorrupt,
                    fmt::format("line {}: longer than {} bytes", number_ + 1, kMostLine));
      buffer_.erase(0, begin_);
      begin_ = 0;
      char part[65536];
      const ssize_t got = ::read(fd_.get(), part, sizeof(part));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return FailErrno("read", errno);
      if (got == 0) ended_ = true;
      buffer_.append(part, static_cast<size_t>(std::max<ssize_t>(got, 0)));
    }
  }
  bool has_line() const { return buffer_.find('\n', begin_) != std::string::npos; }
  uint64_t number() const { return number_; }

 private:
  UniqueFd fd_;
  std::string buffer_;
  size_t begin_ = 0;
  uint64_t number_ = 0;
  bool ended_ = false;
};

Result<UniqueFd> OpenInput(const std::string& path) {
  UniqueFd fd(path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return FailErrno(path, errno);
  return fd;
}

class LineSource final : public VectorSource {
 public:
  LineSource(std::string path, UniqueFd fd) : path_(std::move(path)), lines_(std::move(fd)) {}
  // Does not wait for more lines once it has some, so that a pipe's rows are enrolled as they come.
  Result<std::vector<Enrolment>> Next(size_t most) override {
    std::vector<Enrolment> rows;
    while (rows.size() < most && (rows.empty() || lines_.has_line())) {
      const auto line = TRY_CONTEXT(lines_.Next(), path_);
      if (!line) break;
      if (line->find_first_not_of(" \t\r") == std::string::npos) continue;
      rows.push_back(TRY_CONTEXT(ParseVectorLine(*line), fmt::format("{}: line {}", path_, lines_.number())));
    }
    return rows;
  }

 private:
  const std::string path_;
  LineReader lines_;
};

class NpySource final : public VectorSource {
 public:
  NpySource(std::string path, UniqueFd fd, NpyHeader header, std::optional<LineReader> names)
      : path_(std::move(path)), fd_(std::move(fd)), header_(header), names_(std::move(names)) {}
  Result<std::vector<Enrolment>> Next(size_t most) override {
    const size_t count = std::min<uint64_t>(most, header_.rows - next_);
    std::vector<float> values(count * header_.columns);
    auto to = std::as_writable_bytes(std::span(values));
    uint64_t offset = header_.data_offset + next_ * header_.columns * sizeof(float);
    while (!to.empty()) {
      const ssize_t got = ::pread(fd_.get(), to.data(), to.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return FailErrno(path_, errno);
      if (got == 0) return Fail(ErrorCode::kCorrupt, path_ + ": shrank while it was read");
      offset += static_cast<uint64_t>(got);
      to = to.subspan(static_cast<size_t>(got));
    }
    std::vector<Enrolment> rows(count);
    for (size_t i = 0; i < count; ++i) {
      const auto begin = values.begin() + static_cast<ptrdiff_t>(i * header_.columns);
      rows[i].vector.assign(begin, begin + static_cast<ptrdiff_t>(header_.columns));
      rows[i].name = std::to_string(next_ + i);
      if (!names_) continue;
      auto name = TRY_CONTEXT(names_->Next(), "--names");
      if (!name)
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("--names: {} lines, {} has {} rows", next_ + i, path_, header_.rows));
      rows[i].name = *std::move(name);
    }
    next_ += count;
    if (count == 0 && names_ && TRY_CONTEXT(names_->Next(), "--names"))
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("--names: more lines than the {} rows of {}", header_.rows, path_));
    return rows;
  }

 private:
  const std::string path_;
  const UniqueFd fd_;
  const NpyHeader header_;
  std::optional<LineReader> names_;
  uint64_t next_ = 0;
};

// The first vectors, which were looked at, and those behind them.
class PeekedSource final : public VectorSource {
 public:
  PeekedSource(std::vector<Enrolment> first, std::unique_ptr<VectorSource> rest)
      : first_(std::move(first)), rest_(std::move(rest)) {}
  Result<std::vector<Enrolment>> Next(size_t most) override {
    if (!first_.empty()) return std::exchange(first_, {});
    return rest_->Next(most);
  }

 private:
  std::vector<Enrolment> first_;
  const std::unique_ptr<VectorSource> rest_;
};

// Returns the text after `key` in a Python dictionary as NumPy writes it.
std::string_view After(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  return at == std::string_view::npos ? std::string_view() : text.substr(at + key.size());
}

}  // namespace

Result<Enrolment> ParseVectorLine(std::string_view line) {
  const Json json = TRY(ParseJson(line));
  if (!json.is_object()) return Fail(ErrorCode::kCorrupt, "not an object");
  Enrolment row;
  if (json.contains("name")) row.name = TRY(UnescapeBytes(TRY(GetString(json, "name"))));
  const auto values = json.find("embedding");
  if (values == json.end() || !values->is_array())
    return Fail(ErrorCode::kCorrupt, "\"embedding\" is no list of numbers");
  if (values->size() > kMaxDimension)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("an embedding of {} values: at most {} may be", values->size(), kMaxDimension));
  for (const Json& value : *values) {
    if (!value.is_number()) return Fail(ErrorCode::kCorrupt, "\"embedding\" is no list of numbers");
    row.vector.push_back(value.get<float>());
  }
  return row;
}

Result<std::vector<Enrolment>> ParseVectorLines(std::string_view text) {
  std::vector<Enrolment> rows;
  text = WithoutMark(text);
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    rows.push_back(TRY_CONTEXT(ParseVectorLine(line), fmt::format("line {}", number)));
  }
  return rows;
}

std::string FormatVectorLine(const Enrolment& row) {
  Json json;
  json["name"] = EscapeBytes(row.name);
  if (!row.vector.empty()) json["embedding"] = row.vector;
  return DumpJson(json) + "\n";
}

Result<NpyHeader> ParseNpyHeader(std::string_view bytes) {
  const auto corrupt = [] { return Fail(ErrorCode::kCorrupt, "not a NumPy file of two dimensions"); };
  if (bytes.size() < 12 || !bytes.starts_with("\x93NUMPY")) return corrupt();
  const auto byte = [&](size_t at) { return static_cast<uint32_t>(static_cast<unsigned char>(bytes[at])); };
  const uint32_t version = byte(6);
  if (version < 1 || version > 3) return corrupt();
  const size_t begin = version == 1 ? 10 : 12;
  const size_t length = byte(8) | byte(9) << 8 | (version == 1 ? 0 : byte(10) << 16 | byte(11) << 24);
  if (length > bytes.size() - begin) return corrupt();
  const std::string_view head = bytes.substr(begin, length);
  const std::string_view type = After(head, "'descr': '"), order = After(head, "'fortran_order': ");
  std::string_view shape = After(head, "'shape': (");
  if (type.empty() || order.empty() || shape.empty()) return corrupt();
  if (!type.starts_with("<f4'") || !order.starts_with("False"))
    return Fail(ErrorCode::kUnsupported,
                "not little-endian float32 in C order: save "
                "numpy.ascontiguousarray(vectors, dtype='<f4')");
  NpyHeader header;
  header.data_offset = begin + length;
  for (uint64_t* const size : {&header.rows, &header.columns}) {
    shape.remove_prefix(std::min(shape.find_first_not_of(" ,"), shape.size()));
    const auto [end, error] = std::from_chars(shape.data(), shape.data() + shape.size(), *size);
    if (error != std::errc()) return corrupt();
    shape.remove_prefix(static_cast<size_t>(end - shape.data()));
  }
  shape.remove_prefix(std::min(shape.find_first_not_of(" ,"), shape.size()));
  if (!shape.starts_with(")")) return corrupt();
  if (header.columns < 2 || header.columns > kMaxDimension || header.rows > (uint64_t{1} << 40))
    return Fail(ErrorCode::kUnsupported, fmt::format("{} vectors of {} values: 2 to {} values may be",
                                                     header.rows, header.columns, kMaxDimension));
  return header;
}

Result<std::unique_ptr<VectorSource>> OpenVectors(const std::string& path, const std::string& names) {
  UniqueFd fd = TRY(OpenInput(path));
  if (!path.ends_with(".npy")) {
    if (!names.empty())
      return Fail(ErrorCode::kInvalidArgument, "--names goes with a .npy file: JSON lines have their names");
    return std::make_unique<LineSource>(path, std::move(fd));
  }
  std::string head(65536, '\0');
  const ssize_t got = ::pread(fd.get(), head.data(), head.size(), 0);
  if (got < 0) return FailErrno(path, errno);
  head.resize(static_cast<size_t>(got));
  const NpyHeader header = TRY_CONTEXT(ParseNpyHeader(head), path);
  struct stat facts{};
  if (::fstat(fd.get(), &facts) != 0) return FailErrno(path, errno);
  const uint64_t wanted = header.data_offset + header.rows * header.columns * sizeof(float);
  if (static_cast<uint64_t>(facts.st_size) != wanted)
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{}: has {} bytes, its header says {}", path, facts.st_size, wanted));
  std::optional<LineReader> reader;
  if (!names.empty()) reader.emplace(TRY(OpenInput(names)));
  return std::make_unique<NpySource>(path, std::move(fd), header, std::move(reader));
}

Result<std::vector<Enrolment>> ReadVectors(const std::string& path) {
  std::vector<Enrolment> all;
  if (path.empty()) return all;
  const auto source = TRY(OpenVectors(path, ""));
  for (;;) {
    auto rows = TRY(source->Next(4096));
    if (rows.empty()) return all;
    std::ranges::move(rows, std::back_inserter(all));
  }
}

Result<std::unique_ptr<VectorSource>> PeekDimension(std::unique_ptr<VectorSource> source, int& dimension) {
  std::vector<Enrolment> first = TRY(source->Next(1));
  if (first.empty()) return Fail(ErrorCode::kInvalidArgument, "--vectors holds no vector");
  if (dimension == 0) dimension = static_cast<int>(first.front().vector.size());
  return std::make_unique<PeekedSource>(std::move(first), std::move(source));
}

}  // namespace weir::identity
