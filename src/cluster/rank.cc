#include "cluster/rank.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "base/text.h"
#include "cluster/protocol.h"

namespace weir::cluster {
namespace {

struct Launcher {
  const char *rank, *world, *name;
  bool tells_world;  // always
};
// An mpirun within a Slurm job sets both; its own ranks are those of the processes that it started.
constexpr Launcher kLaunchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "mpirun", true},
    {"SLURM_PROCID", "SLURM_NTASKS", "srun", true},
    {"JOB_COMPLETION_INDEX", "WORLD_SIZE", "an Indexed Job", false},
    {"RANK", "WORLD_SIZE", "RANK and WORLD_SIZE", true},
};

Result<int> ReadNumber(const char* name, std::string_view text) {
  int value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || value < 0 || value > kMostHosts)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}={}: it is a whole number up to {}", name, Quoted(text), kMostHosts));
  return value;
}

}  // namespace

Result<std::optional<Rank>> FindRank(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    const char* const rank = environment(launcher.rank);
    const char* const world = environment(launcher.world);
    if (rank == nullptr || (launcher.tells_world && world == nullptr)) continue;
    Rank found{.rank = TRY(ReadNumber(launcher.rank, rank)), .world = 0, .launcher = launcher.name};
    if (world != nullptr) {
      found.world = TRY(ReadNumber(launcher.world, world));
      if (found.rank >= found.world)
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("{}={} is not below {}={}: ranks begin at 0", launcher.rank, found.rank,
                                launcher.world, found.world));
    }
    return found;
  }
  return std::nullopt;
}

}  // namespace weir::cluster
