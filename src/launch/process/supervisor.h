// A program that ends when its holder does, with all that it has started: also after kill -9 of the holder,
// and also on another node, where no signal of this one's kernel reaches it.
#pragma once

#include <signal.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/mutex.h"
#include "launch/process/launched.h"
#include "launch/process/spawn.h"

namespace weir::launch {

class Program;

// The command under a supervisor: a shell script (sh, grep and env are all it needs) that reads its standard
// input. A line there is the name of a signal for the command ("TERM"); its end, or `silence` without a line
// where the shell can tell (bash, busybox; dash cannot), means that the holder is gone: then all is killed
// that has `mark` in its environment, and the supervisor's process group. What the command leaves behind when
// it ends by itself is killed as well. Nothing runs meanwhile but two shells that wait.
struct Kept {
  std::vector<std::string> command;      // the first is the program, looked for in PATH
  std::vector<std::string> environment;  // "NAME=value", put over the supervisor's own
  std::string working_folder;            // empty: the supervisor's
  std::string mark;                      // "NAME=value", of no other program; MakeMark of orphans.h
  Duration silence{};                    // whole seconds; 0: lines are not expected
};
std::vector<std::string> KeeperArguments(const Kept& kept, const std::string& shell = "sh");

// Starts what keeps a command, here or through a program that carries standard input there (ssh).
class KeptProgram final : public Launched {
 public:
  struct Options {
    std::string name, address;  // as Launched has them
    std::string mark;           // the command's, where it runs on this machine; else empty
    int stop_signal = SIGTERM;  // what Stop sends first
    Duration beat{};  // an empty line to the supervisor every so often, on a thread of its own; 0: none
  };
  // `spawn` but for its streams; `clock` must outlive this.
  static Result<std::unique_ptr<KeptProgram>> Start(Options options, SpawnOptions spawn, const Clock& clock);
  ~KeptProgram() override;

  const std::string& name() const override { return options_.name; }
  // The command's, once it has become it, so that the supervisor is not taken for a part of it; else of
  // `spawn`.
  int pid() const override;
  const std::string& address() const override { return options_.address; }
  std::optional<Ending> WaitForEnd(Instant until) override;
  std::string LastWords() const override;
  Ending Stop(Duration patience) override;

 private:
  KeptProgram(Options options, std::unique_ptr<Program> front, UniqueFd line, const Clock& clock);
  void Say(const std::string& word);
  void Beat();

  const Options options_;
  const Clock& clock_;
  const std::unique_ptr<Program> front_;

  Mutex mutex_;
  CondVar changed_;
  UniqueFd line_ GUARDED_BY(mutex_);  // to the supervisor; closed: it kills
  std::jthread beat_;
};

}  // namespace weir::launch
