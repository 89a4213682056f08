// Whether a data set is as warm or as cold as a trial wants it, by what the kernel tells of its pages. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "launch/page_cache.h"

namespace weir::trial {

// The facts of the machine that decide whether the state of a page cache may pass.
struct CacheFacts {
  std::string path;              // of the data
  bool lives_in_memory = false;  // its file system has no disk: nothing of it ever leaves memory
  uint64_t memory_bytes = 0;     // of the machine; 0: not known
};

// After launch::DropFromCache, and after launch::ReadIntoCache. kUnsupported, with the remedy, where this
// machine cannot hold the data so at any time. kOverloaded where only now it does not: other programs use the
// files, or the memory, and another trial may find it otherwise.
Status CheckCold(const launch::CacheState& state, const CacheFacts& facts);
Status CheckWarm(const launch::CacheState& state, const CacheFacts& facts);

}  // namespace weir::trial
