#include "load/validate/sample_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string_view>
#include <utility>

namespace weir::load {
namespace {

static_assert(std::endian::native == std::endian::little, "the structs below are the file's bytes");

constexpr std::string_view kMagic = "weirsmpl";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kMostAbout = 16 << 20;        // bytes
constexpr size_t kBuffer = 1 << 20;              // bytes
constexpr int64_t kFarthest = int64_t{1} << 62;  // so that differences of moments are not beyond int64_t
constexpr uint32_t kMostNumber = std::numeric_limits<int>::max();

struct Start {
  char magic[8];
  uint32_t version;
  uint32_t record_bytes;
  uint64_t records;
  uint64_t header_bytes;
};
static_assert(sizeof(Start) == 32);

struct Stored {
  int64_t planned, sent, first_byte, done;
  uint32_t request, level, repeat, outcome;
};
static_assert(sizeof(Stored) == 48);

std::unexpected<Error> Corrupt(std::string what) { return Fail(ErrorCode::kCorrupt, std::move(what)); }

Start StartOf(uint64_t records, uint64_t header_bytes) {
  Start start{.magic = {},
              .version = kVersion,
              .record_bytes = sizeof(Stored),
              .records = records,
              .header_bytes = header_bytes};
  std::ranges::copy(kMagic, start.magic);
  return start;
}

Status CheckStart(const Start& start, uint64_t size) {
  if (std::string_view(start.magic, sizeof(start.magic)) != kMagic)
    return Corrupt(fmt::format("no file of samples: it does not begin with \"{}\"", kMagic));
  if (start.version != kVersion) {
    return Fail(ErrorCode::kUnsupported,
                fmt::format("samples of version {}, this program reads version {}", start.version, kVersion));
  }
  if (start.record_bytes != sizeof(Stored))
    return Corrupt(fmt::format("records of {} bytes, not {}", start.record_bytes, sizeof(Stored)));
  if (start.header_bytes < sizeof(Start) || start.header_bytes > std::min(size, sizeof(Start) + kMostAbout))
    return Corrupt(fmt::format("a header of {} bytes in a file of {}", start.header_bytes, size));
  const uint64_t rest = size - start.header_bytes;
  if (rest % sizeof(Stored) != 0 || rest / sizeof(Stored) != start.records) {
    return Corrupt(fmt::format("the header tells of {} records, {} bytes are {:.8g}", start.records, rest,
                               static_cast<double>(rest) / sizeof(Stored)));
  }
  return {};
}

Result<SampleRecord> RecordOf(const Stored& stored) {
  for (const int64_t moment : {stored.planned, stored.sent, stored.first_byte, stored.done}) {
    if (moment <= -kFarthest || moment >= kFarthest) return Corrupt(fmt::format("moment {} ns", moment));
  }
  if (stored.done < stored.sent) {
    return Corrupt(
        fmt::format("done at {} ns, {} ns before it was sent", stored.done, stored.sent - stored.done));
  }
  if (stored.outcome >= kOutcomes) return Corrupt(fmt::format("there is no outcome {}", stored.outcome));
  if (stored.level > kMostNumber) return Corrupt(fmt::format("there is no level {}", stored.level));
  if (stored.repeat > kMostNumber) return Corrupt(fmt::format("there is no repeat {}", stored.repeat));
  const auto moment = [](int64_t nanoseconds) { return Instant(Duration(nanoseconds)); };
  return SampleRecord{.sample = {.planned = moment(stored.planned),
                                 .sent = moment(stored.sent),
                                 .first_byte = moment(stored.first_byte),
                                 .done = moment(stored.done),
                                 .request = stored.request,
                                 .outcome = static_cast<Outcome>(stored.outcome)},
                      .level = static_cast<int>(stored.level),
                      .repeat = static_cast<int>(stored.repeat)};
}

}  // namespace

SampleFile::SampleFile(std::string path, std::string beside, UniqueFd fd, Instant start)
    : path_(std::move(path)), beside_(std::move(beside)), start_(start), fd_(std::move(fd)) {
  buffer_.reserve(kBuffer);
}

SampleFile::~SampleFile() {
  if (!finished_) ::unlink(beside_.c_str());
}

Result<std::unique_ptr<SampleFile>> SampleFile::Create(const std::string& name, const Header& header) {
  CHECK(header.about.is_object());
  std::string text = DumpJson(header.about);
  if (text.size() > kMostAbout - 8) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {} bytes say what is measured, at most {} may",
                                                         name, text.size(), kMostAbout - 8));
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::error_code unresolved;
  const std::filesystem::path real =
      std::filesystem::canonical(name, unresolved);  // a link stays, its target is replaced
  const std::string path = unresolved ? name : real.string();
  struct stat facts{};
  if (::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode))
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: not a regular file", name));
  const std::string beside = TemporaryBeside(path);
  UniqueFd fd(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.valid()) return FailErrno(name, errno);
  std::unique_ptr<SampleFile> file(new SampleFile(path, beside, std::move(fd), header.start));
  const Start start = StartOf(0, sizeof(Start) + text.size());
  const auto bytes = std::as_bytes(std::span(&start, 1));
  file->buffer_.assign(bytes.begin(), bytes.end());
  const auto about = std::as_bytes(std::span(text));
  file->buffer_.insert(file->buffer_.end(), about.begin(), about.end());
  TRY_STATUS(file->Flush());  // what is wrong with the place shows before anything is measured
  return file;
}

