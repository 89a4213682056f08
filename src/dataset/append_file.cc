#include "dataset/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "dataset/file_at.h"

namespace weir::dataset {
namespace {

constexpr size_t kBuffered = 1 << 20;  // bytes

}  // namespace

Result<AppendFile> AppendFile::Open(std::string path, int64_t bytes, Hashed hashed) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return FailErrno(path, errno);
  struct stat found{};
  if (::fstat(fd.get(), &found) != 0) return FailErrno(path, errno);
  if (found.st_size < bytes) {
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{}: {} bytes, and {} had been written", path, found.st_size, bytes));
  }
  AppendFile file(std::move(path), std::move(fd));
  file.written_ = bytes;
  if (hashed == Hashed::kYes) {
    file.hash_.emplace();
    TRY_STATUS(AddBytes(file.fd_, file.path_, bytes, *file.hash_));
  }
  if (::ftruncate(file.fd_.get(), bytes) != 0) return FailErrno(file.path_, errno);
  return file;
}

Status AppendFile::Add(std::string_view text) {
  buffer_ += text;
  return buffer_.size() < kBuffered ? Status() : Flush();
}

Status AppendFile::AddLine(std::string_view line) {
  buffer_ += line;
  return Add("\n");
}

Status AppendFile::Flush() {
  TRY_STATUS(WriteAt(fd_, path_, std::as_bytes(std::span(buffer_)), written_));
  written_ += std::ssize(buffer_);
  if (hash_) hash_->Add(std::as_bytes(std::span(buffer_)));
  buffer_.clear();
  return {};
}

Result<std::string> AppendFile::LineAt(int64_t offset) const {
  std::string line;
  for (size_t wanted = 1024;; wanted *= 2) {
    line.resize(wanted);
    line.resize(TRY(ReadAt(fd_, path_, std::as_writable_bytes(std::span(line)), offset)));
    if (const size_t end = line.find('\n'); end != line.npos) return line.substr(0, end);
    if (line.size() < wanted)
      return Fail(ErrorCode::kCorrupt, fmt::format("{}: no line begins at byte {}", path_, offset));
  }
}

Result<UniqueFd> AppendFile::Duplicate() const {
  UniqueFd copy(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return FailErrno(path_, errno);
  return copy;
}

}  // namespace weir::dataset
