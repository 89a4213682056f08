// Why a file is no input. Every file of a data set is answered or rejected for one of these reasons; the list
// is closed.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "base/error.h"

namespace weir::image {

enum class RejectReason {
  kEmpty,          // no bytes
  kNotAPicture,    // the content is none of the formats known
  kUnsupported,    // a picture of a kind that is not decoded (12-bit JPEG, lossless JPEG, ...)
  kDamaged,        // cut, or the decoder found wrong data
  kTooManyPixels,  // declared size over the limit: refused before memory is asked for
  kTooManyBytes,   // file over the limit
  kTooFewBytes,    // file under --min-bytes
  kNotAFile,       // a folder, pipe, device or socket by a picture's name
  kUnreadable,     // the system refuses: permission, a link that leads nowhere or in a circle, I/O error
  kVanished,       // was there when listed, and gone or shorter when read
  kMissing,        // a list names it, and nothing is there
  kUnreachable,    // its server did not give it, after all retries
  kDuplicate,      // the same bytes came before
  kWrongGeometry,  // a prepared picture of another size than the recipe wants
  kUnrecognised,   // the model cannot place it (--recognise)
  kFailed,         // the service answered an error for its batch
  kHidden,         // its name, or that of a folder it lies in, begins with a dot
  kLink,           // a link in an archive to something that the archive does not hold
  kUnusedLabel,    // a label in an archive that belongs to no picture of it
};

std::string_view ToString(
    RejectReason reason);  // "empty", "not-a-picture", "damaged", "too-many-pixels", ...

struct Reject {
  RejectReason reason = RejectReason::kDamaged;
  std::string detail;  // the decoder's or the system's words, one line
};

template <typename T>
using Accepted = std::expected<T, Reject>;

// The reject that a failed ReadFile means. Of `path`, when it is given, the system is asked once more, which
// tells a link that leads nowhere from a file that vanished, and a socket from a file that may not be read.
Reject RejectOf(const Error& error, const std::string& path = {});

}  // namespace weir::image
