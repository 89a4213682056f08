#include "record/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

namespace weir::record {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{4} << 30;  // a million records of 4 KB

Status SyncFolderOf(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent;
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) return FailErrno(folder, errno);
  return {};
}

}  // namespace

Result<JournalContents> ParseJournal(std::string_view text) {
  JournalContents contents;
  for (int64_t line = 1; contents.whole_bytes < text.size(); ++line) {
    const std::string_view rest = text.substr(contents.whole_bytes);
    const size_t end = rest.find('\n');
    const bool last = end == std::string_view::npos || end + 1 == rest.size();
    if (end != std::string_view::npos) {
      auto json = ParseJson(rest.substr(0, end));
      if (json && json->is_object()) {
        contents.entries.push_back(std::move(*json));
        contents.whole_bytes += end + 1;
        continue;
      }
      const std::string why = json ? "not an object" : json.error().message;
      if (!last || rest[0] != '\0') {
        return Fail(ErrorCode::kCorrupt,
                    fmt::format("line {}: {}; something else has changed the file: bring the line back from "
                                "a copy, or delete it and lose what it held",
                                line, why));
      }
    }
    if (line == 1 && rest[0] != '{' && rest[0] != '\0') {  // one line of somebody else's: not ours to cut off
      return Fail(ErrorCode::kCorrupt, "line 1: not a journal's");
    }
    contents.torn_bytes = rest.size();
    break;
  }
  return contents;
}

Result<JournalContents> ReadJournal(const std::string& path) {
  const Bytes bytes = TRY_CONTEXT(ReadFile(path, kMaxBytes), "journal");
  return TRY_CONTEXT(ParseJournal(bytes.text()), fmt::format("journal {}", path));
}

Result<Journal::Opened> Journal::Open(const std::string& path, Durability durability) {
  const std::string what = fmt::format("journal {}", path);
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644));
  if (!fd.valid()) return FailErrno(what, errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return FailErrno(what, errno);
    return Fail(ErrorCode::kIo,
                what + ": another run is writing to it; wait for it to end, or give another folder");
  }
  JournalContents contents = TRY(ReadJournal(path));
  if (contents.torn_bytes > 0 && ::ftruncate(fd.get(), static_cast<off_t>(contents.whole_bytes)) != 0) {
    return FailErrno(what, errno);
  }
  if (durability == Durability::kSynced) {
    if (::fsync(fd.get()) != 0) return FailErrno(what, errno);
    TRY_STATUS(SyncFolderOf(path));
  }
  const uint64_t size = contents.whole_bytes;
  return Opened{Journal(path, std::move(fd), size, durability), std::move(contents)};
}

Journal::Journal(std::string path, UniqueFd fd, uint64_t size, Durability durability)
    : path_(std::move(path)), fd_(std::move(fd)), size_(size), durability_(durability) {}

Status Journal::Append(const Json& entry) {
  CHECK(entry.is_object());
  const std::string line = DumpJson(entry) + "\n";
  ssize_t put = 0;
  do {
    put = ::write(fd_.get(), line.data(), line.size());
  } while (put < 0 && errno == EINTR);
  const bool whole = put == static_cast<ssize_t>(line.size());
  if (whole && (durability_ == Durability::kNone || ::fsync(fd_.get()) == 0)) {
    size_ += line.size();
    return {};
  }
  const int error = put >= 0 && !whole ? ENOSPC : errno;  // a short write is a full disk
  if (::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0) {
    return FailErrno(fmt::format("journal {}: a part of a line is left at its end, for lack of room", path_),
                     errno);
  }
  return FailErrno(fmt::format("journal {}", path_), error);
}

}  // namespace weir::record
