// Runs a command and says what it used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "monitor/resources.h"

namespace weir::monitor {

struct CommandUsage {
  int exit_status = 0;  // as a shell tells it: 128 + the signal's number where a signal ended the command
  int signal = 0;       // that ended it; 0: none
  double wall_s = 0;
  double user_s = 0, system_s = 0;  // CPU time of the command and of what it waited for, exact
  // The peak memory of the largest of these processes. Exact where that is more than this program itself;
  // what is smaller the kernel does not tell apart from the program it was started from, so the samples tell:
  // the last part of a process that still grew at its end is missing. Absent where no sample saw it alive.
  std::optional<int64_t> max_resident_bytes;
  Resources resources;
};

// Starts `arguments` (the first is looked for in PATH) with this process's standard streams, watches its tree
// of processes and waits for its end. Meanwhile the calling thread, which should be the only one that takes
// signals, keeps SIGINT, SIGTERM, SIGHUP and SIGQUIT from this process: a terminal sends its own to the
// command itself, others are passed on. A process that left the tree before a sample saw it (a daemon) is not
// counted. kNotFound and kIo where the command cannot be started,
// kInvalidArgument where there is none.
Result<CommandUsage> RunAndMonitor(const std::vector<std::string>& arguments, const Clock& clock,
                                   ResourceMonitor::Options options = {});

}  // namespace weir::monitor
