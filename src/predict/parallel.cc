#include "predict/parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/thread.h"

namespace weir::predict {

void ForEach(int64_t count, int threads, const std::function<void(int64_t)>& body) {
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    for (int64_t i = next++; i < count; i = next++) body(i);
  };
  const auto wanted = std::min<int64_t>(threads, count);
  if (wanted <= 1) return work();
  std::vector<std::jthread> pool;
  for (int64_t i = 0; i < wanted; ++i) {
    pool.push_back(StartThread(fmt::format("predict-{}", i), [&](const std::stop_token&) { work(); }));
  }
}

}  // namespace weir::predict
