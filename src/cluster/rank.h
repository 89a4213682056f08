// This process's place among those that a launcher started, by the launcher's environment. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/error.h"

namespace weir::cluster {

struct Rank {
  int rank = 0;
  int world = 0;         // 0: the launcher does not tell
  std::string launcher;  // "srun", "mpirun", "an Indexed Job", "RANK and WORLD_SIZE"
  bool operator==(const Rank&) const = default;
};

// Gives the value of an environment variable, or null.
using Environment = std::function<const char*(const char* name)>;

// Looks for SLURM_PROCID and SLURM_NTASKS, OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE,
// JOB_COMPLETION_INDEX with WORLD_SIZE where it is set, then RANK and WORLD_SIZE. Nullopt without any.
// kInvalidArgument names a variable that is no number, or a rank that is not below the size.
Result<std::optional<Rank>> FindRank(const Environment& environment);

}  // namespace weir::cluster
