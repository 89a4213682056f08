#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/private_file.h"

namespace weir {
namespace {

// A link stays, and its target is replaced.
std::string TargetOf(const std::string& name) {
  std::error_code unresolved;
  const std::filesystem::path real = std::filesystem::canonical(name, unresolved);
  return unresolved ? name : real.string();
}

std::filesystem::path FolderOf(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) return ".";
  return folder;
}

constexpr std::string_view kTemporary = ".tmp";

// The process of "BEGINNING.PID.tmp".
std::optional<pid_t> WriterOf(std::string_view name, std::string_view beginning) {
  if (!name.starts_with(beginning) || !name.ends_with(kTemporary)) return std::nullopt;
  if (name.size() <= beginning.size() + 1 + kTemporary.size() || name[beginning.size()] != '.')
    return std::nullopt;
  name.remove_prefix(beginning.size() + 1);
  name.remove_suffix(kTemporary.size());
  pid_t process = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), process);
  if (error != std::errc() || end != name.data() + name.size() || process <= 0) return std::nullopt;
  return process;
}

}  // namespace

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

namespace {

Status WriteWhole(const std::string& name, std::string_view contents, Durability durability, mode_t mode) {
  const std::string path = TargetOf(name);
  struct stat facts{};
  const bool in_place = ::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode);  // a device or pipe
  const std::string beside = in_place ? path : TemporaryBeside(path);
  const int flags = in_place ? O_WRONLY | O_CLOEXEC : O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  const UniqueFd fd(::open(beside.c_str(), flags, mode));
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

}  // namespace

Status WriteFileWhole(const std::string& name, std::string_view contents, Durability durability) {
  return WriteWhole(name, contents, durability, 0644);
}

Status WritePrivateFile(const std::string& name, std::string_view contents) {
  return WriteWhole(name, contents, Durability::kNone, 0600);
}

Status CheckWritable(const std::string& name) {
  const auto invalid = [&](std::string_view what) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", name, what));
  };
  const std::string path = TargetOf(name);
  struct stat facts{};
  if (::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode))
    return invalid("is a folder: name a file in it");
  if (::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode))
    return ::access(path.c_str(), W_OK) == 0 ? Status() : FailErrno(name, errno);
  const std::string file = std::filesystem::path(path).filename();
  const std::string folder = FolderOf(path);
  if (::stat(folder.c_str(), &facts) != 0 && errno == ENOENT)
    return Fail(ErrorCode::kNotFound, fmt::format("{}: there is no folder {}: make it first", name, folder));
  if (::stat(folder.c_str(), &facts) != 0) return FailErrno(fmt::format("{}: {}", name, folder), errno);
  if (!S_ISDIR(facts.st_mode)) return invalid(fmt::format("{} is no folder", folder));
  if (file.empty() || file == "." || file == "..") return invalid("names no file");
  constexpr std::string_view kLongestEnding = ".2147483647.tmp";
  if (file.size() + kLongestEnding.size() > NAME_MAX) {
    return invalid(
        fmt::format("a name of {} bytes, at most {} may be", file.size(), NAME_MAX - kLongestEnding.size()));
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return FailErrno(fmt::format("{}: the folder {} cannot be written", name, folder), errno);
  return {};
}

std::string TemporaryBeside(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename();
  std::error_code ignored;
  std::vector<std::filesystem::path> left;
  for (auto entry = std::filesystem::directory_iterator(FolderOf(path), ignored);
       !ignored && entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
    const auto process = WriterOf(entry->path().filename().native(), name);
    if (process && ::kill(*process, 0) != 0 && errno == ESRCH) left.push_back(entry->path());
  }
  for (const std::filesystem::path& file : left) ::unlink(file.c_str());
  return fmt::format("{}.{}{}", path, ::getpid(), kTemporary);
}

Status MakeFolders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return FailErrno(path, error.value());
  return {};
}

}  // namespace weir
