// What runs that were killed have left behind, and how to know it by its mark.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace weir::launch {

// Who started something: a process by its number and, as numbers come again, the moment it began.
struct Owner {
  int pid = 0;
  uint64_t start_ticks = 0;  // after boot, field 22 of /proc/PID/stat
  bool operator==(const Owner&) const = default;

  bool Lives() const;
};
Owner ThisProcess();

// "weir-PID-TICKS-NOW": unique on this machine.
std::string MakeName(Instant now);
// The owner in such a name; nothing for other names.
std::optional<Owner> OwnerOfName(std::string_view name);

// What every program started here has in its environment: "WEIR_OWNER=PID-TICKS".
std::string OwnerVariable();

// Kills the processes whose mark names an owner that is dead, removes its containers (of podman and docker,
// where they are), and says what was done, a line each. Network links need none: the kernel lets them go
// with the process that held them.
std::vector<std::string> RemoveLeftovers(const Clock& clock);

}  // namespace weir::launch
