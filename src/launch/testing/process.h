// A bare Program (program.h) for tests: no supervisor, no ports, no question whether it is ready.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "launch/process/launched.h"

namespace weir::launch {

class NetworkLink;

struct ProcessOptions {
  std::vector<std::string> command;      // the first is the program, looked for in PATH
  std::vector<std::string> environment;  // "NAME=value", put over this process's own
  std::string working_folder;            // empty: this process's
  std::vector<int> cpus;              // it and its children run on these only; empty: where this process may
  const NetworkLink* link = nullptr;  // run on its far side; must outlive the process. nullptr: here
};

// The program runs in a process group of its own, so that a terminal's Ctrl-C does not reach it. When the
// calling thread ends (however: kill -9 as well), the kernel kills it; what it started itself then is found
// by RemoveOrphans of orphans.h. `clock` must outlive the process. kNotFound and kIo where it cannot be
// started.
Result<std::unique_ptr<Launched>> StartProcess(const ProcessOptions& options, const Clock& clock);

}  // namespace weir::launch
