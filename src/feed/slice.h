// Which positions of an epoch each rank takes. Pure.
//
// The ranks go through an epoch together, a global batch of batch * world positions at a time. Rank r takes
// the positions [r * batch, (r + 1) * batch) of each global batch. So the batches of all ranks, one after
// another, are those of a single rank with the same global batch.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/choices.h"
#include "base/error.h"

namespace weir::feed {

// The end of an epoch whose length is not a multiple of the global batch.
enum class Ends {
  kDrop,  // the rest is left out
  kPad,   // rows without a sample fill the last batch
  kWrap,  // samples from the epoch's beginning fill the last batch
};
inline constexpr Choices<Ends, 3> kEnds{{{Ends::kDrop, "drop"}, {Ends::kPad, "pad"}, {Ends::kWrap, "wrap"}}};
constexpr std::string_view ToString(Ends ends) { return WordOf(kEnds, ends); }

struct Slice {
  int64_t batch = 1;  // rows of one rank
  int64_t rank = 0;
  int64_t world = 1;
  Ends ends = Ends::kDrop;

  int64_t global_batch() const { return batch * world; }
};

// kInvalidArgument if a value is out of its range, and if kDrop leaves nothing of `positions`.
Status CheckSlice(const Slice& slice, int64_t positions);

// Returns the number of batches that every rank gets of an epoch of `positions` from position `begin` on.
int64_t BatchesFrom(const Slice& slice, int64_t positions, int64_t begin);

// Returns the position of row `row` of the rank's batch whose global batch begins at `begin`; nullopt for a
// row that kPad leaves without a sample. REQUIRES: the batch is one of BatchesFrom.
std::optional<int64_t> PositionOf(const Slice& slice, int64_t positions, int64_t begin, int64_t row);

}  // namespace weir::feed
