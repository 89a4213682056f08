// The account of one run: which phase it is in, what is in flight, and what its requests came to. Pure: the
// caller passes the moments. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "load/generator/sample.h"
#include "load/generator/tally.h"
#include "load/verdict/server_share.h"

namespace weir::load {

class Ledger {
 public:
  enum class Phase { kWarmUp, kMeasuring, kOver };
  struct Options {
    // Not measured: until both have passed.
    Duration warm_up{};
    int64_t warm_up_requests = 0;
    // Measured: what is planned within this time, or, above 0, so many requests. By count the measured time
    // ends when the last of them is planned: until then each answer frees a slot for the next request, and
    // after it the system runs empty, which is not its throughput. Where more requests are in flight then
    // than were answered before, it ends with the last answer instead: else it would hold too few.
    Duration length{};
    int64_t requests = 0;
    bool windows = false;  // Tally::windows are counted
  };
  Ledger(const Options& options, Instant begin);

  struct Ticket {
    int64_t number = 0;  // of all requests, from 0
    Instant taken;
    bool measured = false;
  };
  // A request planned for `planned` may leave now; the plans move the run from phase to phase. Nothing: the
  // run is over. `empty`: in a closed loop, since its place's last answer came.
  std::optional<Ticket> Plan(Instant planned, Instant now, Duration empty = {});
  // Its answer, or what stands for one, and what the server told of it. Every ticket comes back once.
  void Ended(const Ticket& ticket, const Sample& sample,
             const std::optional<infer::ServerDurations>& server = std::nullopt);
  // Due within the measured time, and never planned; false where it is not: nothing is, where requests are
  // counted. REQUIRES: over.
  bool Unsent(Instant planned);
  // Nothing is planned from now on, and the measured time ends.
  void End(Instant now);
  // All that belongs to the measured time is known: by count once the last request has been answered.
  bool finished() const { return phase_ == Phase::kOver && (!by_count() || out_ == 0); }

  Phase phase() const { return phase_; }
  // The measured time. By count its end may be known only when it is finished.
  Instant from() const { return from_; }
  Instant to() const { return to_; }
  int in_flight() const { return in_flight_; }
  Instant last_change() const { return last_change_; }  // of the number in flight
  // Counts all requests, those of the warm-up included.
  RequestsSoFar so_far() const { return {.begun = planned_, .answered = answered_}; }
  int64_t warm_up_requests() const { return warm_up_requests_; }
  const Tally& tally() const { return tally_; }

 private:
  bool by_count() const { return options_.requests > 0; }
  bool IsDue(Instant planned, Instant now) const;
  void EndByCount(Instant now);
  void EndWithLastAnswer();
  void CountInFlight(int change, Instant now);

  const Options options_;
  const Instant begin_;
  Phase phase_ = Phase::kWarmUp;
  Instant from_, to_;
  Instant last_change_;
  Instant last_done_;  // of a measured request
  int in_flight_ = 0;
  int64_t planned_ = 0;   // all there were
  int64_t answered_ = 0;  // of these, by the server, well or not
  int64_t measured_ = 0;  // of all
  int64_t out_ = 0;       // of these, not yet ended
  int64_t warm_up_requests_ = 0;
  Tally tally_;
};

}  // namespace weir::load
