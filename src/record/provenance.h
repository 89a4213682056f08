// Where a result comes from: what has to be known to judge it, or to measure it again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace weir::record {

struct Provenance {
  std::string host;
  std::string cpu_model;
  int logical_cpus = 0;
  int usable_cpus = 0;  // by the affinity mask and the control group's quota
  int64_t memory_bytes = 0;
  std::string kernel;
  std::optional<std::string> governor;  // of the first CPU; absent where the kernel does not tell
  std::string cgroup_version;           // "v1", "v2", "hybrid" or "none"
  std::optional<double> cgroup_cpus;
  std::optional<int64_t> cgroup_memory_bytes;
  std::string build_id;      // of the source the program was built from; "unknown" outside a repository
  bool build_dirty = false;  // with changes that were not committed
  std::string compiler;
  std::map<std::string, std::string> libraries;  // name to version
  uint64_t seed = 0;
  std::string command;
  std::string wall_time;  // UTC, a label

  Json ToJson() const;
};

struct ProvenanceInputs {
  std::vector<std::string> command;  // as the program was called
  uint64_t seed = 0;
  std::map<std::string, std::string> libraries;  // name to version, as the engines in use tell them
};

// Reads the host's facts now.
Provenance CollectProvenance(ProvenanceInputs inputs);

// The command as one line for a shell (bash where an argument is not UTF-8 or holds control characters:
// $'...'). UTF-8 always, so JSON can hold it.
std::string CommandLine(std::span<const std::string> arguments);

// "model name" of /proc/cpuinfo, where it has one.
std::optional<std::string> ParseCpuModel(std::string_view cpuinfo);

// Returns the output of `git describe --always --dirty` at build time, or "unknown".
std::string_view BuildDescription();

}  // namespace weir::record
