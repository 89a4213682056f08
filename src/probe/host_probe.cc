#include "probe/host_probe.h"

#include <algorithm>
#include <cstdlib>

#include "monitor/resources.h"
#include "probe/host_findings.h"
#include "probe/host_reader.h"

namespace weir::probe {
namespace {

constexpr Duration kTimerBudget = 50ms;

// Watches the machine while this thread sleeps, for the timer's sake at first.
void Watch(const HostRoots& roots, const Clock& clock, Duration watch, HostFacts& facts) {
  const Instant end = clock.Now() + watch;
  auto monitor = monitor::ResourceMonitor::Start(clock, {});
  facts.timer = MeasureTimer(roots, clock, std::min(kTimerBudget, watch));
  SleepUntil(end);
  if (monitor) facts.load = ReadLoad(roots, (*monitor)->Stop());
}

}  // namespace

std::vector<Finding> ProbeHost(const Clock& clock, const HostProbeOptions& options) {
  const HostRoots roots;
  const char* path = std::getenv("PATH");
  HostFacts facts;
  Watch(roots, clock, options.watch, facts);  // first: what follows is work
  facts.cpu = ReadCpu(roots);
  facts.memory = ReadMemory(roots);
  facts.cgroup = ReadCgroup(roots);
  facts.limits = ReadLimits();
  facts.gpus = ReadGpus();
  facts.networks = ReadNetworks(roots);
  facts.disk = ReadDisk(roots, options.folder);
  facts.tools = ReadTools(roots, path ? path : "");
  facts.engines = ReadEngines(clock);
  return JudgeHost(facts);
}

}  // namespace weir::probe
