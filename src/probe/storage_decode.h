// Readers that also decode: the rest of a training feed's work on a sample.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "probe/storage_read.h"

namespace weir::probe {

// Work on each sample after its read, as `weir feed` does it: a random box is decoded and resized, and
// flipped by chance.
struct DecodeWork {
  int width = 224, height = 224;  // of the row, pixels
};

// Makes a reader by `options` whose samples are also decoded; null `work`: only read. kCorrupt for a sample
// that is no picture, from Read and Wait.
Result<std::unique_ptr<SampleReader>> MakeWorkingReader(const ReadOptions& options, const DecodeWork* work,
                                                        const Clock& clock);

}  // namespace weir::probe
