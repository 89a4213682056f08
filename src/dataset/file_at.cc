#include "dataset/file_at.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace weir::dataset {

Result<OpenedFile> OpenRegularFile(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return FailErrno(path, errno);
  struct stat facts{};
  if (::fstat(fd.get(), &facts) != 0) return FailErrno(path, errno);
  if (!S_ISREG(facts.st_mode)) return Fail(ErrorCode::kCorrupt, fmt::format("{}: not a regular file", path));
  return OpenedFile{std::move(fd), facts.st_size};
}

Result<size_t> ReadAt(const UniqueFd& fd, const std::string& path, std::span<std::byte> into,
                      int64_t offset) {
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t got =
        ::pread(fd.get(), into.data() + done, into.size() - done, offset + static_cast<int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno(path, errno);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

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

}  // namespace weir::dataset
