// A finding on a machine, its meaning for a measurement, and the remedy.
#pragma once

#include <string>
#include <string_view>

namespace weir::probe {

// A closed list, so that programs can react to it.
enum class FindingKind {
  kEngine,
  kCpuModel,
  kInstructionSets,
  kCpuCount,
  kSmt,
  kGovernor,
  kTurbo,
  kCgroup,
  kNuma,
  kMemory,
  kSwap,
  kPageSize,
  kHugePages,
  kLimits,
  kClock,
  kTimer,
  kForeignCpu,
  kSteal,
  kPressure,
  kVirtualisation,
  kGpu,
  kNetwork,
  kDisk,
  kContainerTools,
  kPerfEvents,
};
std::string_view ToString(FindingKind kind);  // "engine", "cpu-model", ...

enum class Severity {
  kOk,
  kNote,     // to be known when reading a result
  kWarning,  // spoils a measurement
};
std::string_view ToString(Severity severity);  // "ok", "note", "warning"

struct Finding {
  FindingKind kind{};
  Severity severity = Severity::kOk;
  std::string what;     // what is here
  std::string meaning;  // what that means for a measurement
  std::string remedy;   // what to do; empty where there is nothing to do

  bool operator==(const Finding&) const = default;
};

}  // namespace weir::probe
