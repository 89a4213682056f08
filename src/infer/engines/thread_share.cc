#include "infer/engines/thread_share.h"

#include <fmt/format.h>

#include <algorithm>

namespace weir::infer {

Result<ThreadShare> ShareThreads(const SessionOptions& options, int usable) {
  if (options.threads < 0) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("threads is {}: give 1 or more, or 0 for all", options.threads));
  }
  if (options.streams < 0) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("streams is {}: give 1 or more, or 0 for one per thread", options.streams));
  }
  const int threads = options.threads == 0 ? usable : std::min(options.threads, usable);
  const int streams = options.streams == 0 ? threads : std::min(options.streams, threads);
  return ThreadShare{threads, streams};
}

}  // namespace weir::infer
