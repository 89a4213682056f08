// The bottleneck of a run, a trial or a preparation, from measured costs, and the gain of relieving it. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "results/bounds.h"

namespace weir::results {

// The limiting part.
struct Bottleneck {
  // In one process: "read", "decode", "infer", "in_flight", "print", "cpu". With a server also "server" (or
  // the way to it, where it tells no times), "network", "client" for the CPU time of sending, and "rate" for
  // that of an open loop. In a preparation: a stage's name.
  std::string stage;
  double share = 0;      // of `share_of`
  std::string share_of;  // "the CPU time", "the loaders' time", "the engine's time"...; empty: the time
  double gain = 0;       // twice the named resource would give at most so many times the rate; 0: not known
  // With the named part gone: the one that holds back next (without overlap the longest that is left), and
  // the rate that it allows, images/s. Absent where some part's own times are not known.
  std::string next;
  std::optional<double> next_images_per_s;
  std::string text;  // one sentence for people; empty where the figures allow none

  bool operator==(const Bottleneck&) const = default;
};

// Finds the bottleneck of a run from its costs. Returns nullopt if nothing was done.
std::optional<Bottleneck> FindBottleneck(const Costs& costs);

// Says which bounds contradict that `stage` limits a run at `images_per_s`: a part whose bound lies below
// that of the stage would have held back first. Empty: none does.
std::string Contradiction(const Bounds& bounds, const std::string& stage, double images_per_s);

// The time that a stage took, summed over its threads.
struct StageTime {
  std::string name;
  double seconds = 0;
  int threads = 1;
};
// Finds the stage whose threads were busy for the largest share of `wall_s` seconds. Returns nullopt if
// nothing was done.
std::optional<Bottleneck> FindBottleneck(std::span<const StageTime> stages, double wall_s);

}  // namespace weir::results
