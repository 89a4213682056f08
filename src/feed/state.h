// Where a feed stands: all that is needed to go on from there, in less than a kilobyte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace weir::feed {

// A value. It says nothing about threads, ranks or batches, so each of them may be another after a resume.
struct FeedState {
  std::string set;     // hash of the set, 32 hex digits
  std::string recipe;  // hash of the sampler and the augmentation, 16 hex digits
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t position = 0;  // positions of the epoch that all ranks together have taken

  bool operator==(const FeedState&) const = default;
};

inline constexpr size_t kMostStateBytes = 1024;

// Returns the state as one line of JSON.
std::string FormatState(const FeedState& state);

// kCorrupt names the key that is missing, of another kind or out of its range; kUnsupported for a state of
// another version of the program.
Result<FeedState> ParseState(std::string_view text);

// kInvalidArgument, with the remedy, if `state` belongs to another set, recipe or seed than `own`, or stands
// outside an epoch of `positions`.
Status CheckState(const FeedState& state, const FeedState& own, int64_t positions);

}  // namespace weir::feed
