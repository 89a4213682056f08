#include "probe/storage_train.h"

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>

#include "base/json.h"
#include "base/mutex.h"
#include "base/shuffle.h"
#include "base/thread.h"

namespace weir::probe {
namespace {

constexpr size_t kErrorsKept = 10;

struct StepState {
  int64_t left = 0;   // samples that are not there yet
  Instant claimed{};  // of the sample that came last
  ReadMoments last;
  uint64_t bytes = 0;
};

// State of the readers and of the thread that watches, kept by whichever of them lives longest.
struct Shared {
  Mutex mutex;
  CondVar wanted, ready;
  GlobalOrder order GUARDED_BY(mutex);
  std::vector<StepState> ring GUARDED_BY(mutex);
  int64_t next GUARDED_BY(mutex) = 0;      // position to be claimed
  int64_t released GUARDED_BY(mutex) = 0;  // steps that are over
  bool ended GUARDED_BY(mutex) = false;
  std::vector<int64_t> reading GUARDED_BY(mutex);  // by reader; -1: none
  TrainResult result GUARDED_BY(mutex);
  int running GUARDED_BY(mutex) = 0;

  const std::vector<StorageSample> samples;
  const int64_t of_a_step;
  const int64_t positions;  // in all

  Shared(std::vector<StorageSample> set, const TrainOptions& options, Seed seed)
      : order(static_cast<int64_t>(set.size()), seed),
        ring(static_cast<size_t>(options.depth) + 1),
        reading(static_cast<size_t>(options.threads), -1),
        samples(std::move(set)),
        of_a_step(int64_t{options.accelerators} * options.batch),
        positions(of_a_step * options.steps) {
    for (StepState& step : ring) step.left = of_a_step;
  }
};

void Note(TrainResult& result, const ReadMoments& moments) {
  result.open_ns.Add((moments.opened - moments.begin).count());
  result.read_ns.Add((moments.read - moments.began).count());
  result.close_ns.Add((moments.closed - moments.closing).count());
  if (moments.cached_bytes) {
    result.cached_bytes += std::min(*moments.cached_bytes, moments.bytes);
    result.asked_bytes += moments.bytes;
  } else {
    ++result.unknown_cache;
  }
}

// Claims a position, or tells that none is left. Waits while the depth is used up.
std::optional<int64_t> Claim(Shared& shared, size_t reader, int64_t& sample) {
  const MutexLock lock(shared.mutex);
  const auto ahead = static_cast<int64_t>(shared.ring.size());
  while (!shared.ended && shared.next < shared.positions &&
         shared.next / shared.of_a_step >= shared.released + ahead)
    shared.wanted.Wait(shared.mutex);
  if (shared.ended || shared.next >= shared.positions) return std::nullopt;
  sample = shared.order.At(shared.next);
  shared.reading[reader] = sample;
  return shared.next++;
}

void Deliver(Shared& shared, size_t reader, int64_t position, Instant claimed,
             const Result<ReadMoments>& read, Instant now) {
  const MutexLock lock(shared.mutex);
  shared.reading[reader] = -1;
  StepState& step = shared.ring[static_cast<size_t>(position / shared.of_a_step) % shared.ring.size()];
  step.claimed = claimed;
  if (read) {
    Note(shared.result, *read);
    step.last = *read;
    step.bytes += read->bytes;
  } else {
    ++shared.result.errors;
    if (shared.result.first_errors.size() < kErrorsKept)
      shared.result.first_errors.push_back(read.error().message);
    step.last = ReadMoments();
    step.last.begin = claimed;
    step.last.opened = step.last.began = step.last.read = now;
    step.last.closing = step.last.closed = now;
  }
  if (--step.left == 0) shared.ready.NotifyOne();
}

void ReadUntilTheEnd(const std::shared_ptr<Shared>& shared, size_t reader, SampleReader& source,
                     const Clock& clock) {
  int64_t sample = 0;
  while (const auto position = Claim(*shared, reader, sample)) {
    const Instant claimed = clock.Now();
    const auto read = source.Read(shared->samples[static_cast<size_t>(sample)]);
    Deliver(*shared, reader, *position, claimed, read, read ? read->closed : clock.Now());
  }
  const MutexLock lock(shared->mutex);
  --shared->running;
  shared->ready.NotifyAll();
}

// Divides the stall [deadline, ready] by what the last sample did in it.
void Attribute(Stalls& stalls, Instant deadline, Instant ready, const ReadMoments& last) {
  const auto within = [&](Instant from, Instant to) {
    return std::max(Duration{}, std::min(to, ready) - std::max(from, deadline));
  };
  const Duration open = within(last.begin, last.opened), read = within(last.opened, last.closing),
                 close = within(last.closing, last.closed);
  stalls.open += open;
  stalls.read += read;
  stalls.close += close;
  stalls.queue += std::max(Duration{}, ready - deadline - open - read - close);
}

// The samples that are being read, by name.
std::vector<std::string> Hanging(Shared& shared) REQUIRES(shared.mutex) {
  std::vector<std::string> names;
  for (const int64_t sample : shared.reading)
    if (sample >= 0) names.push_back(EscapeBytes(shared.samples[static_cast<size_t>(sample)].path));
  return names;
}

// Waits for a step's data. Nothing after a stop, or when it took longer than the timeout.
std::optional<StepState> WaitForStep(Shared& shared, int64_t number, const TrainOptions& options,
                                     const Clock& clock, const std::stop_token& stop) {
  constexpr Duration kLook = 100ms;
  const Instant give_up = clock.Now() + options.timeout;
  const MutexLock lock(shared.mutex);
  StepState& step = shared.ring[static_cast<size_t>(number) % shared.ring.size()];
  while (step.left > 0) {
    const Instant now = clock.Now();
    if (stop.stop_requested()) {
      shared.result.cancelled = true;
      return std::nullopt;
    }
    if (now >= give_up) {
      shared.result.hung = Hanging(shared);
      return std::nullopt;
    }
    shared.ready.WaitUntil(shared.mutex, std::min(give_up, now + kLook));
  }
  return step;
}

void Release(Shared& shared, int64_t number) {
  const MutexLock lock(shared.mutex);
  StepState& step = shared.ring[static_cast<size_t>(number) % shared.ring.size()];
  step = StepState();
  step.left = shared.of_a_step;
  shared.released = number + 1;
  shared.wanted.NotifyAll();
}

// Runs the accelerators on the calling thread.
void RunSteps(Shared& shared, const TrainOptions& options, const Clock& clock, const std::stop_token& stop) {
  StepTimes times(options.step);
  TrainResult counted;
  Instant first_end{}, end{};
  const Instant begin = clock.Now();
  for (int64_t number = 0; number < options.steps && clock.Now() - begin < options.limit; ++number) {
    const auto step = WaitForStep(shared, number, options, clock, stop);
    if (!step) break;
    end = times.Next(step->last.closed);
    ++counted.steps;
    if (number == 0) {
      first_end = end;
    } else {
      counted.samples += shared.of_a_step;
      counted.bytes += step->bytes;
      counted.compute += options.step;
      if (times.LastStall() > Duration{})
        Attribute(counted.stalls, times.LastDeadline(), step->last.closed, step->last);
    }
    if (options.step > Duration{}) {
      SleepUntil(end);
      counted.late_ns.Add((clock.Now() - end).count());
    }
    Release(shared, number);
  }
  const MutexLock lock(shared.mutex);
  shared.ended = true;
  shared.wanted.NotifyAll();
  shared.result.steps = counted.steps;
  shared.result.samples = counted.samples;
  shared.result.bytes = counted.bytes;
  shared.result.compute = counted.compute;
  shared.result.stalls = counted.stalls;
  shared.result.late_ns = std::move(counted.late_ns);
  if (counted.steps > 0) shared.result.wall = end - first_end;
}

// Waits until the readers have ended, but for `timeout` at most; tells whether all have.
bool WaitForReaders(Shared& shared, Duration timeout, const Clock& clock) {
  const Instant give_up = clock.Now() + timeout;
  const MutexLock lock(shared.mutex);
  while (shared.running > 0 && clock.Now() < give_up) shared.ready.WaitUntil(shared.mutex, give_up);
  if (shared.running > 0 && shared.result.hung.empty()) shared.result.hung = Hanging(shared);
  return shared.running == 0;
}

}  // namespace

std::optional<double> TrainResult::Utilisation() const {
  if (steps < 2 || compute <= Duration{} || wall <= Duration{}) return std::nullopt;
  return Seconds(compute) / Seconds(wall);
}

std::optional<double> TrainResult::SamplesPerSecond() const {
  if (steps < 2 || wall <= Duration{}) return std::nullopt;
  return static_cast<double>(samples) / Seconds(wall);
}

std::optional<double> TrainResult::BytesPerSecond() const {
  if (steps < 2 || wall <= Duration{}) return std::nullopt;
  return static_cast<double>(bytes) / Seconds(wall);
}

int64_t GlobalOrder::At(int64_t position) {
  const int64_t epoch = position / samples_;
  if (epoch != epoch_) {
    order_.resize(static_cast<size_t>(samples_));
    std::iota(order_.begin(), order_.end(), int64_t{0});
    Random random = seed_.Stream("epoch").Stream(static_cast<uint64_t>(epoch)).MakeRandom();
    Shuffle(order_, random);
    epoch_ = epoch;
  }
  return order_[static_cast<size_t>(position % samples_)];
}

Instant StepTimes::Next(Instant ready) {
  deadline_ = end_.value_or(ready);
  stall_ = std::max(Duration{}, ready - deadline_);
  end_ = deadline_ + stall_ + step_;
  return *end_;
}

Result<TrainResult> Train(std::vector<StorageSample> samples, const TrainOptions& options, Seed seed,
                          const MakeReader& make_reader, const Clock& clock, const std::stop_token& stop) {
  if (samples.empty()) return Fail(ErrorCode::kInvalidArgument, "a set without samples cannot be read");
  const auto shared = std::make_shared<Shared>(std::move(samples), options, seed);
  std::vector<std::unique_ptr<SampleReader>> sources;
  for (int i = 0; i < options.threads; ++i) sources.push_back(TRY(make_reader()));
  std::vector<std::jthread> threads;
  {
    const MutexLock lock(shared->mutex);
    shared->running = options.threads;
  }
  for (int i = 0; i < options.threads; ++i) {
    threads.push_back(StartThread(
        "reader", [shared, i, &clock, source = std::move(sources[i])](const std::stop_token&) mutable {
          ReadUntilTheEnd(shared, static_cast<size_t>(i), *source, clock);
        }));
  }
  RunSteps(*shared, options, clock, stop);
  if (!WaitForReaders(*shared, options.timeout, clock)) {
    for (std::jthread& thread : threads) thread.detach();
  }
  threads.clear();
  const MutexLock lock(shared->mutex);
  return shared->result;
}

}  // namespace weir::probe
