#include "probe/storage_train.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <thread>
#include <utility>

#include "base/json.h"
#include "base/mutex.h"
#include "base/short_slice.h"
#include "base/thread.h"

namespace weir::probe {
namespace {

struct StepState {
  int64_t left = 0;  // samples that are not there yet
  ReadMoments last;  // of the sample that was whole last
  uint64_t bytes = 0;
};

struct Claim {
  int64_t position = -1;  // among those of this host; -1: none
  int64_t sample = -1;
};

struct ReaderState {
  struct Slot {
    Claim claim;
    Instant since{};
  };
  std::deque<Claim> claimed;  // to be read next
  std::vector<Slot> slots;
  bool abandoned = false;  // a read hung: another reader has taken its place
};

struct Task {
  int slot = 0;
  int64_t sample = 0;
};

// Divides the stall [deadline, ready] by the work on this host's last sample. Without other hosts that sample
// was ready at `ready`.
Stalls Attribute(Instant deadline, Instant ready, const ReadMoments& last) {
  const auto within = [&](Instant from, Instant to) {
    return std::max(Duration{}, std::min(to, ready) - std::max(from, deadline));
  };
  Stalls stalls{.open = within(last.begin, last.opened),
                .read = within(last.opened, last.closing),
                .close = within(last.closing, last.closed),
                .decode = within(last.closed, last.closed + last.decode),
                .augment = within(last.closed + last.decode, last.ready()),
                .hosts = within(last.ready(), ready)};
  stalls.queue = std::max(Duration{}, ready - deadline - stalls.Total());
  return stalls;
}

// Returns moments of a read that gave nothing, all of its time spent on the read.
ReadMoments MomentsOfFailure(Instant since, Instant now) {
  ReadMoments moments;
  moments.begin = moments.opened = moments.began = since;
  moments.read = moments.closing = moments.closed = now;
  return moments;
}

GlobalOrder MakeOrder(const std::vector<StorageSample>& samples, bool sequences, Seed seed) {
  if (!sequences) return GlobalOrder(std::ssize(samples), seed);
  std::vector<int64_t> begins;
  for (size_t i = 0; i < samples.size(); ++i)
    if (i == 0 || samples[i].path != samples[i - 1].path) begins.push_back(static_cast<int64_t>(i));
  begins.push_back(std::ssize(samples));
  return GlobalOrder(std::move(begins), seed);
}

// State of the readers and of the thread that watches them, kept by whichever of them lives longest.
class Shared {
 public:
  Shared(std::vector<StorageSample> set, const TrainOptions& options, Seed seed, Instant begin)
      : samples(std::move(set)),
        options_(options),
        samples_per_step_(int64_t{options.accelerators} * options.batch),
        positions_(samples_per_step_ * options.steps),
        begin_(begin),
        order_(MakeOrder(samples, options.sequences, seed)),
        ring_(static_cast<size_t>(options.depth) + 1),
        times_(options.step) {
    for (StepState& step : ring_) step.left = samples_per_step_;
    result_.set_samples = std::ssize(samples);
  }

  const std::vector<StorageSample> samples;
  Mutex mutex;
  CondVar changed;  // a reader ended, or the run

  size_t AddReader(int slots) REQUIRES(mutex) {
    readers_.emplace_back().slots.resize(static_cast<size_t>(slots));
    ++running_;
    return readers_.size() - 1;
  }

  // Lets the accelerators take a step whose data are whole on all hosts.
  void Pass(Instant at, bool last) {
    const MutexLock lock(mutex);
    if (!ended_) Complete(at, last);
  }

  // Gives a reader its next sample. Nullopt at the end of the run, or, unless `may_wait`, while there is
  // none. Waits while the depth is used up: one reader until the end of a step, the others for that one.
  std::optional<Task> Take(size_t number, bool may_wait, const Clock& clock) {
    const MutexLock lock(mutex);
    ReaderState& reader = readers_[number];
    while (!ended_ && !reader.abandoned) {
      const Instant now = clock.Now();
      Release(now);
      if (!reader.claimed.empty() || Refill(reader)) {
        const auto free =
            std::ranges::find_if(reader.slots, [](const auto& slot) { return slot.claim.position < 0; });
        if (free == reader.slots.end()) return std::nullopt;
        *free = {reader.claimed.front(), now};
        reader.claimed.pop_front();
        if (waiting_ > 0 && (Open() > 0 || (!sleeper_ && !ends_.empty()))) wanted_.NotifyOne();
        return Task{static_cast<int>(free - reader.slots.begin()), free->claim.sample};
      }
      if (!may_wait) return std::nullopt;
      if (!sleeper_ && !ends_.empty()) {
        sleeper_ = true;
        const Instant due = ends_.front();
        if (!tick_.WaitUntil(mutex, due)) result_.late_ns.Add((clock.Now() - due).count());
        sleeper_ = false;
      } else {
        ++waiting_;
        wanted_.Wait(mutex);
        --waiting_;
      }
    }
    return std::nullopt;
  }

