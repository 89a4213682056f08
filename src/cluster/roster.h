// Who takes part: which ranks have joined, who was heard last and when, who is lost; and the step barrier.
// Pure: the caller passes `now`. One thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace weir::cluster {

constexpr Duration kHeartbeat = 1s;
constexpr Duration kPatience = 4s;  // a host that is silent for longer is lost

class Roster {
 public:
  struct Host {
    std::string name;                 // empty: it has not joined
    std::optional<Instant> heard;     // last
    std::optional<std::string> lost;  // why
  };
  // REQUIRES: world >= 1.
  explicit Roster(int world, Duration patience = kPatience)
      : patience_(patience), hosts_(static_cast<size_t>(world)) {}

  // Gives a host its rank: the one it wants, else the lowest that is free. kInvalidArgument if that rank is
  // another's or not below the size, or if the host was started as one of another number.
  Result<int> Join(const std::string& name, std::optional<int> rank, int world, Instant now);
  bool complete() const { return Missing().empty(); }
  std::vector<int> Missing() const;  // ranks that have not joined, or are lost

  // A host that was lost has no rank any more: another may have it.
  void Free(int rank) { hosts_.at(static_cast<size_t>(rank)) = {}; }
  void Heard(int rank, Instant now);
  // The first cause stays.
  void Lose(int rank, const std::string& why);
  // Loses those that have been silent for too long, and returns their ranks.
  std::vector<int> LoseSilent(Instant now);

  int world() const { return static_cast<int>(hosts_.size()); }
  const std::vector<Host>& hosts() const { return hosts_; }
  bool any_lost() const;
  // "host b (rank 1): no sign for 4.0 s"; empty: none is lost.
  std::string LostText() const;

 private:
  const Duration patience_;
  std::vector<Host> hosts_;
};

// Releases a step when all have arrived at it. A rank may arrive at later steps meanwhile.
class StepBarrier {
 public:
  explicit StepBarrier(int world) : ranks_(static_cast<size_t>(world)) {}

  struct Release {
    int64_t step = 0;
    bool last = false;             // some rank wants no step after it
    std::vector<Duration> waited;  // by rank, for the last to arrive
  };
  // Returns the steps that are released by it. kInvalidArgument if it is not the rank's next step: each
  // begins at 0.
  Result<std::vector<Release>> Arrive(int rank, int64_t step, bool last, Instant now);
  void Restart();

 private:
  struct Arrival {
    Instant at;
    bool last = false;
  };
  struct Rank {
    std::deque<Arrival> waiting;  // for the steps from released_ on
  };
  std::vector<Rank> ranks_;
  int64_t released_ = 0;  // steps
};

}  // namespace weir::cluster
