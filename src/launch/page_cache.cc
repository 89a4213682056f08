#include "launch/page_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/file.h"
#include "base/json.h"

namespace weir::launch {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kWindow = uint64_t{1} << 30;  // bytes asked of at once

// Calls `visit` with every regular file of `paths`, in byte order below each folder.
Status ForEachFile(const std::vector<std::string>& paths,
                   const std::function<Status(const std::string&)>& visit) {
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (error) return FailErrno(EscapeBytes(path), error.value());
    if (!fs::is_directory(status)) {
      TRY_STATUS(visit(path));
      continue;
    }
    std::vector<std::string> files;
    for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error))
      if (at->is_regular_file(error)) files.push_back(at->path().string());
    if (error) return FailErrno(EscapeBytes(path), error.value());
    std::ranges::sort(files);
    for (const std::string& file : files) TRY_STATUS(visit(file));
  }
  return {};
}

// Pages of the file that are in memory. Nothing where the kernel does not say: of a file that is neither this
// user's nor writable for it, mincore(2) tells that all is there.
Result<std::optional<uint64_t>> CachedBytes(const std::string& path, int fd, const struct stat& info) {
  const bool tells = info.st_uid == ::geteuid() || ::access(path.c_str(), W_OK) == 0 || ::geteuid() == 0;
  if (!tells) return std::nullopt;
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto size = static_cast<uint64_t>(info.st_size);
  uint64_t cached = 0;
  for (uint64_t at = 0; at < size; at += kWindow) {
    const uint64_t length = std::min(kWindow, size - at);
    void* mapped = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(at));
    if (mapped == MAP_FAILED) return FailErrno(EscapeBytes(path), errno);
    std::vector<unsigned char> resident((length + page - 1) / page);
    const int told = ::mincore(mapped, length, resident.data());
    const int error = errno;
    ::munmap(mapped, length);
    if (told != 0) return FailErrno(EscapeBytes(path), error);
    cached +=
        page * static_cast<uint64_t>(std::ranges::count_if(resident, [](auto p) { return (p & 1) != 0; }));
  }
  return cached;
}

Status Forget(const std::string& path, int fd) {
  if (::fsync(fd) != 0 && errno != EROFS && errno != EINVAL) return FailErrno(EscapeBytes(path), errno);
  const int error = ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  if (error != 0) return FailErrno(EscapeBytes(path), error);
  return {};
}

// Into a buffer that nobody looks at: readahead alone would leave the end of a large file on the disk.
Status ReadThrough(const std::string& path, int fd) {
  std::vector<char> buffer(size_t{1} << 20);
  for (off_t at = 0;;) {
    const ssize_t got = ::pread(fd, buffer.data(), buffer.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno(EscapeBytes(path), errno);
    if (got == 0) return {};
    at += got;
  }
}

enum class Wish { kForget, kRead };

Status Visit(const std::string& path, Wish wish, CacheState& state) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) return FailErrno(EscapeBytes(path), errno);
  if (!S_ISREG(info.st_mode))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: neither a file nor a folder: it has no page cache", EscapeBytes(path)));
  if (wish == Wish::kForget) TRY_STATUS(Forget(path, fd.get()));
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t bytes = (static_cast<uint64_t>(info.st_size) + page - 1) / page * page;
  std::optional<uint64_t> cached = TRY(CachedBytes(path, fd.get(), info));
  if (wish == Wish::kRead && cached.value_or(0) < bytes) {
    TRY_STATUS(ReadThrough(path, fd.get()));
    cached = TRY(CachedBytes(path, fd.get(), info));
  }
  ++state.files;
  state.bytes += bytes;
  state.unknown += cached ? 0 : 1;
  state.cached_bytes += cached.value_or(0);
  return {};
}

Result<CacheState> VisitAll(const std::vector<std::string>& paths, Wish wish) {
  CacheState state;
  TRY_STATUS(ForEachFile(paths, [&](const std::string& path) { return Visit(path, wish, state); }));
  return state;
}

}  // namespace

Result<CacheState> DropFromCache(const std::vector<std::string>& paths) {
  return VisitAll(paths, Wish::kForget);
}

Result<CacheState> ReadIntoCache(const std::vector<std::string>& paths) {
  return VisitAll(paths, Wish::kRead);
}

}  // namespace weir::launch
