#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace weir {

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) ::close(fd_);
}

Result<Bytes> ReadFile(const std::string& path, uint64_t max_bytes) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return FailErrno(path, errno);
  struct stat facts{};
  if (::fstat(fd.get(), &facts) != 0) return FailErrno(path, errno);
  if (!S_ISREG(facts.st_mode))
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: not a regular file", path));
  const auto size = static_cast<uint64_t>(facts.st_size);
  if (size > max_bytes) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: {} bytes are more than the limit of {}", path, size, max_bytes));
  }
  Bytes bytes = Bytes::AllocateUninitialized(size);
  for (size_t done = 0; done < size;) {
    const ssize_t got = ::read(fd.get(), bytes.mutable_data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno(path, errno);
    if (got == 0)
      return Fail(ErrorCode::kIo, fmt::format("{}: shrank to {} bytes while it was read", path, done));
    done += static_cast<size_t>(got);
  }
  return bytes;
}

Result<std::string> ReadTextFile(const std::string& path) {
  const Bytes bytes = TRY(ReadFile(path, 64 << 20));
  return std::string(bytes.text());
}

Status WriteFileWhole(const std::string& name, std::string_view contents, Durability durability) {
  std::error_code unresolved;
  const std::filesystem::path real =
      std::filesystem::canonical(name, unresolved);  // a link stays, its target is replaced
  const std::string path = unresolved ? name : real.string();
  struct stat facts{};
  const bool in_place = ::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode);  // a device or pipe
  const std::string beside = in_place ? path : fmt::format("{}.{}.tmp", path, ::getpid());
  const int flags = in_place ? O_WRONLY | O_CLOEXEC : O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  const UniqueFd fd(::open(beside.c_str(), flags, 0644));
  if (!fd.valid()) return FailErrno(name, errno);
  while (!contents.empty()) {
    const ssize_t put = ::write(fd.get(), contents.data(), contents.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      const int error = errno;
      if (!in_place) ::unlink(beside.c_str());
      return FailErrno(name, error);
    }
    contents.remove_prefix(static_cast<size_t>(put));
  }
  if (in_place) return {};
  if ((durability == Durability::kSynced && ::fsync(fd.get()) != 0) ||
      ::rename(beside.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(beside.c_str());
    return FailErrno(path, error);
  }
  return {};
}

Status MakeFolders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return FailErrno(path, error.value());
  return {};
}

}  // namespace weir
