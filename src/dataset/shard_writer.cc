#include "dataset/shard_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "dataset/file_at.h"
#include "dataset/set_text.h"

namespace weir::dataset {
namespace {

constexpr int64_t kPushBytes = 8 << 20;

iovec PieceOf(std::span<const std::byte> bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string ShardWriter::PathOf(int64_t shard) const {
  return fmt::format("{}/{}", folder_, ShardPath(facts_->format, shard));
}

Result<ShardWriter> ShardWriter::Open(const std::string& folder, const SetFacts& facts,
                                      const SetPoint& point) {
  ShardWriter writer(folder, facts);
  writer.shard_ = point.shard;
  writer.first_ = point.images - point.shard_records;
  if (point.shard_bytes == 0) return writer;
  const std::string path = writer.PathOf(point.shard);
  const std::string part = path + kPartSuffix;
  // It had got its name, and its end, before that was written down.
  if (::access(part.c_str(), F_OK) != 0 && ::rename(path.c_str(), part.c_str()) != 0)
    return FailErrno(path, errno);
  writer.fd_ = UniqueFd(::open(part.c_str(), O_RDWR | O_CLOEXEC));
  if (!writer.fd_.valid()) return FailErrno(part, errno);
  struct stat found{};
  if (::fstat(writer.fd_.get(), &found) != 0) return FailErrno(part, errno);
  if (found.st_size < point.shard_bytes) {
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{}: {} bytes, and {} had been written", part, found.st_size, point.shard_bytes));
  }
  if (::ftruncate(writer.fd_.get(), point.shard_bytes) != 0) return FailErrno(part, errno);
  writer.size_ = writer.pushed_ = point.shard_bytes;
  writer.records_ = point.shard_records;
  return writer;
}

Status ShardWriter::Begin() {
  const std::string part = PathOf(shard_) + kPartSuffix;
  fd_ = UniqueFd(::open(part.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd_.valid()) return FailErrno(part, errno);
  // The header tells how many records there are, which Close knows.
  const std::string begin(ShardBegin(*facts_, 0, 0).size(), '\0');
  TRY_STATUS(WriteAt(fd_, part, std::as_bytes(std::span(begin)), 0));
  size_ = std::ssize(begin);
  records_ = 0;
  pushed_ = 0;
  return {};
}

Result<int64_t> ShardWriter::MakeRoom(int64_t record_bytes) {
  const int64_t end = std::ssize(ShardEnd(facts_->format));
  if (records_ > 0 && size_ + record_bytes + end > facts_->shard_bytes) TRY_STATUS(Close());
  if (!fd_.valid()) TRY_STATUS(Begin());
  return size_;
}

Status ShardWriter::Append(const Frame& frame, std::span<const std::byte> picture) {
  const std::string part = PathOf(shard_) + kPartSuffix;
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(frame.before)), picture,
                                               std::as_bytes(std::span(frame.after))};
  iovec all[] = {PieceOf(pieces[0]), PieceOf(pieces[1]), PieceOf(pieces[2])};
  const size_t bytes = pieces[0].size() + pieces[1].size() + pieces[2].size();
  const ssize_t put = ::pwritev(fd_.get(), all, 3, size_);
  if (put != static_cast<ssize_t>(bytes)) {  // an error, or a part: one by one tells which
    int64_t at = size_;
    for (const auto& piece : pieces) {
      TRY_STATUS(WriteAt(fd_, part, piece, at));
      at += std::ssize(piece);
    }
  }
  size_ += static_cast<int64_t>(bytes);
  records_ += 1;
  // Begins to write to the disk early, so that nobody has long to wait for it at the end.
  if (size_ - pushed_ >= kPushBytes) {
    ::sync_file_range(fd_.get(), pushed_, size_ - pushed_, SYNC_FILE_RANGE_WRITE);
    pushed_ = size_;
  }
  return {};
}

Status ShardWriter::Close() {
  if (!fd_.valid()) return {};
  const std::string path = PathOf(shard_);
  const std::string part = path + kPartSuffix;
  const std::string begin = ShardBegin(*facts_, first_, records_), end = ShardEnd(facts_->format);
  TRY_STATUS(WriteAt(fd_, part, std::as_bytes(std::span(begin)), 0));
  TRY_STATUS(WriteAt(fd_, part, std::as_bytes(std::span(end)), size_));
  closed_.push_back({std::move(fd_), part, path});
  fd_ = UniqueFd();
  first_ += records_;
  shard_ += 1;
  size_ = records_ = 0;
  return {};
}

Status ShardWriter::TakeUnsettled(Unsettled& into) {
  for (Unsettled::ClosedShard& shard : closed_) into.closed.push_back(std::move(shard));
  closed_.clear();
  if (!fd_.valid()) return {};
  UniqueFd copy(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return FailErrno(PathOf(shard_), errno);
  into.open.push_back(std::move(copy));
  return {};
}

}  // namespace weir::dataset
