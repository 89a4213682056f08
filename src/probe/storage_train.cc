#include "probe/storage_train.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include "base/json.h"
#include "base/mutex.h"
#include "base/shuffle.h"
#include "base/thread.h"

namespace weir::probe {
namespace {

constexpr size_t kErrorsKept = 10;

struct StepState {
  int64_t left = 0;  // samples that are not there yet
  ReadMoments last;  // of the sample that was whole last
  uint64_t bytes = 0;
};

struct ReaderState {
  int64_t position = -1;  // that it reads; -1: none
  int64_t sample = -1;
  Instant since{};
  bool abandoned = false;  // its read hung: another has taken its place
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
  std::vector<ReaderState> readers GUARDED_BY(mutex);
  TrainResult result GUARDED_BY(mutex);
  int running GUARDED_BY(mutex) = 0;  // readers that are neither done nor abandoned

  const std::vector<StorageSample> samples;
  const int64_t samples_per_step;
  const int64_t positions;  // in all

  Shared(std::vector<StorageSample> set, const TrainOptions& options, Seed seed)
      : order(static_cast<int64_t>(set.size()), seed),
        ring(static_cast<size_t>(options.depth) + 1),
        samples(std::move(set)),
        samples_per_step(int64_t{options.accelerators} * options.batch),
        positions(samples_per_step * options.steps) {
    for (StepState& step : ring) step.left = samples_per_step;
  }

  StepState& StepOf(int64_t number) REQUIRES(mutex) {
    return ring[static_cast<size_t>(number) % ring.size()];
  }
};

// Claims a position. Nullopt if none is left. Waits while the depth is used up.
std::optional<int64_t> Claim(Shared& shared, size_t reader, const Clock& clock, int64_t& sample) {
  const MutexLock lock(shared.mutex);
  const auto ahead = static_cast<int64_t>(shared.ring.size());
  while (!shared.ended && shared.next < shared.positions &&
         shared.next / shared.samples_per_step >= shared.released + ahead)
    shared.wanted.Wait(shared.mutex);
  if (shared.ended || shared.next >= shared.positions || shared.readers[reader].abandoned)
    return std::nullopt;
  sample = shared.order.At(shared.next);
  shared.readers[reader] = {shared.next, sample, clock.Now(), false};
  return shared.next++;
}

void CountEpoch(Shared& shared, int64_t position, const ReadMoments& moments) REQUIRES(shared.mutex) {
  if (!moments.cached_bytes) return;
  const auto epoch = static_cast<size_t>(position / static_cast<int64_t>(shared.samples.size()));
  if (shared.result.epochs.size() <= epoch) shared.result.epochs.resize(epoch + 1);
  shared.result.epochs[epoch].first += std::min(*moments.cached_bytes, moments.bytes);
  shared.result.epochs[epoch].second += moments.bytes;
}

// Counts a sample of a step as there.
void Arrive(Shared& shared, int64_t position, const ReadMoments& moments) REQUIRES(shared.mutex) {
  StepState& step = shared.StepOf(position / shared.samples_per_step);
  if (moments.closed >= step.last.closed) step.last = moments;
  step.bytes += moments.bytes;
  if (--step.left == 0) shared.ready.NotifyOne();
}

// Returns moments of a read that gave nothing, all of its time spent on the read.
ReadMoments MomentsOfFailure(Instant since, Instant now) {
  ReadMoments moments;
  moments.begin = moments.opened = moments.began = since;
  moments.read = moments.closing = moments.closed = now;
  return moments;
}

// False if the reader was abandoned meanwhile.
bool Deliver(Shared& shared, size_t reader, const Result<ReadMoments>& read, Instant now) {
  const MutexLock lock(shared.mutex);
  ReaderState& state = shared.readers[reader];
  if (state.abandoned) return false;
  const int64_t position = std::exchange(state.position, -1);
  if (read) {
    shared.result.reads.Add(*read);
    CountEpoch(shared, position, *read);
    Arrive(shared, position, *read);
  } else {
    shared.result.reads.AddError(read.error().message);
    Arrive(shared, position, MomentsOfFailure(state.since, now));
  }
  return true;
}

void ReadUntilTheEnd(const std::shared_ptr<Shared>& shared, size_t reader, SampleReader& source,
                     const Clock& clock) {
  int64_t sample = 0;
  while (Claim(*shared, reader, clock, sample)) {
    const auto read = source.Read(shared->samples[static_cast<size_t>(sample)]);
    if (!Deliver(*shared, reader, read, clock.Now())) return;
  }
  const MutexLock lock(shared->mutex);
  if (shared->readers[reader].abandoned) return;
  --shared->running;
  shared->ready.NotifyAll();
}

// Divides the stall [deadline, ready] by the work on the last sample.
Stalls Attribute(Instant deadline, Instant ready, const ReadMoments& last) {
  const auto within = [&](Instant from, Instant to) {
    return std::max(Duration{}, std::min(to, ready) - std::max(from, deadline));
  };
  Stalls stalls{.open = within(last.begin, last.opened),
                .read = within(last.opened, last.closing),
                .close = within(last.closing, last.closed)};
  stalls.queue = std::max(Duration{}, ready - deadline - stalls.Total());
  return stalls;
}

// The readers of one run, and the thread that plays the accelerators.
class Training {
 public:
  Training(std::shared_ptr<Shared> shared, const TrainOptions& options, const MakeReader& make_reader,
           const Clock& clock)
      : shared_(std::move(shared)),
        state_(*shared_),
        options_(options),
        make_reader_(make_reader),
        clock_(clock) {}

