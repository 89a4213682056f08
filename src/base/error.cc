#include "base/error.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

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
  std::fprintf(stderr, "weir: internal error: %s is false at %s:%d; please report this\n", condition, file,
               line);
  std::abort();
}
}  // namespace internal

}  // namespace weir
