#include "feed/slice.h"

#include <fmt/format.h>

namespace weir::feed {

Status CheckSlice(const Slice& slice, int64_t positions) {
  constexpr int64_t kMost = int64_t{1} << 24;
  if (slice.batch < 1 || slice.batch > kMost)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("a batch of {}: give 1 to {}", slice.batch, kMost));
  if (slice.world < 1 || slice.world > kMost)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("a world of {}: give 1 to {}", slice.world, kMost));
  if (slice.rank < 0 || slice.rank >= slice.world) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("rank {} of a world of {}: give 0 to {}", slice.rank,
                                                         slice.world, slice.world - 1));
  }
  if (slice.ends == Ends::kDrop && positions < slice.global_batch()) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("an epoch of {} samples has no whole batch of {} x {}: take a smaller batch, or end "
                    "epochs with pad or wrap",
                    positions, slice.world, slice.batch));
  }
  return {};
}

int64_t BatchesFrom(const Slice& slice, int64_t positions, int64_t begin) {
  if (begin >= positions) return 0;
  const int64_t left = positions - begin, whole = left / slice.global_batch();
  if (slice.ends == Ends::kDrop) return whole;
  return whole + (left % slice.global_batch() == 0 ? 0 : 1);
}

std::optional<int64_t> PositionOf(const Slice& slice, int64_t positions, int64_t begin, int64_t row) {
  const int64_t position = begin + slice.rank * slice.batch + row;
  if (position < positions) return position;
  if (slice.ends == Ends::kPad) return std::nullopt;
  return position % positions;
}

}  // namespace weir::feed
