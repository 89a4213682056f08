// Questions of tests about processes that are not their own children.
#pragma once

#include <fstream>
#include <string>

#include "base/clock.h"

namespace weir::launch::testing {

// Waits until process `pid` is gone, or a zombie that nobody has reaped yet; a minute at most.
inline bool IsGone(int pid) {
  const SteadyClock clock;
  for (const Instant until = clock.Now() + 60s; clock.Now() < until; SleepUntil(clock.Now() + 1ms)) {
    std::string stat;
    std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/stat"), stat);
    if (stat.empty() || stat.find(") Z ") != std::string::npos) return true;
  }
  return false;
}

// The number that follows `word` in `text`; 0 where there is none.
inline int NumberAfter(const std::string& text, const std::string& word) {
  const size_t at = text.find(word);
  return at == std::string::npos ? 0 : std::atoi(text.c_str() + at + word.size());
}

}  // namespace weir::launch::testing