  // Counts the end of a read. False if the reader was abandoned meanwhile.
  bool Deliver(size_t number, const ReadDone& done, const Clock& clock) {
    const MutexLock lock(mutex);
    ReaderState& reader = readers_[number];
    if (reader.abandoned) return false;
    ReaderState::Slot& slot = reader.slots[static_cast<size_t>(done.slot)];
    const int64_t position = std::exchange(slot.claim.position, -1);
    if (done.read) {
      result_.reads.Add(*done.read);
      CountEpoch(position, *done.read);
      Arrive({position, slot.claim.sample}, *done.read);
    } else {
      result_.reads.AddError(done.read.error().message);
      Arrive({position, slot.claim.sample}, MomentsOfFailure(slot.since, clock.Now()));
    }
    return true;
  }

  void Leave(size_t number) {
    const MutexLock lock(mutex);
    if (readers_[number].abandoned) return;
    --running_;
    changed.NotifyAll();
  }

  void End() REQUIRES(mutex) {
    ended_ = true;
    wanted_.NotifyAll();
    tick_.NotifyAll();
    changed.NotifyAll();
  }

  // Counts reads that hang as errors and as arrived, and gives what their readers had claimed to others.
  // Returns the number of readers that hang.
  int AbandonHung(Instant now) REQUIRES(mutex) {
    int hung = 0;
    for (ReaderState& reader : readers_) {
      const auto hangs = [&](const ReaderState::Slot& slot) {
        return slot.claim.position >= 0 && now - slot.since >= options_.timeout;
      };
      if (reader.abandoned || std::ranges::none_of(reader.slots, hangs)) continue;
      reader.abandoned = true;
      ++hung;
      --running_;
      returned_.insert(returned_.end(), reader.claimed.begin(), reader.claimed.end());
      for (const ReaderState::Slot& slot : reader.slots) {
        if (slot.claim.position < 0) continue;
        if (!hangs(slot)) {
          returned_.push_back(slot.claim);
          continue;
        }
        std::string name = EscapeBytes(samples[static_cast<size_t>(slot.claim.sample)].path);
        result_.reads.AddError(name + ": the read did not end within the timeout");
        result_.reads.hung.push_back(std::move(name));
        Arrive(slot.claim, MomentsOfFailure(slot.since, now));
      }
    }
    if (hung > 0) {
      wanted_.NotifyAll();
      tick_.NotifyAll();
    }
    return hung;
  }

  bool ended() const REQUIRES(mutex) { return ended_; }
  int running() const REQUIRES(mutex) { return running_; }
  bool abandoned(size_t number) const REQUIRES(mutex) { return readers_[number].abandoned; }
  TrainResult& result() REQUIRES(mutex) { return result_; }

 private:
  // Returns the place in the order of all hosts of a position of this host.
  int64_t InGlobalOrder(int64_t position) const {
    const HostShare& share = options_.share;
    const int64_t step = position / samples_per_step_;
    return (step * share.world + share.rank) * samples_per_step_ + position % samples_per_step_;
  }

  StepState& StepOf(int64_t number) REQUIRES(mutex) {
    return ring_[static_cast<size_t>(number) % ring_.size()];
  }

  // Returns the number of positions that may be claimed now.
  int64_t Open() REQUIRES(mutex) {
    const int64_t ahead = (released_ + std::ssize(ring_)) * samples_per_step_;
    return std::min(positions_, ahead) - next_ + std::ssize(returned_);
  }

