#include "identity/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/text.h"
#include "dataset/hash.h"
#include "identity/scan.h"

namespace weir::identity {
namespace {

constexpr size_t kBlock = 1 << 20;
constexpr char kMagic[8] = {'W', 'E', 'I', 'R', 'I', 'D', '0', '1'};
constexpr uint64_t kMostRows = uint64_t{1} << 36;

// Little endian, as the machines are. `checksum` is of the bytes before it.
struct Header {
  char magic[8];
  uint32_t dimension;
  uint32_t block_bytes;
  uint64_t rows;
  uint64_t names_bytes;
  uint32_t table_checksum;  // of the blocks' checksums
  uint32_t zero[6];
  uint32_t checksum;
};
static_assert(sizeof(Header) == 64);

uint64_t Padded(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// Where the sections begin, from the beginning of the file.
struct Layout {
  uint64_t values, scales, codes, offsets, names, checksums, end;
  Layout(uint64_t rows, uint64_t dimension, uint64_t names_bytes) {
    values = sizeof(Header);
    scales = Padded(values + rows * dimension);
    codes = Padded(scales + rows * sizeof(float));
    offsets = codes + CodeWords(rows, dimension) * sizeof(uint64_t);
    names = offsets + (rows + 1) * sizeof(uint64_t);
    checksums = Padded(names + names_bytes);
    end = checksums + (checksums - values + kBlock - 1) / kBlock * sizeof(uint32_t);
  }
};

std::unexpected<Error> Corrupt(std::string what) {
  return Fail(ErrorCode::kCorrupt, std::move(what) + ": restore the folder from a copy, or build it again");
}

}  // namespace

Status WriteAll(int fd, const std::string& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return FailErrno(path, errno);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return {};
}

Status SyncFolder(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) return FailErrno(path, errno);
  return {};
}

Status WritePrivateFile(const std::string& path, std::string_view contents) {
  const std::string beside = TemporaryBeside(path);
  const UniqueFd fd(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.valid()) return FailErrno(path, errno);
  Status status = WriteAll(fd.get(), path, std::as_bytes(std::span(contents)));
  if (status && (::fsync(fd.get()) != 0 || ::rename(beside.c_str(), path.c_str()) != 0))
    status = FailErrno(path, errno);
  if (!status) {
    ::unlink(beside.c_str());
    return status;
  }
  return SyncFolder(path.substr(0, path.rfind('/') + 1));
}

Result<Row> MakeRow(std::string_view name, std::span<const float> vector) {
  const auto invalid = [&](std::string_view what) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("identity {}: {}", Quoted(name), what));
  };
  if (name.empty() || name.size() > kMaxName) return invalid("a name has 1 to 1024 bytes");
  if (std::ranges::any_of(name, [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; }))
    return invalid("a name may not hold control characters");
  double squares = 0;
  float most = 0;
  for (const float value : vector) {
    if (!std::isfinite(value)) return invalid("the embedding has a value that is not finite");
    squares += static_cast<double>(value) * value;
    most = std::max(most, std::abs(value));
  }
  if (most == 0) return invalid("the embedding is all zeros");
  Row row;
  row.name = name;
  row.values.resize(vector.size());
  row.signs.resize(WordsOf(vector.size()));
  for (size_t i = 0; i < vector.size(); ++i) {
    row.values[i] = static_cast<int8_t>(std::lround(vector[i] / most * 127.0F));
    if (vector[i] > 0) row.signs[i / 64] |= uint64_t{1} << (i % 64);
  }
  row.scale = static_cast<float>(most / 127.0 / std::sqrt(squares));
  return row;
}

Result<SegmentView> ParseSegment(std::span<const std::byte> bytes) {
  Header header;
  if (bytes.size() < sizeof(header)) return Corrupt("shorter than its header");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) return Corrupt("not a file of identities");
  if (dataset::Crc32c(bytes.first(sizeof(header) - 4)) != header.checksum)
    return Corrupt("the checksum of the header is wrong");
  if (header.dimension == 0 || header.dimension > kMaxDimension || header.block_bytes != kBlock ||
      header.rows > kMostRows || header.names_bytes > header.rows * kMaxName)
    return Corrupt("the header has sizes out of range");
  const Layout at(header.rows, header.dimension, header.names_bytes);
  if (at.end != bytes.size())
    return Corrupt(fmt::format("has {} bytes, its header says {}", bytes.size(), at.end));
  const auto table = bytes.subspan(at.checksums);
  if (dataset::Crc32c(table) != header.table_checksum) return Corrupt("the table of checksums is damaged");
  for (uint64_t begin = at.values, block = 0; begin < at.checksums; begin += kBlock, ++block) {
    uint32_t wanted;
    std::memcpy(&wanted, table.data() + block * sizeof(wanted), sizeof(wanted));
    if (dataset::Crc32c(bytes.subspan(begin, std::min<uint64_t>(kBlock, at.checksums - begin))) != wanted)
      return Corrupt(fmt::format("the checksum of the block at byte {} is wrong", begin));
  }
  SegmentView view;
  view.dimension = header.dimension;
  view.rows = header.rows;
  view.values = reinterpret_cast<const int8_t*>(bytes.data() + at.values);
  view.scales = reinterpret_cast<const float*>(bytes.data() + at.scales);
  view.codes = reinterpret_cast<const uint64_t*>(bytes.data() + at.codes);
  view.name_offsets = reinterpret_cast<const uint64_t*>(bytes.data() + at.offsets);
  view.names = reinterpret_cast<const char*>(bytes.data() + at.names);
  for (uint64_t row = 0; row < view.rows; ++row) {
    if (view.name_offsets[row] >= view.name_offsets[row + 1])
      return Corrupt(fmt::format("row {} has no name", row));
  }
  if (view.name_offsets[0] != 0 || view.name_offsets[view.rows] != header.names_bytes)
    return Corrupt("the names do not fill their section");
  return view;
}

