#include "dataset/line_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace weir::dataset {
namespace {

constexpr size_t kPiece = 256 << 10;  // bytes

}  // namespace

Result<LineReader> LineReader::Open(const std::string& path) {
  const bool standard_input = path == "-";
  UniqueFd fd(standard_input ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                             : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  const std::string name = standard_input ? "standard input" : path;
  if (!fd.valid()) return FailErrno(name, errno);
  return LineReader(name, std::move(fd));
}

Result<std::optional<std::string_view>> LineReader::Next() {
  for (;;) {
    const size_t end = buffer_.find(end_, at_);
    const bool last = end == buffer_.npos && ended_;
    const size_t stop = std::min(end, buffer_.size());
    if (stop - at_ > kMaxLine) {
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("{}: line {} is over {} bytes", path_, line_ + 1, kMaxLine));
    }
    if (end != buffer_.npos || (last && at_ < buffer_.size())) {
      const std::string_view line = std::string_view(buffer_).substr(at_, stop - at_);
      at_ = last ? stop : stop + 1;
      line_ += 1;
      return line;
    }
    if (last) return std::nullopt;
    TRY_STATUS(Fill());
  }
}

// Adds a piece of the file to what has not been given out yet.
Status LineReader::Fill() {
  buffer_.erase(0, at_);
  at_ = 0;
  const size_t kept = buffer_.size();
  buffer_.resize(kept + kPiece);
  ssize_t got = -1;
  do {
    got = ::read(fd_.get(), buffer_.data() + kept, kPiece);
  } while (got < 0 && errno == EINTR);
  const int error = errno;
  buffer_.resize(kept + static_cast<size_t>(got > 0 ? got : 0));
  if (got < 0) return FailErrno(path_, error);
  ended_ = got == 0;
  return {};
}

Result<bool> LineReader::DetectZeroEnds(size_t bytes) {
  CHECK(at_ == 0 && line_ == 0);
  size_t looked = 0;
  for (;;) {
    const std::string_view front = std::string_view(buffer_).substr(0, bytes);
    if (front.find('\0', looked) != front.npos) {
      end_ = '\0';
      return true;
    }
    looked = front.size();
    if (looked == bytes || ended_) return false;
    TRY_STATUS(Fill());
  }
}

}  // namespace weir::dataset
