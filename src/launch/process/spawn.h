// Starts one program: the single place of this module that forks.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "launch/process/launched.h"

namespace weir::launch {

struct SpawnOptions {
  std::vector<std::string> arguments;    // the first is the program, looked for in PATH
  std::vector<std::string> environment;  // "NAME=value", put over this process's own
  std::string working_folder;            // empty: this process's
  std::vector<int> cpus;         // it and its children run on these only; empty: where this process may
  int network_namespace = -1;    // a descriptor of the namespace to run in; -1: this process's
  int input = -1;                // a descriptor that becomes its standard input; -1: empty
  int output = -1, errors = -1;  // descriptors that become its standard output and error; -1: /dev/null
  int parent_death_signal = 0;   // sent to it when the thread that spawned it ends; 0: none
};

// A program in a process group of its own, with no signal blocked or ignored and nothing of this process open
// but what it was given. Owns the process until it is reaped; one thread at a time.
class Child {
 public:
  // kNotFound and kIo name the program and the step that failed.
  static Result<Child> Spawn(const SpawnOptions& options);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();  // kills its process group and reaps it

  int pid() const { return pid_; }
  // Readable once it has ended.
  int end_descriptor() const { return pidfd_.get(); }

  // Waits until it has ended, or until `until`. Once it has, all that is left in its group is killed.
  std::optional<Ending> WaitForEnd(Instant until, const Clock& clock);
  void Signal(int signal);  // to its group
  Ending Kill();            // its group; waits for the end

 private:
  Child(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  Ending Reap();

  pid_t pid_ = 0;
  UniqueFd pidfd_;
  std::optional<Ending> ending_;
};

// Until `until`, for poll(2): milliseconds rounded up, 0 once it has passed, at most an hour.
int PollTimeout(Instant until, const Clock& clock);

}  // namespace weir::launch