  Status StartReader() {
    auto source = TRY(make_reader_());
    size_t number = 0;
    {
      const MutexLock lock(state_.mutex);
      number = state_.readers.size();
      state_.readers.emplace_back();
      ++state_.running;
    }
    threads_.push_back(StartThread(
        "reader", [shared = shared_, number, &clock = clock_, source = std::move(source)](
                      const std::stop_token&) mutable { ReadUntilTheEnd(shared, number, *source, clock); }));
    return {};
  }

  // Runs the accelerators on the calling thread.
  Status Run(const std::stop_token& stop) {
    StepTimes times(options_.step);
    TrainResult counted;
    Instant first_end{}, end{};
    const Instant begin = clock_.Now();
    for (int64_t number = 0; number < options_.steps && clock_.Now() - begin < options_.limit; ++number) {
      const auto step = TRY(WaitForStep(number, stop));
      if (!step) break;
      end = times.Next(step->last.closed);
      ++counted.steps;
      if (number == 0) {
        first_end = end;
      } else {
        counted.samples += state_.samples_per_step;
        counted.bytes += step->bytes;
        counted.compute += options_.step;
        if (times.LastStall() > Duration{})
          counted.stalls.Add(Attribute(times.LastDeadline(), step->last.closed, step->last));
      }
      if (options_.step > Duration{}) {
        SleepUntil(end);
        counted.late_ns.Add((clock_.Now() - end).count());
      }
      Release(number);
    }
    const MutexLock lock(state_.mutex);
    state_.ended = true;
    state_.wanted.NotifyAll();
    TrainResult& result = state_.result;
    result.steps = counted.steps;
    result.samples = counted.samples;
    result.bytes = counted.bytes;
    result.compute = counted.compute;
    result.stalls = counted.stalls;
    result.late_ns = std::move(counted.late_ns);
    if (counted.steps > 0) result.wall = end - first_end;
    return {};
  }

  // Ends within the timeout of a read; what hangs then is left behind.
  TrainResult Finish() {
    {
      const MutexLock lock(state_.mutex);
      state_.ended = true;
      state_.wanted.NotifyAll();
      while (state_.running > 0) {
        state_.ready.WaitUntil(state_.mutex, clock_.Now() + kLook);
        AbandonHung();
      }
    }
    const MutexLock lock(state_.mutex);
    for (size_t i = 0; i < threads_.size(); ++i)
      if (state_.readers[i].abandoned) threads_[i].detach();
    return state_.result;
  }

