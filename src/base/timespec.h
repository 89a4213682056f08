// Durations as the system's calls have them.
#pragma once

#include <time.h>

#include "base/clock.h"

namespace weir {

inline Duration FromTimespec(const timespec& t) {
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

inline timespec ToTimespec(Duration d) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(d);
  timespec t{};
  t.tv_sec = whole.count();
  t.tv_nsec = (d - whole).count();
  return t;
}

}  // namespace weir
