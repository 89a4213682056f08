// Open-loop random reads with deadlines, as inference on live streams does, and sequential reads of large
// files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/seed.h"
#include "probe/storage_train.h"

namespace weir::probe {

struct InferOptions {
  int streams = 1;            // cameras, say
  double frames_per_s = 25;   // of each stream
  Duration deadline{};        // of a frame after its planned time; zero: one frame's interval
  uint64_t record_bytes = 0;  // read at a random place of a random file; 0: the whole file
  int threads = 16;           // that read
  Duration limit = 10s;       // of planned frames
  Duration timeout = 10s;     // of one read
};

struct InferResult {
  int64_t planned = 0, answered = 0;
  int64_t in_time = 0;           // answered before the deadline
  stats::Histogram response_ns;  // from the planned time to the end of the read
  stats::Histogram service_ns;   // from the begin of the read
  ReadTally reads;
  Duration wall{};
  bool cancelled = false;

  std::optional<double> InTimeShare() const;  // of the planned frames; nullopt without one
};

// The read of frame `number`: a pure function of the seed.
StorageSample FrameSample(const std::vector<StorageSample>& samples, const InferOptions& options, Seed seed,
                          int64_t number);

// Plans streams x frames_per_s frames a second at equal distances and reads each at its time, or as soon
// afterwards as a thread is free. Blocks. Errors and hung reads are counted. kInvalidArgument without
// samples.
Result<InferResult> Infer(std::vector<StorageSample> samples, const InferOptions& options, Seed seed,
                          const MakeReader& make_reader, const Clock& clock, const std::stop_token& stop);

struct StreamOptions {
  uint64_t block_bytes = uint64_t{1} << 20;  // of one read; a multiple of 4096
  int threads = 4;
  bool direct = false;
  bool cold = true;  // forget each file's pages once it was read
  Duration limit = 10s;
  Duration timeout = 10s;  // of one file
};

struct StreamResult {
  ReadTally reads;  // of blocks; open and close of files
  Duration wall{};
  bool cancelled = false;

  std::optional<double> BytesPerSecond() const;
};

// Reads the files from begin to end, each thread one at a time, and over again until the limit. Blocks.
// kInvalidArgument without samples.
Result<StreamResult> Stream(std::vector<StorageSample> samples, const StreamOptions& options,
                            const Clock& clock, const std::stop_token& stop);

}  // namespace weir::probe