SegmentWriter::SegmentWriter(std::string path, std::string beside, UniqueFd fd, size_t dimension)
    : path_(std::move(path)), beside_(std::move(beside)), fd_(std::move(fd)), dimension_(dimension) {
  block_.reserve(kBlock);
}

SegmentWriter::~SegmentWriter() {
  if (fd_.valid()) ::unlink(beside_.c_str());
}

Result<SegmentWriter> SegmentWriter::Open(const std::string& path, size_t dimension) {
  std::string beside = TemporaryBeside(path);
  UniqueFd fd(::open(beside.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.valid() || ::lseek(fd.get(), sizeof(Header), SEEK_SET) < 0) return FailErrno(path, errno);
  return SegmentWriter(path, std::move(beside), std::move(fd), dimension);
}

Status SegmentWriter::Flush() {
  if (block_.empty()) return {};
  checksums_.push_back(dataset::Crc32c(block_));
  TRY_STATUS(WriteAll(fd_.get(), path_, block_));
  block_.clear();
  return {};
}

Status SegmentWriter::Put(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t part = std::min(kBlock - block_.size(), bytes.size());
    block_.insert(block_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(part));
    bytes = bytes.subspan(part);
    if (block_.size() == kBlock) TRY_STATUS(Flush());
  }
  return {};
}

Status SegmentWriter::Add(const Row& row) {
  CHECK(row.values.size() == dimension_);
  TRY_STATUS(Put(std::as_bytes(std::span(row.values))));
  const size_t words = WordsOf(dimension_), at = rows();
  if (at % kGroup == 0) codes_.resize(codes_.size() + kGroup * words);
  for (size_t w = 0; w < words; ++w)
    codes_[at / kGroup * kGroup * words + kGroup * w + at % kGroup] = row.signs[w];
  scales_.push_back(row.scale);
  names_ += row.name;
  offsets_.push_back(names_.size());
  return {};
}

Status SegmentWriter::Finish() {
  const Layout at(rows(), dimension_, names_.size());
  const std::vector<std::byte> zeros(64);
  const auto pad = [&](uint64_t end) {
    return Put(std::span(zeros).first(static_cast<size_t>(Padded(end) - end)));
  };
  TRY_STATUS(pad(at.values + rows() * dimension_));
  TRY_STATUS(Put(std::as_bytes(std::span(scales_))));
  TRY_STATUS(pad(at.scales + rows() * sizeof(float)));
  TRY_STATUS(Put(std::as_bytes(std::span(codes_))));
  TRY_STATUS(Put(std::as_bytes(std::span(offsets_))));
  TRY_STATUS(Put(std::as_bytes(std::span(names_))));
  TRY_STATUS(pad(at.names + names_.size()));
  TRY_STATUS(Flush());
  TRY_STATUS(WriteAll(fd_.get(), path_, std::as_bytes(std::span(checksums_))));
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.dimension = static_cast<uint32_t>(dimension_);
  header.block_bytes = kBlock;
  header.rows = rows();
  header.names_bytes = names_.size();
  header.table_checksum = dataset::Crc32c(std::as_bytes(std::span(checksums_)));
  header.checksum = dataset::Crc32c(std::as_bytes(std::span(&header, 1)).first(sizeof(header) - 4));
  if (::pwrite(fd_.get(), &header, sizeof(header), 0) != sizeof(header) || ::fsync(fd_.get()) != 0 ||
      ::rename(beside_.c_str(), path_.c_str()) != 0)
    return FailErrno(path_, errno);
  fd_ = UniqueFd();
  return SyncFolder(path_.substr(0, path_.rfind('/') + 1));
}

Result<std::shared_ptr<const Segment>> Segment::Open(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts{};
  if (!fd.valid() || ::fstat(fd.get(), &facts) != 0) return FailErrno(path, errno);
  if (!S_ISREG(facts.st_mode) || facts.st_size == 0)
    return Context(path, Error{ErrorCode::kCorrupt, "not a file of identities"});
  std::shared_ptr<Segment> segment(new Segment);
  segment->size_ = static_cast<size_t>(facts.st_size);
  segment->memory_ = ::mmap(nullptr, segment->size_, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (segment->memory_ == MAP_FAILED) return FailErrno(path, errno);
  segment->view_ =
      TRY_CONTEXT(ParseSegment({static_cast<const std::byte*>(segment->memory_), segment->size_}), path);
  return segment;
}

Segment::~Segment() {
  if (memory_ != nullptr && memory_ != MAP_FAILED) ::munmap(memory_, size_);
}

}  // namespace weir::identity
