#include "cluster/user_token.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "base/file.h"
#include "cluster/tls.h"

namespace weir::cluster {
namespace {

constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

// Returns whether it is a folder of this user.
bool IsOwnFolder(const std::string& path) {
  struct stat facts{};
  return ::lstat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == ::geteuid();
}

// Makes the folder. False if it cannot be made there.
Result<bool> MakeOwnFolder(const std::string& path) {
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) return false;
  struct stat facts{};
  if (!IsOwnFolder(path) || ::lstat(path.c_str(), &facts) != 0 || (facts.st_mode & kOthers) != 0)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{} is open to other users, or theirs: no token is kept there. Remove it, or give "
                    "agents and their callers a --token-file",
                    path));
  return true;
}

// Writes it under a name of its own first: a reader finds no half of it.
Status WriteNewToken(const std::string& path) {
  const std::string text = TRY(MakeToken()) + "\n", own = fmt::format("{}.{}", path, ::getpid());
  ::unlink(own.c_str());
  const UniqueFd fd(::open(own.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!fd.valid()) return FailErrno(own, errno);
  Status written;
  if (::write(fd.get(), text.data(), text.size()) != std::ssize(text)) written = FailErrno(own, errno);
  // Another process may have been first.
  if (written && ::link(own.c_str(), path.c_str()) != 0 && errno != EEXIST) written = FailErrno(path, errno);
  ::unlink(own.c_str());
  return written;
}

}  // namespace

Result<std::string> MakeToken() {
  std::array<unsigned char, 32> bytes;
  if (::getrandom(bytes.data(), bytes.size(), 0) != std::ssize(bytes)) return FailErrno("getrandom", errno);
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

Result<std::string> RuntimeFolder(const Environment& environment) {
  const char* const given = environment("XDG_RUNTIME_DIR");
  const std::string user = std::to_string(::geteuid());
  for (const std::string& base : {std::string(given == nullptr ? "" : given), "/run/user/" + user}) {
    const std::string path = base + "/weir";
    if (base.starts_with('/') && IsOwnFolder(base) && TRY(MakeOwnFolder(path))) return path;
  }
  const std::string path = "/tmp/weir-" + user;
  if (TRY(MakeOwnFolder(path))) return path;
  return Fail(ErrorCode::kIo, fmt::format("no folder for this user's token: {} cannot be made. Set "
                                          "XDG_RUNTIME_DIR, or give agents and their callers a --token-file",
                                          path));
}

Result<std::string> UserToken(const std::string& folder) {
  const std::string path = folder + "/agent-token";
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid() && errno == ENOENT) {
    TRY_STATUS(WriteNewToken(path));
    fd = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  }
  struct stat facts{};
  if (!fd.valid() || ::fstat(fd.get(), &facts) != 0) return FailErrno(path, errno);
  if (!S_ISREG(facts.st_mode) || facts.st_uid != ::geteuid() || (facts.st_mode & kOthers) != 0)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: other users can read it, or wrote it: remove it, and a new token is made", path));
  std::array<char, 4096> text;
  const ssize_t size = ::read(fd.get(), text.data(), text.size());
  if (size < 0) return FailErrno(path, errno);
  return CheckToken({text.data(), static_cast<size_t>(size)}, path);
}

Result<std::string> UserToken() {
  return UserToken(TRY(RuntimeFolder([](const char* name) -> const char* { return std::getenv(name); })));
}

}  // namespace weir::cluster
