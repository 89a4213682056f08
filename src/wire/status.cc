#include "wire/status.h"

#include "base/json.h"

namespace weir::wire {

int HttpStatus(ErrorCode code, Compat compat) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kCorrupt:
      return 400;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kCancelled:
      return compat == Compat::kTriton ? 400 : 499;
    case ErrorCode::kUnsupported:
      return 501;
    case ErrorCode::kOverloaded:
    case ErrorCode::kDeadline:
      return 503;
    case ErrorCode::kIo:
    case ErrorCode::kInternal:
      return 500;
  }
  return 500;
}

}  // namespace weir::wire
