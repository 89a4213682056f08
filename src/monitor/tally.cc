#include "monitor/tally.h"

#include <algorithm>
#include <map>
#include <utility>

namespace weir::monitor {
namespace {

using Key = std::pair<int, uint64_t>;  // a pid or tid, and when it began: numbers are used again
template <typename Use>
Key KeyOf(const Use& use) {
  return {use.pid, use.start_ticks};
}
template <>
Key KeyOf(const ThreadUse& use) {
  return {use.tid, use.start_ticks};
}

template <typename Use>
std::map<Key, const Use*> Index(const std::vector<Use>& uses) {
  std::map<Key, const Use*> index;
  for (const Use& use : uses) index.emplace(KeyOf(use), &use);
  return index;
}

// How much a tree of processes used between two snapshots. `total` is one process's count, `inherited` the
// part of it in which the counts of ended children show up once their parent has waited for them. What an
// ended process had before is then taken off again: it was counted while it lived.
template <typename Total, typename Inherited>
int64_t TreeDelta(const std::vector<ProcessUse>& before, const std::vector<ProcessUse>& now, Total total,
                  Inherited inherited) {
  const auto earlier = Index(before), later = Index(now);
  std::map<int, int64_t> gained;  // by pid of a survivor: what may be its ended children's
  int64_t delta = 0;
  for (const ProcessUse& use : now) {
    const auto found = earlier.find(KeyOf(use));
    delta += total(use) - (found == earlier.end() ? 0 : total(*found->second));
    if (found != earlier.end()) gained[use.pid] = inherited(use) - inherited(*found->second);
  }
  std::map<int, int> parents;
  for (const ProcessUse& use : before) parents[use.pid] = use.parent;
  for (const ProcessUse& use : before) {
    if (later.contains(KeyOf(use))) continue;
    int heir = use.parent;  // the nearest ancestor that lives
    for (size_t step = 0; step < before.size() && !gained.contains(heir) && parents.contains(heir); ++step) {
      heir = parents[heir];
    }
    if (const auto found = gained.find(heir); found != gained.end()) {
      const int64_t counted_twice = std::clamp<int64_t>(total(use), 0, std::max<int64_t>(found->second, 0));
      delta -= counted_twice;
      found->second -= counted_twice;
    }
  }
  return std::max<int64_t>(delta, 0);
}

double Percent(Duration part, double seconds) { return seconds > 0 ? 100 * Seconds(part) / seconds : 0; }

}  // namespace

void Tally::Add(const Snapshot& now) {
  if (!first_) first_ = now;
  ++snapshots_;
  CountProcesses(now);
  CountEngineThreads(now);
  CountMachine(now);
  CountDevice(now);
  AddLevels(now);
  open_period_s_ += Seconds(now.at - previous_at_);
  // A remnant of a period says little (a tick of 10 ms would be a whole core): it joins the next one.
  if (open_period_s_ >= Seconds(options_.period) / 2) ClosePeriod(std::exchange(open_period_s_, 0));
  previous_at_ = now.at;
  previous_ = now;
}

void Tally::CountProcesses(const Snapshot& now) {
  if (!previous_ && options_.from == From::kStart) return;
  const std::vector<ProcessUse> none;
  const auto& before = previous_ ? previous_->processes : none;
  const auto cpu = [](const ProcessUse& use) { return (use.cpu + use.reaped).count(); };
  const auto reaped = [](const ProcessUse& use) { return use.reaped.count(); };
  const auto read = [](const ProcessUse& use) { return use.io ? use.io->read : 0; };
  const auto written = [](const ProcessUse& use) { return use.io ? use.io->written : 0; };
  const double seconds = Seconds(Duration(TreeDelta(before, now.processes, cpu, reaped)));
  tree_cpu_.Count(seconds);
  app_cpu_.Count(seconds);
  if (previous_) app_cpu_.Count(-Seconds(now.observer - previous_->observer));
  has_io_ =
      has_io_ || std::ranges::any_of(now.processes, [](const ProcessUse& use) { return use.io.has_value(); });
  read_bytes_ += TreeDelta(before, now.processes, read, read);
  written_bytes_ += TreeDelta(before, now.processes, written, written);
}

void Tally::CountEngineThreads(const Snapshot& now) {
  if (!previous_) return;
  const auto earlier = Index(previous_->engine_threads);
  double seconds = 0;
  for (const ThreadUse& use : now.engine_threads) {
    const auto found = earlier.find(KeyOf(use));
    const Duration before = found == earlier.end() ? Duration{} : found->second->cpu;
    seconds += Seconds(std::max(use.cpu - before, Duration{}));
  }
  engine_cpu_.Count(seconds);
  app_cpu_.Count(-seconds);
}

void Tally::CountMachine(const Snapshot& now) {
  if (!previous_ || !previous_->machine || !now.machine) return;
  machine_cpu_.Count(Seconds(std::max(now.machine->busy - previous_->machine->busy, Duration{})));
}

void Tally::CountDevice(const Snapshot& now) {
  if (!previous_ || !previous_->device_busy || !now.device_busy) return;
  device_.Count(Seconds(std::max(*now.device_busy - *previous_->device_busy, Duration{})));
}

void Tally::AddLevels(const Snapshot& now) {
  if (now.memory) {
    const int64_t own = options_.in_container ? now.cgroup.memory_bytes.value_or(0) : 0;
    const int64_t used = now.memory->total_bytes - now.memory->available_bytes - own;
    host_memory_.Add(static_cast<double>(std::max<int64_t>(used, 0)));
  }
  if (options_.in_container && now.cgroup.memory_bytes) {
    container_memory_.Add(static_cast<double>(*now.cgroup.memory_bytes));
  }
  int64_t resident = 0;
  int threads = 0;
  bool any = false;
  for (const ProcessUse& use : now.processes) {
    any = any || use.resident_bytes;
    resident += use.resident_bytes.value_or(0);
    threads += use.threads;
    if (use.peak_resident_bytes)
      largest_process_ = std::max(largest_process_.value_or(0), *use.peak_resident_bytes);
  }
  if (any) process_memory_.Add(static_cast<double>(resident));
  if (threads > 0) threads_.Add(threads);
}

void Tally::ClosePeriod(double seconds) {
  for (Rate* rate : {&tree_cpu_, &engine_cpu_, &app_cpu_, &machine_cpu_}) {
    const double cores = std::exchange(rate->pending, 0) / seconds;
    rate->extremes.Add(std::clamp(cores, 0.0, static_cast<double>(options_.cpus)));
  }
  device_.extremes.Add(std::clamp(std::exchange(device_.pending, 0) / seconds, 0.0, 1.0));
}

std::optional<Range> Tally::ToRange(const Rate& rate, double seconds) const {
  if (seconds <= 0) return std::nullopt;
  return Around(std::max(rate.total / seconds, 0.0), rate.extremes);
}

void Tally::SumCpu(double wall, Resources& sum) const {
  const Snapshot &first = *first_, &last = *previous_;
  if (options_.watch == Watch::kThisProcess) {
    sum.recogniser_cpu = ToRange(engine_cpu_, wall);
    sum.app_cpu = ToRange(app_cpu_, wall);
  } else {
    sum.app_cpu = ToRange(tree_cpu_, wall);
  }
  if (!first.machine || !last.machine) return;
  sum.server_cpu = sum.client_cpu = ToRange(machine_cpu_, wall);
  const Duration steal = last.machine->steal - first.machine->steal;
  const Duration all =
      steal + last.machine->busy - first.machine->busy + last.machine->idle - first.machine->idle;
  if (all > Duration{}) sum.steal_percent = std::max(Percent(steal, Seconds(all)), 0.0);
  const auto before = first.machine->context_switches, after = last.machine->context_switches;
  const double seconds = Seconds(last.at - first.at);
  if (before && after && seconds > 0) {
    sum.context_switches_per_s = static_cast<double>(std::max<int64_t>(*after - *before, 0)) / seconds;
  }
}

void Tally::SumBytes(Resources& sum) const {
  const Snapshot &first = *first_, &last = *previous_;
  if (has_io_) {
    sum.read_bytes = read_bytes_;
    sum.written_bytes = written_bytes_;
  }
  if (first.disks && last.disks) {
    sum.disk_read_bytes = last.disks->read - first.disks->read;
    sum.disk_written_bytes = last.disks->written - first.disks->written;
  }
  if (first.network && last.network) {
    sum.received_bytes = last.network->received - first.network->received;
    sum.sent_bytes = last.network->sent - first.network->sent;
  }
}

void Tally::SumWaiting(double wall, Resources& sum) const {
  const Snapshot &first = *first_, &last = *previous_;
  const auto share = [&](std::optional<Duration> before,
                         std::optional<Duration> after) -> std::optional<double> {
    if (!before || !after || wall <= 0) return std::nullopt;
    return std::clamp(Percent(*after - *before, wall), 0.0, 100.0);
  };
  sum.cpu_pressure_percent = share(first.cpu_pressure, last.cpu_pressure);
  sum.memory_pressure_percent = share(first.memory_pressure, last.memory_pressure);
  sum.io_pressure_percent = share(first.io_pressure, last.io_pressure);
  if (first.cgroup.throttled && last.cgroup.throttled) {
    sum.throttled_s = Seconds(*last.cgroup.throttled - *first.cgroup.throttled);
  }
}

Resources Tally::Sum() const {
  Resources sum;
  if (!previous_) return sum;
  const Snapshot &first = *first_, &last = *previous_;
  const double wall = Seconds(last.at - begin_);
  sum.wall_s = wall;
  sum.period_ms = Milliseconds(options_.period);
  sum.samples = std::max(app_cpu_.extremes.count, 1);
  SumCpu(wall, sum);
  if (last.device_busy) {
    if (const auto busy = ToRange(device_, wall)) {
      // A count that runs ahead of the wall time by a moment is no more than all of it.
      const auto percent = [](double share) { return 100 * std::min(share, 1.0); };
      sum.gpu_percent = Range{percent(busy->mean), percent(busy->max), percent(busy->min)};
    }
  }
  sum.host_memory_bytes = host_memory_.ToRange();
  sum.container_memory_bytes = container_memory_.ToRange();
  sum.process_memory_bytes = process_memory_.ToRange();
  sum.largest_process_bytes = largest_process_;
  sum.threads = threads_.ToRange();
  SumBytes(sum);
  SumWaiting(wall, sum);
  const Duration observer = last.observer - first.observer;
  if (wall > 0) sum.observer_cpu = Seconds(observer) / wall;
  if (snapshots_ > 1) sum.observer_us_per_sample = Microseconds(observer) / (snapshots_ - 1);
  sum.observer_first_us = Microseconds(first.observer);
  return sum;
}

}  // namespace weir::monitor
