#include "data/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace weir::data {
namespace {

constexpr size_t kBuffered = 1 << 20;  // bytes

}  // namespace

Status WriteAt(const UniqueFd& fd, const std::string& path, std::span<const std::byte> bytes,
               int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd.get(), bytes.data(), bytes.size(), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return FailErrno(path, errno);
    bytes = bytes.subspan(static_cast<size_t>(put));
    offset += put;
  }
  return {};
}

Result<AppendFile> AppendFile::Open(std::string path, int64_t bytes, Hashed hashed) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return FailErrno(path, errno);
  AppendFile file(std::move(path), std::move(fd));
  if (hashed == Hashed::kYes) file.hash_.emplace();
  std::string piece(kBuffered, '\0');
  while (file.written_ < bytes && file.hash_) {
    const auto wanted = std::min<int64_t>(std::ssize(piece), bytes - file.written_);
    const ssize_t got = ::pread(file.fd_.get(), piece.data(), static_cast<size_t>(wanted), file.written_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno(file.path_, errno);
    if (got == 0) {
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("{}: {} bytes, and {} had been written", file.path_, file.written_, bytes));
    }
    file.hash_->Add(std::as_bytes(std::span(piece).first(static_cast<size_t>(got))));
    file.written_ += got;
  }
  file.written_ = bytes;
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

Result<UniqueFd> AppendFile::Duplicate() const {
  UniqueFd copy(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return FailErrno(path_, errno);
  return copy;
}

}  // namespace weir::data
