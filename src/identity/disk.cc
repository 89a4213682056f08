#include "identity/disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace weir::identity {

Status Disk::Write(const UniqueFd& fd, const std::string& path, std::span<const std::byte> bytes,
                   uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return FailErrno(path, errno);
    bytes = bytes.subspan(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
  }
  return {};
}

Status Disk::Sync(const UniqueFd& fd, const std::string& path) {
  return ::fdatasync(fd.get()) == 0 ? Status() : FailErrno(path, errno);
}

Status Disk::Truncate(const UniqueFd& fd, const std::string& path, uint64_t bytes) {
  return ::ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0 ? Status() : FailErrno(path, errno);
}

Status Disk::Rename(const std::string& from, const std::string& to) {
  return ::rename(from.c_str(), to.c_str()) == 0 ? Status() : FailErrno(to, errno);
}

Status Disk::SyncFolder(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) return FailErrno(path, errno);
  return {};
}

Status Disk::Remove(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return FailErrno(path, errno);
  return {};
}

Result<UniqueFd> CreatePrivateFile(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid() || ::fchmod(fd.get(), 0600) != 0) return FailErrno(path, errno);
  return fd;
}

Status WritePrivateFile(Disk& disk, const std::string& path, std::string_view contents) {
  const std::string beside = TemporaryBeside(path);
  const UniqueFd fd = TRY(CreatePrivateFile(beside));
  Status status = disk.Write(fd, beside, std::as_bytes(std::span(contents)), 0);
  if (status) status = disk.Sync(fd, beside);
  if (status) status = disk.Rename(beside, path);
  if (!status) {
    ::unlink(beside.c_str());
    return status;
  }
  return disk.SyncFolder(path.substr(0, path.rfind('/') + 1));
}

}  // namespace weir::identity
