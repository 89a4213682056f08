#include "infer/batcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace weir::infer {
namespace {

constexpr Duration kSweepEvery = 10ms;  // keeps the sweep of 10,000 calls at about 1 % of a core
constexpr Duration kLongest = 24h;      // of times that are given: no sum of them overflows

bool IsTime(Duration given) { return given >= Duration::zero() && given <= kLongest; }

std::unexpected<Error> BadOption(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, "batching: " + std::move(message));
}

Status CheckPolicy(const QueuePolicy& policy) {
  if (policy.max_queue < 0) {
    return BadOption(fmt::format(
        "the max_queue of a priority is {}: give 1 or more, or 0 for the whole queue", policy.max_queue));
  }
  if (!IsTime(policy.default_timeout)) {
    return BadOption(fmt::format("default_timeout is {:.3f} s: give 0, or a time of at most a day",
                                 Seconds(policy.default_timeout)));
  }
  return {};
}

Status CheckPriorities(const Batching& batching) {
  const int levels = batching.priority_levels;
  if (levels < 1) return BadOption(fmt::format("priority_levels is {}: give 1 or more", levels));
  const auto is_level = [&](int priority) { return priority >= 1 && priority <= levels; };
  if (!is_level(batching.default_priority)) {
    return BadOption(
        fmt::format("default_priority is {}: give one from 1 to {}", batching.default_priority, levels));
  }
  TRY_STATUS(CheckPolicy(batching.default_policy));
  for (const auto& [priority, policy] : batching.policies) {
    if (!is_level(priority)) {
      return BadOption(
          fmt::format("there is a policy for priority {}: priorities are from 1 to {}", priority, levels));
    }
    TRY_STATUS(CheckPolicy(policy));
  }
  return {};
}

Status CheckSizes(const Batching& batching) {
  if (batching.max_batch < 0) {
    return BadOption(fmt::format("max_batch is {}: give 0 or more", batching.max_batch));
  }
  if (!IsTime(batching.max_wait)) {
    return BadOption(
        fmt::format("max_wait is {:.3f} s: give 0, or a time of at most a day", Seconds(batching.max_wait)));
  }
  for (const int size : batching.preferred) {
    if (size < 1 || size > batching.max_batch) {
      return BadOption(fmt::format("a preferred batch of {}: give sizes from 1 to max_batch, {}", size,
                                   batching.max_batch));
    }
  }
  const bool combines = batching.combine && batching.max_batch > 0;
  if (!combines && (batching.max_wait > Duration::zero() || !batching.preferred.empty())) {
    return BadOption(
        "max_wait and preferred sizes are for calls that are put together: leave them out, or set combine "
        "and "
        "max_batch");
  }
  return {};
}

// Whether two inputs are of one kind: equal in all but data and first dimension.
bool SameKind(const Tensor& a, const Tensor& b) {
  return a.name == b.name && a.dtype == b.dtype && a.shape.size() == b.shape.size() &&
         std::equal(a.shape.begin() + 1, a.shape.end(), b.shape.begin() + 1);
}

bool FitTogether(const Request& a, const Request& b) {
  return a.outputs == b.outputs && std::ranges::equal(a.inputs, b.inputs, SameKind);
}

std::optional<Instant> Expiry(const QueuePolicy& policy, const Request& request, Instant now) {
  std::optional<Instant> expires;
  if (policy.default_timeout > Duration::zero()) expires = now + policy.default_timeout;
  if (policy.allow_override && request.deadline && (!expires || *request.deadline < *expires)) {
    expires = request.deadline;
  }
  return expires;
}

std::optional<Error> WhyNotComputed(const Request& request, std::optional<Instant> expires,
                                    const EngineLoad& load, Instant now) {
  if (request.cancelled.stop_requested()) return Error{ErrorCode::kCancelled, "cancelled while it waited"};
  if (!expires) return std::nullopt;
  if (*expires < now) {
    return Error{ErrorCode::kDeadline,
                 fmt::format("the deadline passed {:.3f} ms ago while the call waited for the engine",
                             Milliseconds(now - *expires))};
  }
  if (load.batch_time && now + *load.batch_time > *expires) {
    return Error{ErrorCode::kDeadline,
                 fmt::format("the deadline comes in {:.3f} ms, and no batch takes less than {:.3f} ms",
                             Milliseconds(*expires - now), Milliseconds(*load.batch_time))};
  }
  return std::nullopt;
}

}  // namespace

Result<Batcher> Batcher::Create(Options options) {
  if (options.max_queue < 0) {
    return BadOption(fmt::format("max_queue is {}: give 0 or more", options.max_queue));
  }
  TRY_STATUS(CheckSizes(options.batching));
  TRY_STATUS(CheckPriorities(options.batching));
  std::ranges::sort(options.batching.preferred);
  return Batcher(std::move(options));
}

