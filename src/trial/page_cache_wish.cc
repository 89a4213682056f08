#include "trial/page_cache_wish.h"

#include <fmt/format.h>

namespace weir::trial {
namespace {

constexpr double kWarmShare = 0.1;  // of a cold data set that may still be in memory
constexpr double kColdShare = 0.1;  // of a warm one that may not be

}  // namespace

Status CheckCold(const launch::CacheState& state, const CacheFacts& facts) {
  if (state.unknown > 0)
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("whether {} of the {} files of {} are still in memory the kernel tells only their "
                    "owner, who may write them: for a cold page cache make the set as this user",
                    state.unknown, state.files, facts.path));
  if (static_cast<double>(state.cached_bytes) <= kWarmShare * static_cast<double>(state.bytes)) return {};
  const uint64_t cached = state.cached_bytes >> 20, all = state.bytes >> 20;
  if (facts.lives_in_memory)
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("{} of {} MB of {} stay in memory whatever is asked: a cold page cache wants a file "
                    "system on a disk",
                    cached, all, facts.path));
  return Fail(
      ErrorCode::kOverloaded,
      fmt::format("{} of {} MB of {} stayed in the page cache, for another program uses the files now: "
                  "end it, or wait",
                  cached, all, facts.path));
}

Status CheckWarm(const launch::CacheState& state, const CacheFacts& facts) {
  const double cold = static_cast<double>(state.bytes) - static_cast<double>(state.cached_bytes);
  // Files of which the kernel tells nothing were read too.
  if (state.unknown > 0 || cold <= kColdShare * static_cast<double>(state.bytes)) return {};
  const uint64_t cached = state.cached_bytes >> 20, all = state.bytes >> 20;
  if (facts.memory_bytes > 0 && state.bytes > facts.memory_bytes)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("only {} of {} MB of {} stay in memory, and the machine has {} MB: a warm page "
                            "cache wants data that fit in it; take fewer (images), or leave page_cache out",
                            cached, all, facts.path, facts.memory_bytes >> 20));
  return Fail(
      ErrorCode::kOverloaded,
      fmt::format("only {} of {} MB of {} stayed in the page cache, for other programs need the memory "
                  "now: end them, take fewer (images), or leave page_cache out",
                  cached, all, facts.path));
}

}  // namespace weir::trial
