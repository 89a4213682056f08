// The settings of the emulated engine, as people write them.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "infer/engines/busy_schedule.h"

namespace weir::infer {

struct EmulatedOptions {
  BusySchedule::Options timing;
  int64_t max_batch = int64_t{1} << 20;  // items; larger batches are refused with kInvalidArgument
};

// `settings`: "base=1ms,per_item=1.9ms,streams=1,jitter=0.05,batch=64,seed=1", each at most once, none
// needed. Times have the suffix us, ms or s and are at most 1000 s. kInvalidArgument names the setting and
// what it takes.
Result<EmulatedOptions> ParseEmulatedOptions(std::string_view settings);

}  // namespace weir::infer
