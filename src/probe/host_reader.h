// The reading of facts. What cannot be read is left at its default, or absent.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "monitor/resources.h"
#include "probe/host_facts.h"

namespace weir::probe {

// Where the kernel's trees are; tests give others.
struct HostRoots {
  std::string proc = "/proc";
  std::string sys = "/sys";
};

CpuFacts ReadCpu(const HostRoots& roots);
MemoryFacts ReadMemory(const HostRoots& roots);
CgroupFacts ReadCgroup(const HostRoots& roots);
LimitFacts ReadLimits();
std::vector<NetworkFacts> ReadNetworks(
    const HostRoots& roots);  // loopback, and what is down and virtual, left out
DiskFacts ReadDisk(const HostRoots& roots, const std::string& folder);
// `path`: as the environment's PATH.
ToolFacts ReadTools(const HostRoots& roots, std::string_view path);
std::vector<EngineFacts> ReadEngines(const Clock& clock);
GpusFacts ReadGpus();

// Reads the clock for some microseconds, then sleeps for `budget` in all, 500 us at a time.
TimerFacts MeasureTimer(const HostRoots& roots, const Clock& clock, Duration budget);

// `used`: of this process and the machine, over a time in which this process did next to nothing.
LoadFacts ReadLoad(const HostRoots& roots, const monitor::Resources& used);

// The instruction sets of /proc/cpuinfo that inference libraries choose their code by, under their usual
// names.
std::vector<std::string> ParseInstructionSets(std::string_view cpuinfo);

// The filesystem mounted at the device "MAJOR:MINOR", by mountinfo; empty when it is not there.
std::string FindFilesystem(std::string_view mountinfo, std::string_view device);

// The word in brackets: "[none] mq-deadline" has "none" in force.
std::string ChosenOf(std::string_view text);

}  // namespace weir::probe