 private:
  static constexpr Duration kLook = 50ms;

  // Counts reads that hang as errors and as arrived. Returns their number.
  int AbandonHung() REQUIRES(state_.mutex) {
    const Instant now = clock_.Now();
    int hung = 0;
    for (ReaderState& reader : state_.readers) {
      if (reader.abandoned || reader.position < 0 || now - reader.since < options_.timeout) continue;
      reader.abandoned = true;
      ++hung;
      --state_.running;
      std::string name = EscapeBytes(state_.samples[static_cast<size_t>(reader.sample)].path);
      state_.result.reads.AddError(name + ": the read did not end within the timeout");
      state_.result.reads.hung.push_back(std::move(name));
      Arrive(state_, reader.position, MomentsOfFailure(reader.since, now));
    }
    return hung;
  }

  // Waits for a step's data. Nullopt after a stop, or if too many reads hang.
  Result<std::optional<StepState>> WaitForStep(int64_t number, const std::stop_token& stop) {
    while (true) {
      int hung = 0;
      {
        const MutexLock lock(state_.mutex);
        StepState& step = state_.StepOf(number);
        if (step.left == 0) return step;
        if (stop.stop_requested()) {
          state_.result.cancelled = true;
          return std::nullopt;
        }
        state_.ready.WaitUntil(state_.mutex, clock_.Now() + kLook);
        hung = AbandonHung();
        if (std::ssize(state_.result.reads.hung) >= options_.most_hung) return std::nullopt;
      }
      for (; hung > 0; --hung) TRY_STATUS(StartReader());
    }
  }

  void Release(int64_t number) {
    const MutexLock lock(state_.mutex);
    StepState& step = state_.StepOf(number);
    step = StepState();
    step.left = state_.samples_per_step;
    state_.released = number + 1;
    state_.wanted.NotifyAll();
  }

  const std::shared_ptr<Shared> shared_;
  Shared& state_;  // *shared_
  const TrainOptions& options_;
  const MakeReader& make_reader_;
  const Clock& clock_;
  std::vector<std::jthread> threads_;  // by reader
};

}  // namespace

void Stalls::Add(const Stalls& other) {
  queue += other.queue;
  open += other.open;
  read += other.read;
  close += other.close;
}

void ReadTally::Add(const ReadMoments& moments) {
  open_ns.Add((moments.opened - moments.begin).count());
  read_ns.Add((moments.read - moments.began).count());
  close_ns.Add((moments.closed - moments.closing).count());
  bytes += moments.bytes;
  if (moments.cached_bytes) {
    cached_bytes += std::min(*moments.cached_bytes, moments.bytes);
    asked_bytes += moments.bytes;
  } else {
    ++unknown_cache;
  }
}

void ReadTally::AddError(std::string message) {
  ++errors;
  if (first_errors.size() < kErrorsKept) first_errors.push_back(std::move(message));
}

void ReadTally::Merge(const ReadTally& other) {
  open_ns.Merge(other.open_ns);
  read_ns.Merge(other.read_ns);
  close_ns.Merge(other.close_ns);
  bytes += other.bytes;
  cached_bytes += other.cached_bytes;
  asked_bytes += other.asked_bytes;
  unknown_cache += other.unknown_cache;
  errors += other.errors;
  for (const std::string& error : other.first_errors)
    if (first_errors.size() < kErrorsKept) first_errors.push_back(error);
  hung.insert(hung.end(), other.hung.begin(), other.hung.end());
}

std::optional<double> ReadTally::CachedShare() const {
  if (asked_bytes == 0) return std::nullopt;
  return static_cast<double>(cached_bytes) / static_cast<double>(asked_bytes);
}

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
  Training training(std::make_shared<Shared>(std::move(samples), options, seed), options, make_reader, clock);
  Status status;
  for (int i = 0; i < options.threads && status; ++i) status = training.StartReader();
  if (status) status = training.Run(stop);
  TrainResult result = training.Finish();
  if (!status) return std::unexpected(status.error());
  return result;
}

}  // namespace weir::probe