  // Gives a reader some positions. False if there is none. Few enough that others can share the step.
  bool Refill(ReaderState& reader) REQUIRES(mutex) {
    constexpr int64_t kMostClaimed = 8;
    if (!returned_.empty()) {
      reader.claimed.push_back(returned_.front());
      returned_.pop_front();
      return true;
    }
    const int64_t open = Open();
    if (open <= 0) return false;
    const auto in_flight = static_cast<int64_t>(reader.slots.size()) * std::max(1, running_);
    for (int64_t i = std::clamp(open / (2 * in_flight), int64_t{1}, kMostClaimed); i > 0; --i, ++next_)
      reader.claimed.push_back({next_, order_.At(InGlobalOrder(next_))});
    return true;
  }

  // Lets the samples of further steps be read where steps have ended.
  void Release(Instant now) REQUIRES(mutex) {
    for (; !ends_.empty() && ends_.front() <= now; ends_.pop_front(), ++released_) {
      StepOf(released_) = StepState();
      StepOf(released_).left = samples_per_step_;
    }
  }

  // Counts a sample of a step as there.
  void Arrive(const Claim& claim, const ReadMoments& moments) REQUIRES(mutex) {
    const auto epoch = static_cast<size_t>(InGlobalOrder(claim.position) / std::ssize(samples));
    if (result_.order.size() <= epoch) result_.order.resize(epoch + 1);
    result_.order[epoch].Add(claim.sample);
    StepState& step = StepOf(claim.position / samples_per_step_);
    if (moments.ready() >= step.last.ready()) step.last = moments;
    step.bytes += moments.bytes;
    --step.left;
    while (!ended_ && whole_ < released_ + std::ssize(ring_) && StepOf(whole_).left == 0) {
      const Instant ready = StepOf(whole_).last.ready();
      if (StepBarrier* const barrier = options_.share.barrier.get(); barrier != nullptr) {
        barrier->Arrive(whole_, whole_ + 1 == options_.steps || ready - begin_ >= options_.limit);
        ++whole_;
      } else {
        ++whole_;
        Complete(ready, false);
      }
    }
  }

  // Lets the accelerators take the next step, whose data were whole at `ready`.
  void Complete(Instant ready, bool last) REQUIRES(mutex) {
    const StepState& step = StepOf(complete_);
    const Instant end = times_.Next(ready);
    if (complete_++ == 0) {
      first_end_ = end;
    } else {
      result_.samples += samples_per_step_;
      result_.bytes += step.bytes;
      result_.compute += options_.step;
      if (times_.LastStall() > Duration{}) {
        const Stalls stalls = Attribute(times_.LastDeadline(), ready, step.last);
        result_.stalls.Add(stalls);
        result_.stall_times.Add(stalls);
      }
    }
    result_.steps = complete_;
    result_.wall = end - first_end_;
    result_.ended = end;
    ends_.push_back(end);
    const bool over = options_.share.barrier ? last : end - begin_ >= options_.limit;
    if (complete_ == options_.steps || over) {
      End();
    } else if (!sleeper_ && waiting_ > 0) {
      wanted_.NotifyOne();
    }
  }

  void CountEpoch(int64_t position, const ReadMoments& moments) REQUIRES(mutex) {
    if (!moments.cached_bytes) return;
    const auto epoch = static_cast<size_t>(InGlobalOrder(position) / std::ssize(samples));
    if (result_.epochs.size() <= epoch) result_.epochs.resize(epoch + 1);
    result_.epochs[epoch].first += std::min(*moments.cached_bytes, moments.bytes);
    result_.epochs[epoch].second += moments.bytes;
  }

