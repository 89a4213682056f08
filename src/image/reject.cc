#include "image/reject.h"

#include <sys/stat.h>

namespace weir::image {
namespace {

bool IsDanglingLink(const std::string& path) {
  struct stat facts{};
  return ::lstat(path.c_str(), &facts) == 0 && S_ISLNK(facts.st_mode);
}

bool IsThereButNoFile(const std::string& path) {
  struct stat facts{};
  return ::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode);
}

RejectReason ReasonOf(const Error& error, const std::string& path) {
  switch (error.code) {
    case ErrorCode::kNotFound:
      return IsDanglingLink(path) ? RejectReason::kUnreadable : RejectReason::kVanished;
    case ErrorCode::kInvalidArgument:
      return error.message.ends_with("not a regular file") ? RejectReason::kNotAFile
                                                           : RejectReason::kTooManyBytes;
    case ErrorCode::kIo:
      if (error.message.find(": shrank to ") != error.message.npos) return RejectReason::kVanished;
      return IsThereButNoFile(path) ? RejectReason::kNotAFile : RejectReason::kUnreadable;
    case ErrorCode::kOverloaded:  // no descriptors or memory left: not the picture's fault
      return RejectReason::kFailed;
    default:
      return RejectReason::kUnreadable;
  }
}

}  // namespace

std::string_view ToString(RejectReason reason) {
  switch (reason) {
    case RejectReason::kEmpty:
      return "empty";
    case RejectReason::kNotAPicture:
      return "not-a-picture";
    case RejectReason::kUnsupported:
      return "unsupported";
    case RejectReason::kDamaged:
      return "damaged";
    case RejectReason::kTooManyPixels:
      return "too-many-pixels";
    case RejectReason::kTooManyBytes:
      return "too-many-bytes";
    case RejectReason::kTooFewBytes:
      return "too-few-bytes";
    case RejectReason::kNotAFile:
      return "not-a-file";
    case RejectReason::kUnreadable:
      return "unreadable";
    case RejectReason::kVanished:
      return "vanished";
    case RejectReason::kMissing:
      return "missing";
    case RejectReason::kUnreachable:
      return "unreachable";
    case RejectReason::kDuplicate:
      return "duplicate";
    case RejectReason::kWrongGeometry:
      return "wrong-geometry";
    case RejectReason::kUnrecognised:
      return "unrecognised";
    case RejectReason::kFailed:
      return "failed";
    case RejectReason::kHidden:
      return "hidden";
    case RejectReason::kLink:
      return "link";
    case RejectReason::kUnusedLabel:
      return "unused-label";
  }
  return "unknown";
}

Reject RejectOf(const Error& error, const std::string& path) {
  return Reject{ReasonOf(error, path), error.message};
}

}  // namespace weir::image
