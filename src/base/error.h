// Errors as values. Nothing in the program throws across a file that wraps a library.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace weir {

// A new code needs a caller that reacts to it.
enum class ErrorCode {
  kInvalidArgument,  // the caller's input is wrong
  kNotFound,         // the thing named is not there
  kOverloaded,       // a queue is full, or descriptors or memory are used up: try later
  kDeadline,         // the time allowed is over
  kCancelled,        // the caller left, or the program is stopping
  kUnsupported,      // right input that this program (or machine) cannot serve
  kIo,               // the operating system refused
  kCorrupt,          // data that claims to be something it is not
  kInternal,         // our own bug
};

std::string_view ToString(ErrorCode code);  // "invalid argument", "not found", ...

// `message` names the thing and, where there is one, the remedy. No trailing period, no newline.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;

  bool operator==(const Error&) const = default;
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

inline std::unexpected<Error> Fail(ErrorCode code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}

// kNotFound for ENOENT, kOverloaded where descriptors or memory are used up, kIo otherwise; the message ends
// with the system's own words for `error_number`.
std::unexpected<Error> FailErrno(std::string_view what, int error_number);

// Adds what was being done in front of an error on its way up: "model resnet50: open model.onnx: no such
// file".
std::unexpected<Error> Context(std::string_view what, Error error);

namespace internal {
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);
}

}  // namespace weir

// Gives the value of a Result, or returns its error from the enclosing function.
#define TRY(expression)                                                     \
  ({                                                                        \
    auto&& try_result = (expression);                                       \
    if (!try_result) return std::unexpected(std::move(try_result).error()); \
    std::move(*std::move(try_result));                                      \
  })
// The same for a Status, or where the value is not wanted.
#define TRY_STATUS(expression)                                              \
  do {                                                                      \
    auto&& try_result = (expression);                                       \
    if (!try_result) return std::unexpected(std::move(try_result).error()); \
  } while (false)
// TRY with the context of the caller put in front of the error.
#define TRY_CONTEXT(expression, what)                                               \
  ({                                                                                \
    auto&& try_result = (expression);                                               \
    if (!try_result) return ::weir::Context((what), std::move(try_result).error()); \
    std::move(*std::move(try_result));                                              \
  })

// For our own bugs, never for input: prints the condition and aborts.
#define CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::weir::internal::CheckFailed(#condition, __FILE__, __LINE__))