  const TrainOptions options_;
  const int64_t samples_per_step_;
  const int64_t positions_;  // in all
  const Instant begin_;
  CondVar wanted_, tick_;
  GlobalOrder order_ GUARDED_BY(mutex);
  std::vector<StepState> ring_ GUARDED_BY(mutex);
  StepTimes times_ GUARDED_BY(mutex);
  std::deque<Instant> ends_ GUARDED_BY(mutex);    // of steps that are complete and not released
  std::deque<Claim> returned_ GUARDED_BY(mutex);  // by readers that hang
  std::deque<ReaderState> readers_ GUARDED_BY(mutex);
  int64_t next_ GUARDED_BY(mutex) = 0;      // position to be claimed
  int64_t whole_ GUARDED_BY(mutex) = 0;     // steps whose data are whole on this host
  int64_t complete_ GUARDED_BY(mutex) = 0;  // steps whose data are whole on all hosts
  int64_t released_ GUARDED_BY(mutex) = 0;  // steps that are over
  Instant first_end_ GUARDED_BY(mutex){};
  bool sleeper_ GUARDED_BY(mutex) = false;  // a reader waits for the end of a step
  int waiting_ GUARDED_BY(mutex) = 0;       // readers that wait for that one
  int running_ GUARDED_BY(mutex) = 0;       // readers that are neither done nor abandoned
  bool ended_ GUARDED_BY(mutex) = false;
  TrainResult result_ GUARDED_BY(mutex);
};

void ReadUntilTheEnd(Shared& shared, size_t number, SampleReader& source, const Clock& clock) {
  WantShortSlice();
  for (int under_way = 0;;) {
    while (under_way < source.Slots()) {
      const auto task = shared.Take(number, under_way == 0, clock);
      if (!task) break;
      source.Begin(task->slot, shared.samples[static_cast<size_t>(task->sample)]);
      ++under_way;
    }
    if (under_way == 0) break;
    const ReadDone done = source.Wait();
    --under_way;
    if (!shared.Deliver(number, done, clock)) return;
  }
  shared.Leave(number);
}

// The readers of one run, and the thread that watches them.
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
      number = state_.AddReader(source->Slots());
    }
    threads_.push_back(StartThread(
        "reader", [shared = shared_, number, &clock = clock_, source = std::move(source)](
                      const std::stop_token&) mutable { ReadUntilTheEnd(*shared, number, *source, clock); }));
    return {};
  }

  // Meets the other hosts, if there are any.
  void MeetHosts() {
    if (StepBarrier* const barrier = options_.share.barrier.get(); barrier != nullptr)
      barrier->Start([shared = shared_](int64_t, Instant at, bool last) { shared->Pass(at, last); });
  }

  // Watches until the run has ended.
  Status Run(const std::stop_token& stop) {
    while (true) {
      int hung = 0;
      {
        const MutexLock lock(state_.mutex);
        if (state_.ended()) return {};
        state_.changed.WaitUntil(state_.mutex, clock_.Now() + kLook);
        if (stop.stop_requested()) {
          state_.result().cancelled = true;
          return {};
        }
        hung = state_.AbandonHung(clock_.Now());
        if (std::ssize(state_.result().reads.hung) >= options_.most_hung) return {};
      }
      for (; hung > 0; --hung) TRY_STATUS(StartReader());
    }
  }

  // Ends within the timeout of a read; what hangs then is left behind.
  TrainResult Finish() {
    if (StepBarrier* const barrier = options_.share.barrier.get(); barrier != nullptr) barrier->Finish();
    const MutexLock lock(state_.mutex);
    state_.End();
    while (state_.running() > 0) {
      state_.changed.WaitUntil(state_.mutex, clock_.Now() + kLook);
      state_.AbandonHung(clock_.Now());
    }
    for (size_t i = 0; i < threads_.size(); ++i)
      if (state_.abandoned(i)) threads_[i].detach();
    return state_.result();
  }

 private:
  static constexpr Duration kLook = 50ms;

  const std::shared_ptr<Shared> shared_;
  Shared& state_;  // *shared_
  const TrainOptions& options_;
  const MakeReader& make_reader_;
  const Clock& clock_;
  std::vector<std::jthread> threads_;  // by reader
};

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

Result<TrainResult> Train(std::vector<StorageSample> samples, const TrainOptions& options, Seed seed,
                          const MakeReader& make_reader, const Clock& clock, const std::stop_token& stop) {
  if (samples.empty()) return Fail(ErrorCode::kInvalidArgument, "a set without samples cannot be read");
  const HostShare& share = options.share;
  if (share.world < 1 || share.rank < 0 || share.rank >= share.world)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("host {} of {} hosts: ranks are from 0 to {}",
                                                         share.rank, share.world, share.world - 1));
  if (share.begin) SleepUntil(*share.begin);
  Training training(std::make_shared<Shared>(std::move(samples), options, seed, clock.Now()), options,
                    make_reader, clock);
  training.MeetHosts();
  Status status;
  for (int i = 0; i < options.threads && status; ++i) status = training.StartReader();
  if (status) status = training.Run(stop);
  TrainResult result = training.Finish();
  if (!status) return std::unexpected(status.error());
  return result;
}

}  // namespace weir::probe
