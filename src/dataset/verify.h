// Holds a finished set against its own manifest.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/error.h"

namespace weir::dataset {

struct VerifyReport {
  int64_t images = 0;  // held against the manifest
  int64_t bytes = 0;   // of them
  int64_t faults = 0;
  std::vector<std::string> examples;  // the first 20 faults, one line each: which file, which record, what
};

struct VerifyOptions {
  std::stop_token stop;
  std::function<void(int64_t done, int64_t total)> progress;  // called on this thread, for every picture
};

// Reads all of it: every picture against its hash (and SHA-256, where the manifest has it), every byte
// between the pictures of a shard against what belongs there (headers, CRCs, padding), the index, and the
// hashes of both lists. What it finds is in the report. kNotFound and kCorrupt where there is no set.json, or
// one that tells nothing; kCancelled; kIo. Memory does not grow with the set.
Result<VerifyReport> VerifySet(const std::string& folder, const VerifyOptions& options);

}  // namespace weir::dataset