Status SampleFile::Put(std::span<const std::byte> bytes, uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return FailErrno(path_, errno);
    bytes = bytes.subspan(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
  }
  return {};
}

Status SampleFile::Flush() {
  if (!status_) return status_;
  status_ = Put(buffer_, written_);
  written_ += buffer_.size();
  buffer_.clear();
  return status_;
}

Status SampleFile::Write(int level, int repeat, std::span<const Sample> samples) {
  CHECK(!finished_ && level >= 0 && repeat >= 0);
  for (const Sample& sample : samples) {
    const auto moment = [&](Instant instant) { return (instant - start_).count(); };
    const Stored stored{.planned = moment(sample.planned),
                        .sent = moment(sample.sent),
                        .first_byte = moment(sample.first_byte),
                        .done = moment(sample.done),
                        .request = sample.request,
                        .level = static_cast<uint32_t>(level),
                        .repeat = static_cast<uint32_t>(repeat),
                        .outcome = static_cast<uint32_t>(sample.outcome)};
    const auto bytes = std::as_bytes(std::span(&stored, 1));
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    records_ += 1;
    if (buffer_.size() + sizeof(Stored) > kBuffer) TRY_STATUS(Flush());
  }
  return status_;
}

Status SampleFile::Finish() {
  CHECK(!finished_);
  TRY_STATUS(Flush());
  const uint64_t header_bytes = written_ - records_ * sizeof(Stored);
  const Start start = StartOf(records_, header_bytes);
  status_ = Put(std::as_bytes(std::span(&start, 1)), 0);
  if (status_ && ::rename(beside_.c_str(), path_.c_str()) != 0) status_ = FailErrno(path_, errno);
  finished_ = status_.has_value();
  return status_;
}

Status SampleReader::Source::ReadAt(uint64_t offset, std::span<std::byte> into) const {
  if (!fd.valid()) {
    std::memcpy(into.data(), bytes.data() + offset, into.size());
    return {};
  }
  while (!into.empty()) {
    const ssize_t got = ::pread(fd.get(), into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno(path, errno);
    if (got == 0)
      return Fail(ErrorCode::kIo, fmt::format("{}: shrank to {} bytes while it was read", path, offset));
    into = into.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return {};
}

Result<SampleReader> SampleReader::Open(const std::string& path) {
  Source source;
  source.path = path;
  source.fd = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!source.fd.valid()) return FailErrno(path, errno);
  struct stat facts{};
  if (::fstat(source.fd.get(), &facts) != 0) return FailErrno(path, errno);
  if (!S_ISREG(facts.st_mode))
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: not a regular file", path));
  source.size = static_cast<uint64_t>(facts.st_size);
  return TRY_CONTEXT(Open(std::move(source)), path);
}

Result<SampleReader> SampleReader::OpenBytes(Bytes bytes) {
  Source source;
  source.size = bytes.size();
  source.bytes = std::move(bytes);
  return Open(std::move(source));
}

Result<SampleReader> SampleReader::Open(Source source) {
  SampleReader reader(std::move(source));
  const uint64_t size = reader.source_.size;
  Start start{};
  if (size < sizeof(start)) return Corrupt(fmt::format("no file of samples: {} bytes", size));
  TRY_STATUS(reader.source_.ReadAt(0, std::as_writable_bytes(std::span(&start, 1))));
  TRY_STATUS(CheckStart(start, size));
  std::string text(start.header_bytes - sizeof(start), ' ');
  TRY_STATUS(reader.source_.ReadAt(sizeof(start), std::as_writable_bytes(std::span(text))));
  reader.about_ = TRY_CONTEXT(ParseJson(text), "what was measured");
  if (!reader.about_.is_object()) return Corrupt("what was measured: not an object");
  reader.header_bytes_ = start.header_bytes;
  reader.records_ = start.records;
  return reader;
}

Result<size_t> SampleReader::Next(std::span<SampleRecord> records) {
  const size_t wanted = std::min<uint64_t>(records.size(), records_ - next_);
  for (size_t done = 0; done < wanted;) {
    const size_t count = std::min(wanted - done, kBuffer / sizeof(Stored));
    buffer_.resize(count * sizeof(Stored));
    TRY_STATUS(source_.ReadAt(header_bytes_ + (next_ + done) * sizeof(Stored), buffer_));
    for (size_t i = 0; i < count; ++i) {
      Stored stored;
      std::memcpy(&stored, &buffer_[i * sizeof(stored)], sizeof(stored));
      records[done + i] = TRY_CONTEXT(
          RecordOf(stored),
          fmt::format("{}{}record {}", source_.path, source_.path.empty() ? "" : ": ", next_ + done + i));
    }
    done += count;
  }
  next_ += wanted;
  return wanted;
}

}  // namespace weir::load
