// Runs a command to its end: ip, tc, podman, and the program itself.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "launch/process/launched.h"

namespace weir::launch {

struct Command {
  std::vector<std::string> arguments;    // the first is the program, looked for in PATH
  std::vector<std::string> environment;  // "NAME=value", put over this process's own
  std::vector<int> cpus;                 // empty: where this process may run
  int network_namespace = -1;            // a descriptor of it; -1: this process's
  int input = -1;                        // a descriptor that becomes its standard input; -1: empty
  Duration timeout = 30s;                // then it is killed
};

struct Output {
  Ending ending;
  std::string out, err;  // at most 16 MiB of each is kept
};

// The command's end, whatever it was. kNotFound and kIo where it cannot be started, kDeadline when it took
// longer than its timeout: it has been killed. No shell stands between.
Result<Output> RunCommand(const Command& command, const Clock& clock);

// Its standard output; an ending other than exit status 0 is kIo, with the command and its words.
Result<std::string> RunWell(const Command& command, const Clock& clock);

// As one would type it, for messages: words with other than plain characters in single quotes.
std::string ToShell(const std::vector<std::string>& arguments);

}  // namespace weir::launch
