// Where a result comes from: what has to be known to judge it, or to measure it again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/json.h"

namespace weir::results {

struct Provenance {
  std::string host;  // through EscapeBytes
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
  // kCorrupt names the key. Only host, build and command must be there.
  static Result<Provenance> FromJson(const Json& json);
  bool operator==(const Provenance&) const = default;
};

}  // namespace weir::results
