// Plays one scenario against a Service and times every request.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/seed.h"
#include "infer/service.h"
#include "load/generator/sample.h"
#include "load/generator/schedule.h"
#include "load/generator/tally.h"
#include "load/inputs/answer_check.h"
#include "load/verdict/server_share.h"

namespace weir::load {

// Closed loop: so many requests in flight, each followed by the next at once.
struct Concurrency {
  enum class Wait {
    kAsync,  // whoever brings an answer sends the next request
    kSync,   // a thread for each place, which waits
  };
  int in_flight = 1;
  Wait wait = Wait::kAsync;
};

// Open loop: requests leave when the schedule wants them, whatever is still out.
struct Rate {
  double per_second = 1;  // a trace has its own
  RxTimestamps arrivals = ConstantArrivals{};
  int most_in_flight = 16384;  // beyond them a request waits here, and its slip tells
  // The share of a schedule that several hosts play; then `per_second` is the rate of this host.
  ScheduleShare share{};
};
using Scenario = std::variant<Concurrency, Rate>;
// Whether the rate changes while it is played.
inline bool HasProfile(const Scenario& scenario) {
  const auto* open = std::get_if<Rate>(&scenario);
  return open != nullptr && std::holds_alternative<ProfileArrivals>(open->arrivals);
}

// The requests to send, in turn and repeatedly.
struct Requests {
  std::vector<infer::Request> pool;
  AnswerCheck check;  // empty: any answer will do
};

struct PlayOptions {
  Scenario scenario;
  // Not measured: until both have passed. Those sent then are counted apart.
  Duration warm_up = 1s;
  int64_t warm_up_requests = 0;
  // Measured: what is planned within this time, fixed before the run; or, above 0, so many requests.
  Duration length = 10s;
  int64_t requests = 0;
  Duration timeout{};    // of a request from its leaving; 0: none but `drain`
  Duration drain = 30s;  // what is out so long after the end is given up; 5 s after `stop`
  Seed seed{1};          // of the schedule
  // The moment from which the run counts, just passed; nullopt: when Play is called. Hosts that play one
  // schedule begin it at one instant.
  std::optional<Instant> begin;
};

struct Progress {
  double elapsed_s = 0;              // of warm-up and measured time
  int64_t answered = 0, failed = 0;  // measured so far
  double rate = 0;                   // answers a second since the last one of these
  std::optional<Duration> p99;       // of response times so far
};

// The requests of a run so far, its warm-up's too. To be called by hooks alone.
using RequestCounter = std::function<RequestsSoFar()>;

// Calls on the way, all but `drive` from the thread that runs Play, none in the way of a request.
struct PlayHooks {
  // Where the service has no threads (infer::Endpoint::Drive): called by the thread "load-0" alone, which
  // submits too. Empty: it has.
  std::function<Duration(Instant until, Duration awake)> drive;
  std::function<void(const RequestCounter&)> measuring;  // the measured time has begun
  std::function<void(const RequestCounter&)> measured;   // and ended; answers may still be awaited
  std::function<void(const Progress&)> progress;         // some times a second
  std::function<void(std::span<const Sample>)>
      samples;  // of measured requests, in the order in which they ended
  // Called when the requests in flight are overdue: their owner must complete them now. Nothing is submitted
  // or driven any more. Empty: Play waits on.
  std::function<void()> give_up;
};

// The outcome of a run.
struct RunOutcome {
  Tally tally;
  RequestsSoFar requests;        // of warm-up and measured time
  int64_t warm_up_requests = 0;  // sent before the measured time
  double warm_up_s = 0;
  // The measured time; by count, until the last request was planned (Ledger). 0: the run ended in its
  // warm-up.
  double measured_s = 0;
  double cpu_s = 0;           // of this process within it, without `spin_s`
  double spin_s = 0;          // CPU time of waiting on the spot, for the schedule's moments or for answers
  double busiest_thread = 0;  // share of the time in which the busiest of the generator's threads had a CPU
  std::string busiest_thread_name;  // empty: none was seen
  // Closed loop: of the time of its places, for how much they stood empty, the last answer there, for over
  // 1 ms at a time.
  double empty_share = 0;
  int64_t samples_lost = 0;  // that hooks.samples was too slow for
  bool interrupted = false;
  bool by_count = false;            // the measured time is that of a number of requests
  std::vector<std::string> errors;  // the first words of each kind of failure

  // Answers a second: those that came within the measured time, over it.
  double throughput() const {
    return measured_s > 0 ? static_cast<double>(tally.answered_within) / measured_s : 0;
  }
  // Requests a second that went out. By count some leave when the measured time has ended.
  double sent_per_s() const {
    const int64_t count = by_count ? tally.left : tally.slip.count();
    return measured_s > 0 ? static_cast<double>(count) / measured_s : 0;
  }
};

// `clock` is the steady one; it, the service and the requests must outlive the call. Blocks until every
// request is accounted for: planned = answered + failed + unsent, exactly. When `stop` asks, the run ends
// there. Threads: "load-0" begins, keeps the schedule and drives; in sync mode "load-N" for each place, with
// a service that has threads of its own. kInvalidArgument names a setting that makes no run.
Result<RunOutcome> Play(infer::Service& service, const Requests& requests, const Clock& clock,
                        const PlayOptions& options, const PlayHooks& hooks, const std::stop_token& stop);

}  // namespace weir::load
