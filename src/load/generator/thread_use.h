// How much of the time the threads of this process had a CPU.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace weir::load {

struct ThreadUse {
  struct Thread {
    std::string name;
    Duration cpu{};
  };
  std::map<int, Thread> threads;  // by their number in the kernel
  Instant at;
};

// As of now; empty where the kernel does not tell.
ThreadUse ReadThreadUse();

struct Busiest {
  std::string name;
  double share = 0;  // of the time between the two readings
};
// Returns the busiest of the threads whose name begins with one of `names`. `spun` is the spinning
// of the schedule's thread, "load-0": it is not counted as work.
Busiest BusiestThread(const ThreadUse& before, const ThreadUse& after,
                      std::initializer_list<std::string_view> names, Duration spun);

}  // namespace weir::load
