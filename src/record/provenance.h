// Collects the origin of a result: the host, the program, and its command.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results/provenance.h"

namespace weir::record {

using results::Provenance;

struct ProvenanceInputs {
  std::vector<std::string> command;  // as the program was called
  uint64_t seed = 0;
  std::map<std::string, std::string> libraries;  // name to version, as the engines in use tell them
};

// Reads the host's facts now.
Provenance CollectProvenance(ProvenanceInputs inputs);

// The command as one line for a shell (bash where an argument is not UTF-8 or holds control characters:
// $'...'). UTF-8 always, so JSON can hold it. Secrets are hidden: who repeats it puts them in again.
std::string CommandLine(std::span<const std::string> arguments);

// "model name" of /proc/cpuinfo, where it has one.
std::optional<std::string> ParseCpuModel(std::string_view cpuinfo);

// Returns the output of `git describe --always --dirty` at build time, or "unknown".
std::string_view BuildDescription();

}  // namespace weir::record
