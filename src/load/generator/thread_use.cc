#include "load/generator/thread_use.h"

#include <fmt/format.h>

#include <algorithm>

#include "monitor/proc.h"

namespace weir::load {

ThreadUse ReadThreadUse() {
  ThreadUse use;
  use.at = SteadyClock().Now();
  for (const int tid : monitor::NumberedEntries("/proc/self/task")) {
    const std::string folder = fmt::format("/proc/self/task/{}/", tid);
    const auto schedstat = monitor::ReadSmall(folder + "schedstat");
    const auto cpu = schedstat ? monitor::ParseSchedstat(*schedstat) : std::nullopt;
    auto name = monitor::ReadSmall(folder + "comm");
    if (!cpu || !name) continue;  // it has ended
    if (name->ends_with('\n')) name->pop_back();
    use.threads[tid] = {.name = *std::move(name), .cpu = *cpu};
  }
  return use;
}

Busiest BusiestThread(const ThreadUse& before, const ThreadUse& after,
                      std::initializer_list<std::string_view> names, Duration spun) {
  Busiest busiest;
  const double seconds = Seconds(after.at - before.at);
  if (seconds <= 0) return busiest;
  for (const auto& [tid, thread] : after.threads) {
    if (std::ranges::none_of(names, [&](std::string_view name) { return thread.name.starts_with(name); }))
      continue;
    const auto earlier = before.threads.find(tid);
    Duration cpu = thread.cpu - (earlier == before.threads.end() ? Duration{} : earlier->second.cpu);
    if (thread.name == "load-0") cpu -= spun;
    if (Seconds(cpu) / seconds > busiest.share) busiest = {thread.name, Seconds(cpu) / seconds};
  }
  return busiest;
}

}  // namespace weir::load