Batcher::Batcher(Options options)
    : options_(std::move(options)), levels_(static_cast<size_t>(options_.batching.priority_levels)) {
  for (Level& level : levels_) level.policy = options_.batching.default_policy;
  for (const auto& [priority, policy] : options_.batching.policies) LevelOf(priority).policy = policy;
}

Batcher::Level& Batcher::LevelOf(int priority) {
  const bool given = priority >= 1 && priority <= std::ssize(levels_);
  return levels_[static_cast<size_t>((given ? priority : options_.batching.default_priority) - 1)];
}

Status Batcher::Offer(Call& call, const EngineLoad& load, Instant now) {
  call.times.queued = now;
  Level& level = LevelOf(call.request.priority);
  const int64_t rows = TRY(RowsOf(call.request));
  if (call.request.cancelled.stop_requested()) return Fail(ErrorCode::kCancelled, "cancelled before it came");
  TRY_STATUS(CheckRoom(level, load));
  const auto expires = Expiry(level.policy, call.request, now);
  if (expires) TRY_STATUS(CheckDeadline(level, *expires, load, now));
  if (expires && level.policy.on_timeout == QueuePolicy::OnTimeout::kReject)
    next_expiry_ = std::min(*expires, next_expiry_.value_or(*expires));
  level.in_time.push_back({.call = std::move(call), .rows = rows, .expires = expires});
  ++level.calls;
  level.rows += rows;
  ++calls_;
  rows_ += rows;
  return {};
}

Result<int64_t> Batcher::RowsOf(const Request& request) const {
  const int max_batch = options_.batching.max_batch;
  if (max_batch == 0) return 1;
  std::optional<int64_t> rows;
  for (const Tensor& input : request.inputs) {
    if (input.shape.empty() || input.shape[0] < 0) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("input '{}' has the shape {}: its first dimension has to be its rows",
                              input.name, ToString(input.shape)));
    }
    if (rows && *rows != input.shape[0]) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("input '{}' has {} rows, but input '{}' has {}", input.name, input.shape[0],
                              request.inputs[0].name, *rows));
    }
    rows = input.shape[0];
  }
  if (rows.value_or(0) > max_batch) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("a batch of {} rows is larger than the model's largest, {}", *rows, max_batch));
  }
  return rows.value_or(0);
}

Status Batcher::CheckRoom(const Level& level, const EngineLoad& load) const {
  const int level_limit = level.policy.max_queue > 0 ? level.policy.max_queue : options_.max_queue;
  if (calls_ < options_.max_queue + load.idle && level.calls < level_limit + load.idle) return {};
  return Fail(ErrorCode::kOverloaded,
              fmt::format("{} calls are waiting and the queue takes no more: send slower, or try later",
                          std::min(level_limit, options_.max_queue)));
}

// The answer cannot come before as many rounds of batches as wait before the call, and its own.
Status Batcher::CheckDeadline(const Level& level, Instant expires, const EngineLoad& load,
                              Instant now) const {
  if (level.policy.on_timeout == QueuePolicy::OnTimeout::kDelay) return {};
  if (expires < now) {
    return Fail(ErrorCode::kDeadline, fmt::format("the deadline passed {:.3f} ms before the call came",
                                                  Milliseconds(now - expires)));
  }
  if (!load.batch_time) return {};
  int64_t calls = 0, rows = 0;
  for (const Level& before : levels_) {
    calls += before.calls;
    rows += before.rows;
    if (&before == &level) break;
  }
  const Batching& batching = options_.batching;
  const int64_t batches = batching.combine && batching.max_batch > 0 ? rows / batching.max_batch : calls;
  const Duration needed = (batches / load.places + 1) * *load.batch_time;
  if (now + needed <= expires) return {};
  return Fail(ErrorCode::kDeadline,
              fmt::format("the deadline comes in {:.3f} ms, but with {} calls waiting before it the answer "
                          "takes {:.3f} ms at least",
                          Milliseconds(expires - now), calls, Milliseconds(needed)));
}

std::variant<Batch, Batcher::Wait> Batcher::Poll(const EngineLoad& load, Instant now,
                                                 std::vector<Refused>& refused) {
  if (now >= sweep_at_) {
    Sweep(load, now, refused);
    sweep_at_ = now + kSweepEvery;
  }
  const Prospect next = Look(load, now, refused);
  if (next.calls == 0) return Wait{};
  if (next.due > now) return Wait{next.due};
  return Take(next.calls, now);
}

