#include "oip/status.h"

namespace weir::oip {
namespace {

// grpc::StatusCode, by number: this file does without the library's headers.
enum Grpc : int {
  kCancelled = 1,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

}  // namespace

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

ErrorCode FromHttpStatus(int status) {
  switch (status) {
    case 404:
    case 410:
      return ErrorCode::kNotFound;
    case 408:
    case 504:
      return ErrorCode::kDeadline;
    case 429:
    case 503:
      return ErrorCode::kOverloaded;
    case 499:
      return ErrorCode::kCancelled;
    case 405:
    case 415:
    case 501:
      return ErrorCode::kUnsupported;
    case 502:
      return ErrorCode::kIo;
    default:
      return status >= 400 && status < 500 ? ErrorCode::kInvalidArgument : ErrorCode::kInternal;
  }
}

int GrpcStatus(ErrorCode code, Compat /*compat: Triton has the same codes here*/) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kCorrupt:
      return Grpc::kInvalidArgument;
    case ErrorCode::kNotFound:
      return Grpc::kNotFound;
    case ErrorCode::kCancelled:
      return Grpc::kCancelled;
    case ErrorCode::kUnsupported:
      return Grpc::kUnimplemented;
    case ErrorCode::kOverloaded:
    case ErrorCode::kDeadline:
      return Grpc::kUnavailable;
    case ErrorCode::kIo:
    case ErrorCode::kInternal:
      return Grpc::kInternal;
  }
  return Grpc::kInternal;
}

ErrorCode FromGrpcStatus(int status) {
  switch (status) {
    case Grpc::kCancelled:
      return ErrorCode::kCancelled;
    case Grpc::kInvalidArgument:
    case Grpc::kAlreadyExists:
    case Grpc::kPermissionDenied:
    case Grpc::kFailedPrecondition:
    case Grpc::kOutOfRange:
    case Grpc::kUnauthenticated:
      return ErrorCode::kInvalidArgument;
    case Grpc::kDeadlineExceeded:
      return ErrorCode::kDeadline;
    case Grpc::kNotFound:
      return ErrorCode::kNotFound;
    case Grpc::kResourceExhausted:
    case Grpc::kAborted:
    case Grpc::kUnavailable:
      return ErrorCode::kOverloaded;
    case Grpc::kUnimplemented:
      return ErrorCode::kUnsupported;
    case Grpc::kDataLoss:
      return ErrorCode::kCorrupt;
    default:
      return ErrorCode::kInternal;
  }
}

}  // namespace weir::oip
