// Servers on another node, and what of ours runs there.
#pragma once

#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "launch/process/launched.h"
#include "launch/process/orphans.h"
#include "launch/process/supervisor.h"
#include "launch/ssh/ssh.h"

namespace weir::launch {

// Starts it in the foreground of an ssh session, under a supervisor (supervisor.h): when this process ends in
// whatever way, or the connection does, the supervisor ends the program and all that it started; where the
// node has bash, also when the connection falls silent for a minute. pid() is of the ssh program here;
// `kept.mark` finds the processes there. A connection that cannot be had shows as an early end with ssh's
// last words.
Result<std::unique_ptr<Launched>> StartOverSsh(const SshHost& host, Kept kept, int stop_signal,
                                               const Clock& clock);

// A process on that node that bears a mark of this machine (orphans.h). A value.
struct StartedThere {
  int pid = 0;
  std::string name, mark;
  Owner owner;  // a process here
};
Result<std::vector<StartedThere>> ListStartedOn(const SshHost& host, const Clock& clock);

// Kills those whose owner is dead, and says what was done, a line each.
Result<std::vector<std::string>> RemoveOrphansOn(const SshHost& host, const Clock& clock);

}  // namespace weir::launch
