// Groups waiting calls into batches. Pure policy: no thread, no clock; the caller passes `now` and sleeps
// until the time that Poll names. Not thread-safe; Runner guards it.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "infer/call.h"

namespace weir::infer {

// The treatment of calls that wait at one priority.
struct QueuePolicy {
  enum class OnTimeout {
    kReject,  // answered kDeadline, not computed
    kDelay,   // computed when no call that is in time waits at its priority
  };
  int max_queue = 0;           // calls that wait at this priority; 0: as many as all priorities together
  Duration default_timeout{};  // from its arrival until a call expires; 0: it does not
  // Whether Request::deadline counts too; where both are there, the earlier of the two is in force.
  bool allow_override = true;
  OnTimeout on_timeout = OnTimeout::kReject;
};

// How calls are put together, and in which order they leave.
struct Batching {
  // Rows of a batch at most; the rows of a call are the first dimension of its inputs. 0: the first dimension
  // counts nothing, and every call is a batch of its own.
  int max_batch = 0;
  bool combine = true;  // false: calls of up to max_batch rows, each a batch of its own
  // A batch goes as soon as its rows are one of these; sorted or not.
  std::vector<int> preferred;
  // The oldest call of a batch waits no longer than this for company while the engine is free; 0: not at all.
  // A call that expires waits for at most half of the time it has.
  Duration max_wait{};
  int priority_levels = 1;   // priorities are 1, the highest, to this
  int default_priority = 1;  // of requests with priority 0, or one beyond the levels
  QueuePolicy default_policy;
  std::map<int, QueuePolicy> policies;  // of single priorities
};

// Calls that are computed together. At least one; all alike in all but their rows.
struct Batch {
  std::vector<Call> calls;    // times.queued and times.taken are set
  std::vector<int64_t> rows;  // of each call
  int64_t total_rows = 0;     // 0 where rows are not counted
};

// The state of the engine that takes a Batcher's batches.
struct EngineLoad {
  int places = 1;  // batches that it takes at a time
  int idle = 0;    // places with nothing in them
  // The least that a batch takes, from its leaving the queue to its answer. Nothing: not known, and then only
  // a deadline that has passed refuses a call.
  std::optional<Duration> batch_time;
  // Until then the engine computes other batches, so that a part batch loses nothing by waiting for company.
  std::optional<Instant> busy_until;
};

class Batcher {
 public:
  struct Options {
    int max_queue = 256;  // calls that wait, over all priorities, beside one for each idle place
    Batching batching;
  };
  // kInvalidArgument names the bad option.
  static Result<Batcher> Create(Options options);

  // Takes the call, or leaves it with the caller and says why: kInvalidArgument for more rows than max_batch,
  // or inputs that disagree about them; kOverloaded for a full queue; kDeadline when the deadline has passed
  // or, judged by `load`, cannot be met; kCancelled. Stamps times.queued either way.
  [[nodiscard]] Status Offer(Call& call, const EngineLoad& load, Instant now);

  struct Wait {
    std::optional<Instant> until;  // nothing: until the next Offer
  };
  // A call that left the queue without being computed, to be answered outside of the caller's lock.
  struct Refused {
    Call call;
    Error error;
  };
  // The next batch if one is due, otherwise the time to ask again. To be asked when a place is idle. Adds to
  // `refused` those calls that have expired or were cancelled: all those it passes on the way to a batch, and
  // every 10 ms all others.
  std::variant<Batch, Wait> Poll(const EngineLoad& load, Instant now, std::vector<Refused>& refused);

  // A moment before which no call that waits expires to be refused; nothing: none does. Cheap: where calls
  // have left since the last Expire, the next to expire may come later.
  std::optional<Instant> next_expiry() const { return next_expiry_; }
  // Adds to `refused` all calls that have expired or were cancelled. Not only for when a place is idle.
  void Expire(Instant now, std::vector<Refused>& refused);

  // From now on no batch waits for company.
  void Hurry() { hurry_ = true; }

  int calls() const { return calls_; }    // waiting
  int64_t rows() const { return rows_; }  // of those; each counts 1 where rows are not counted
  bool empty() const { return calls_ == 0; }

 private:
  struct Entry {
    Call call;
    int64_t rows = 1;
    std::optional<Instant> expires;
  };
  using Queue = std::list<Entry>;
  // One priority. Calls that expired and are to be computed all the same wait behind the others.
  struct Level {
    QueuePolicy policy;
    Queue in_time;
    Queue delayed;
    int calls = 0;
    int64_t rows = 0;
  };
  // Calls at the front that may become a batch.
  struct Prospect {
    int calls = 0;
    int64_t rows = 0;
    Instant due = Instant::max();  // when the first of them has waited long enough
  };

  explicit Batcher(Options options);
  Level& LevelOf(int priority);
  Result<int64_t> RowsOf(const Request& request) const;
  Status CheckRoom(const Level& level, const EngineLoad& load) const;
  Status CheckDeadline(const Level& level, Instant expires, const EngineLoad& load, Instant now) const;
  Queue::iterator Clear(Level& level, Queue& queue, Queue::iterator at, const EngineLoad& load, Instant now,
                        std::vector<Refused>& refused);
  void Sweep(const EngineLoad& load, Instant now, std::vector<Refused>& refused);
  Prospect Look(const EngineLoad& load, Instant now, std::vector<Refused>& refused);
  Instant DueOf(const Entry& entry, const EngineLoad& load) const;
  Batch Take(int calls, Instant now);
  void Forget(Level& level, const Entry& entry);

  const Options options_;
  std::vector<Level> levels_;  // the highest priority first
  int calls_ = 0;
  int64_t rows_ = 0;
  Instant sweep_at_{};
  std::optional<Instant> next_expiry_;
  bool hurry_ = false;
};

}  // namespace weir::infer
