// Finds processes and containers that this program started, by their owner tag, and those that killed runs
// have left behind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

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

// Returns the environment variable of every program started here: "WEIR_OWNER=PID-TICKS".
std::string OwnerVariable();
// Returns the label of every container started here: "weir.owner=PID-TICKS".
std::string OwnerLabel();

// Returns a second variable, of a supervised program (supervisor.h), here or on another node:
// "WEIR_KEPT=BOOT:weir-PID-TICKS-NOW". BOOT tells this machine, and its boot, from others.
std::string MakeMark(Instant now);
std::string MarkPrefix();  // "WEIR_KEPT=BOOT:": of all the marks made on this machine
// The owner in a mark of this machine; nothing for others.
std::optional<Owner> OwnerOfMark(std::string_view mark);

// The first child of process `parent` whose environment has this variable, "NAME=value".
std::optional<int> ChildWith(const std::string& variable, int parent);

// Something that was started and is still there. A value.
struct Started {
  enum class Kind { kProcess, kContainer, kLink };
  Kind kind = Kind::kProcess;
  Owner owner;
  std::string name;  // of the process's program, of the container, of the link's device
  int pid = 0;       // of a process, 0 for others
  std::string tool;  // of a container: podman or docker

  std::string ToString()
      const;  // "process 12 (tritonserver)", "container weir-1-2-3", "network link weir1.5"
};

// All that bears a mark on this machine, whoever started it, in the order of kinds: processes, containers of
// podman and docker where they are, links of this process's network namespace (a namespace behind a link goes
// with it). Some 0.1 s, most of it for podman.
std::vector<Started> ListStarted(const Clock& clock);

// Returns what `owner` has started and still runs at `until`, or an empty list as soon as nothing does: what
// was told to end may take a moment to go. A link is no trial's and is not counted.
std::vector<Started> StillRunning(const Owner& owner, Instant until, const Clock& clock);

// Kills the processes whose mark names an owner that is dead, removes its containers and its links, waits
// until they are gone (10 s at most), and says what was done, a line each. As a rule the kernel and the
// keepers have done it all when an owner died; this is for what got away: what
// a program without a supervisor had started itself, or a container whose supervisor was killed as well.
std::vector<std::string> RemoveOrphans(const Clock& clock);

}  // namespace weir::launch
