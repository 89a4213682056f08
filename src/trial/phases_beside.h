// Other phases of the same data that run while a trial's client does: weir feed and weir prepare.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "launch/process/program.h"
#include "results/trial_result.h"
#include "trial/cpu_limit.h"
#include "trial/setting.h"

namespace weir::trial {

// Its programs end with this object. One thread at a time; `clock` must outlive it.
class PhasesBeside {
 public:
  struct Options {
    std::string program;      // this program
    std::string set, source;  // that feed reads; that prepare reads
    std::string folder;       // for what they write; emptied at the start and at the end
    bool feed = false, prepare = false;
    Limits limits;
    uint64_t seed = 1;
  };
  // kUnsupported as CpuLimit::Make.
  static Result<std::unique_ptr<PhasesBeside>> Start(Options options, const Clock& clock);
  ~PhasesBeside();

  // Ends the phases and returns what each did. kIo names the phase that had ended by itself, with its words.
  Result<results::TrialMetrics::Beside> Stop();

 private:
  struct Phase {
    std::string name;
    std::unique_ptr<CpuLimit> limit;  // outlives the program
    std::unique_ptr<launch::Program> program;
    Instant begin;
    std::optional<double> cores;
  };
  PhasesBeside(Options options, const Clock& clock) : options_(std::move(options)), clock_(clock) {}
  Status StartOne(const std::string& name, std::vector<std::string> arguments, std::optional<double> cores);
  std::string FeedResultFile() const { return options_.folder + "/feed.json"; }
  std::string PrepareFolder() const { return options_.folder + "/prepare"; }
  Result<results::TrialMetrics::Phase> Did(const Phase& phase, Instant end) const;

  const Options options_;
  const Clock& clock_;
  std::vector<Phase> phases_;
};

}  // namespace weir::trial
