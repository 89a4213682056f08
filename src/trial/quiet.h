// Waits for a machine on which nobody else works.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "monitor/proc.h"

namespace weir::trial {

// Reads the machine's CPU time so far; nullopt where the machine does not tell.
using ReadMachine = std::function<std::optional<monitor::MachineStat>()>;

// Reads /proc/stat.
std::optional<monitor::MachineStat> ReadMachineStat();

// Spends a budget of waiting, in all, before the trials of a study. One thread at a time. `clock` must
// outlive it.
class QuietWait {
 public:
  struct Options {
    Duration budget{};     // in all; 0: never waits
    Duration sample = 1s;  // the CPU is watched for so long; none of our programs may run meanwhile
    ReadMachine read = ReadMachineStat;
    std::function<void(Instant)> sleep_until = SleepUntil;
  };
  QuietWait(Options options, const Clock& clock);

  // Blocks until others use less than the share of the CPU that a trial tolerates (kForeignShareOfTrial,
  // kStealPercent), the budget is spent, or a stop is asked for. Returns whether the machine was quiet in the
  // end; a machine that does not tell counts as quiet.
  bool Wait(const std::stop_token& stop);

  Duration left() const { return left_; }
  // "others use 0.9 of 2 cores": what the last sample saw.
  const std::string& seen() const { return seen_; }

 private:
  bool SampleIsQuiet();

  const Options options_;
  const Clock& clock_;
  Duration left_;
  std::string seen_;
};

}  // namespace weir::trial