void Batcher::Sweep(const EngineLoad& load, Instant now, std::vector<Refused>& refused) {
  for (Level& level : levels_) {
    for (Queue* queue : {&level.in_time, &level.delayed}) {
      auto at = Clear(level, *queue, queue->begin(), load, now, refused);
      while (at != queue->end()) at = Clear(level, *queue, std::next(at), load, now, refused);
    }
  }
}

void Batcher::Expire(Instant now, std::vector<Refused>& refused) {
  Sweep(EngineLoad{}, now, refused);
  next_expiry_.reset();
  for (const Level& level : levels_) {
    if (level.policy.on_timeout != QueuePolicy::OnTimeout::kReject) continue;
    for (const Entry& entry : level.in_time) {
      if (entry.expires) next_expiry_ = std::min(*entry.expires, next_expiry_.value_or(*entry.expires));
    }
  }
}

// Takes those calls out of `queue`, from `at` on, that are not to be computed, or not in their turn; returns
// the first that is.
Batcher::Queue::iterator Batcher::Clear(Level& level, Queue& queue, Queue::iterator at,
                                        const EngineLoad& load, Instant now, std::vector<Refused>& refused) {
  const bool delays = level.policy.on_timeout == QueuePolicy::OnTimeout::kDelay;
  while (at != queue.end()) {
    const auto entry = at;
    auto error = WhyNotComputed(entry->call.request, delays ? std::nullopt : entry->expires, load, now);
    if (error) {
      ++at;
      Forget(level, *entry);
      refused.push_back({std::move(entry->call), *std::move(error)});
      queue.erase(entry);
    } else if (delays && entry->expires && *entry->expires < now) {
      ++at;
      entry->expires.reset();
      level.delayed.splice(level.delayed.end(), queue, entry);
    } else {
      break;
    }
  }
  return at;
}

// The batch that is to go next: as large as the calls at the front make it, or the largest preferred one.
Batcher::Prospect Batcher::Look(const EngineLoad& load, Instant now, std::vector<Refused>& refused) {
  const Batching& batching = options_.batching;
  Prospect all, preferred;
  const Entry* first = nullptr;
  bool full = false;  // no call that comes can join
  for (Level& level : levels_) {
    for (Queue* queue : {&level.in_time, &level.delayed}) {
      auto at = queue->begin();
      while (!full && (at = Clear(level, *queue, at, load, now, refused)) != queue->end()) {
        if (first == nullptr) first = &*at;
        const bool joins = first == &*at || (all.rows + at->rows <= batching.max_batch && at->rows > 0 &&
                                             FitTogether(first->call.request, at->call.request));
        if (joins) {
          ++all.calls;
          all.rows += at->rows;
          all.due = std::min(all.due, DueOf(*at, load));
          if (std::ranges::binary_search(batching.preferred, all.rows)) preferred = all;
        }
        full = !joins || !batching.combine || all.rows == 0 || all.rows >= batching.max_batch;
        ++at;
      }
    }
  }
  const bool waits = batching.max_wait > Duration::zero();
  const bool overdue = waits && all.due <= now;
  if (preferred.calls > 0 && !overdue) {
    preferred.due = now;
    return preferred;
  }
  const bool large = !batching.preferred.empty() && all.rows >= batching.preferred.back();
  const bool leaves = full || large || hurry_;
  if (leaves || !waits) all.due = std::min(all.due, now);
  if (!leaves && all.calls > 0 && load.busy_until) all.due = std::max(all.due, *load.busy_until);
  return all;
}

Instant Batcher::DueOf(const Entry& entry, const EngineLoad& load) const {
  const Instant queued = *entry.call.times.queued;
  Duration wait = options_.batching.max_wait;
  if (entry.expires) {
    wait = std::min(wait, (*entry.expires - queued - load.batch_time.value_or(Duration::zero())) / 2);
  }
  return queued + wait;
}

// The first `calls` calls. REQUIRES: Look has found that they fit together and are to be computed.
Batch Batcher::Take(int calls, Instant now) {
  Batch batch;
  batch.calls.reserve(static_cast<size_t>(calls));
  for (Level& level : levels_) {
    for (Queue* queue : {&level.in_time, &level.delayed}) {
      while (!queue->empty() && std::ssize(batch.calls) < calls) {
        Entry& entry = queue->front();
        Forget(level, entry);
        entry.call.times.taken = now;
        batch.rows.push_back(entry.rows);
        if (options_.batching.max_batch > 0) batch.total_rows += entry.rows;
        batch.calls.push_back(std::move(entry.call));
        queue->pop_front();
      }
    }
  }
  return batch;
}

void Batcher::Forget(Level& level, const Entry& entry) {
  --level.calls;
  level.rows -= entry.rows;
  --calls_;
  rows_ -= entry.rows;
}

}  // namespace weir::infer
