#include "base/error.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "base/bounded_write.h"

namespace weir {

std::string_view ToString(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kNotFound:
      return "not found";
    case ErrorCode::kOverloaded:
      return "overloaded";
    case ErrorCode::kDeadline:
      return "deadline";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kIo:
      return "I/O";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "unknown";
}

std::unexpected<Error> FailErrno(std::string_view what, int error_number) {
  ErrorCode code = error_number == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
  if (error_number == EMFILE || error_number == ENFILE || error_number == ENOMEM)
    code = ErrorCode::kOverloaded;
  return Fail(code, fmt::format("{}: {}", what, std::generic_category().message(error_number)));
}

std::unexpected<Error> Context(std::string_view what, Error error) {
  error.message = fmt::format("{}: {}", what, error.message);
  return std::unexpected(std::move(error));
}

namespace internal {
void CheckFailed(const char* condition, const char* file, int line) {
  char text[1024];
  const int size =
      std::snprintf(text, sizeof text, "weir: internal error: %s is false at %s:%d; please report this\n",
                    condition, file, line);
  const size_t length = std::min(static_cast<size_t>(std::max(size, 0)), sizeof text - 1);
  // Standard error may be a pipe that nobody reads: the program ends all the same.
  const Status nobody_to_tell = BoundedWriter(STDERR_FILENO).WriteAll({text, length}, 1s);
  static_cast<void>(nobody_to_tell);
  std::abort();
}
}  // namespace internal

}  // namespace weir
