// The phase that prepares data: originals are read, decoded and written as a prepared set.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "probe/storage_result.h"
#include "probe/storage_session.h"

namespace weir::probe {

// The work of one preparation. Times are sums over its threads.
struct EtlFigures {
  int64_t images = 0, rejected = 0;
  uint64_t bytes_in = 0, bytes_out = 0;
  Duration wall{};
  Duration read{}, decode{}, resize{}, encode{}, write{};
  int workers = 1;

  std::optional<double> ImagesPerSecond() const;  // rejected ones included
};

// Reads original `index` and returns its bytes. Thread-safe. Fails with kIo if the read does not end within
// its timeout.
using ReadOriginal = std::function<Result<Bytes>(int64_t index)>;

// Prepares `count` originals into a set in `folder`, which it makes, and calls `moved` after each. Called by
// ProbeEtl; the caller connects the module that prepares sets. What it refers to must outlive a write that
// hangs.
using PrepareOriginals =
    std::function<Result<EtlFigures>(int64_t count, const ReadOriginal& read, const std::string& folder,
                                     std::stop_token stop, const std::function<void()>& moved)>;

struct EtlRun {
  EtlFigures figures;
  ReadTally reads;
  MachineUse machine;
};
struct EtlReport {
  std::vector<EtlRun> runs;
  std::string hung_write;  // says where; empty: every write ended. Then the last run has no figures
  SetFacts set;
  bool wants_cold = true;
};

// Prepares the samples, once for each repeat, each time into a new folder below `folder`, which must hold
// nothing else of that name; removes what was written. A write that does not end within the timeout ends the
// phase, and what was written stays. `clock` as Train wants it. kCancelled after a stop.
Result<EtlReport> ProbeEtl(const StorageOptions& options, const std::vector<StorageSample>& samples,
                           const SetFacts& set, const std::string& folder, const PrepareOriginals& prepare,
                           const Clock& clock, const std::stop_token& stop);

// The stage with the most time of the threads: "read", "decode", "resize", "encode" or "write".
StorageBottleneck EtlBottleneck(const std::vector<EtlRun>& runs);

bool AnyHung(const EtlReport& report);

}  // namespace weir::probe
