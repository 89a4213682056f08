// A program that was started somewhere, and that never outlives its holder.
#pragma once

#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace weir::launch {

// How a program ended.
struct Ending {
  int exit_status = 0;  // as a shell tells it: 128 + the signal's number where a signal ended it
  int signal = 0;       // that ended it; 0: none

  std::string ToString() const;  // "exit status 3", "signal 9 (Killed)"
  bool operator==(const Ending&) const = default;
};

// Why a program was not started, or is not ready.
struct LaunchError : Error {
  LaunchError(Error error) : Error(std::move(error)) {}  // NOLINT: every error of a launch is one

  std::optional<Ending> ending;  // where it ended before it was ready
};
template <typename T>
using LaunchResult = std::expected<T, LaunchError>;

// One thread at a time. The destructor stops what still runs, at once.
class Launched {
 public:
  virtual ~Launched() = default;

  virtual const std::string& name()
      const = 0;                // for messages: "build/release/weir", "container localhost/weir"
  virtual int pid() const = 0;  // the root of the processes to watch
  virtual const std::string& address() const = 0;  // the host at which its ports are reached from here

  // Waits until it has ended, or until `until`; then nothing. A moment that has passed only asks.
  virtual std::optional<Ending> WaitForEnd(Instant until) = 0;
  // The last of what it wrote to standard output and standard error, at most 8 KiB.
  virtual std::string LastWords() const = 0;
  // SIGTERM, or the signal that it was started to be stopped with; what is not gone after `patience` is
  // killed, and so is all that it left in its process group. Again: the same ending.
  virtual Ending Stop(Duration patience) = 0;
};

// Asks `ready` every 5 ms until it says yes. kIo as soon as the program has ended, with its last words and
// its ending; kDeadline with the words when `deadline` came first. `ready` blocks for a fraction of a second
// at most.
LaunchResult<void> WaitUntilReady(Launched& launched, const std::function<bool()>& ready, Instant deadline,
                                  const Clock& clock);
// The same, where `ready` says what is missing; the last that it said is in the error.
LaunchResult<void> WaitUntilReady(Launched& launched, const std::function<Status()>& ready, Instant deadline,
                                  const Clock& clock);

}  // namespace weir::launch
