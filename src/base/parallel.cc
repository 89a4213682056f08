#include "base/parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/thread.h"

namespace weir {

void ParallelFor(std::string_view name, int64_t count, int threads,
                 const std::function<void(int64_t)>& body) {
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    for (int64_t i = next++; i < count; i = next++) body(i);
  };
  const auto wanted = std::min<int64_t>(threads, count);
  if (wanted <= 1) return work();
  std::vector<std::jthread> pool;
  for (int64_t i = 0; i < wanted; ++i) {
    pool.push_back(StartThread(fmt::format("{}-{}", name, i), [&](const std::stop_token&) { work(); }));
  }
}

}  // namespace weir
