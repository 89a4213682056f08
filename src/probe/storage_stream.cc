#include "probe/storage_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace weir::probe {
namespace {

constexpr Duration kLook = 50ms;
constexpr uint64_t kAlignment = 4096;
constexpr int64_t kEndless = int64_t{1} << 62;

// Reading threads that are watched for reads that do not end. Kept by whichever of its threads lives longest.
struct Watched {
  struct Worker {
    std::string reads;  // what; empty: nothing
    Instant since{};
    bool abandoned = false;
  };
  Mutex mutex;
  CondVar changed;
  std::vector<Worker> workers GUARDED_BY(mutex);
  int running GUARDED_BY(mutex) = 0;
  int64_t next GUARDED_BY(mutex) = 0;  // item to be taken
  bool ended GUARDED_BY(mutex) = false;
  ReadTally reads GUARDED_BY(mutex);
  InferResult infer GUARDED_BY(mutex);

  // Takes the next item. Nullopt after the end or if the worker was abandoned.
  std::optional<int64_t> Take(size_t worker, int64_t items) {
    const MutexLock lock(mutex);
    if (ended || next >= items || workers[worker].abandoned) return std::nullopt;
    return next++;
  }
  void Begin(size_t worker, std::string what, Instant now) {
    const MutexLock lock(mutex);
    workers[worker].reads = std::move(what);
    workers[worker].since = now;
  }
  void Leave(size_t worker) {
    const MutexLock lock(mutex);
    if (workers[worker].abandoned) return;
    --running;
    changed.NotifyAll();
  }
  // Marks workers whose read hangs. Returns their number.
  int Abandon(Instant now, Duration timeout) REQUIRES(mutex) {
    int hung = 0;
    for (Worker& worker : workers) {
      if (worker.abandoned || worker.reads.empty() || now - worker.since < timeout) continue;
      worker.abandoned = true;
      ++hung;
      --running;
      reads.AddError(worker.reads + ": the read did not end within the timeout");
      reads.hung.push_back(worker.reads);
    }
    return hung;
  }
};

using Work = std::function<Status(Watched&, size_t worker)>;

// Starts `threads` workers and waits until all have ended; starts another for each that hangs. A stop or
// `deadline` ends them. The worker's function must keep what it uses.
Result<bool> RunWatched(const std::shared_ptr<Watched>& watched, int threads, const Work& work,
                        Duration timeout, std::optional<Instant> deadline, const Clock& clock,
                        const std::stop_token& stop) {
  constexpr int kMostHung = 64;
  std::vector<std::jthread> started;
  const auto start = [&] {
    size_t number = 0;
    {
      const MutexLock lock(watched->mutex);
      number = watched->workers.size();
      watched->workers.emplace_back();
      ++watched->running;
    }
    started.push_back(StartThread("reader", [watched, number, work](const std::stop_token&) {
      if (const Status status = work(*watched, number); !status) {
        const MutexLock lock(watched->mutex);
        if (!watched->workers[number].abandoned) watched->reads.AddError(status.error().message);
      }
      watched->Leave(number);
    }));
  };
  for (int i = 0; i < threads; ++i) start();
  bool cancelled = false;
  int hung_in_all = 0;
  while (true) {
    int hung = 0;
    {
      const MutexLock lock(watched->mutex);
      if (watched->running == 0) break;
      watched->changed.WaitUntil(watched->mutex, clock.Now() + kLook);
      cancelled = cancelled || stop.stop_requested();
      if (cancelled || (deadline && clock.Now() >= *deadline) || hung_in_all >= kMostHung)
        watched->ended = true;
      hung = watched->Abandon(clock.Now(), timeout);
      hung_in_all += hung;
      if (watched->ended) hung = 0;
    }
    for (; hung > 0; --hung) start();
  }
  const MutexLock lock(watched->mutex);
  for (size_t i = 0; i < started.size(); ++i)
    if (watched->workers[i].abandoned) started[i].detach();
  return cancelled;
}

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

// Reads one file from begin to end and counts it in `tally`. Calls `alive` before each block.
Status StreamFile(const StorageSample& file, const StreamOptions& options, void* buffer, const Clock& clock,
                  ReadTally& tally, const std::function<void()>& alive) {
  const Instant begin = clock.Now();
  UniqueFd fd(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | (options.direct ? O_DIRECT : 0)));
  if (!fd.valid()) return FailErrno(EscapeBytes(file.path), errno);
  tally.open_ns.Add((clock.Now() - begin).count());
  if (const auto cached = CachedBytes(fd.get(), file)) {
    tally.cached_bytes += std::min(*cached, file.bytes);
    tally.asked_bytes += file.bytes;
  } else {
    ++tally.unknown_cache;
  }
  for (uint64_t done = 0; done < file.bytes;) {
    alive();
    const Instant began = clock.Now();
    const ssize_t got = ::pread(fd.get(), buffer, options.block_bytes, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno(EscapeBytes(file.path), errno);
    tally.read_ns.Add((clock.Now() - began).count());
    tally.bytes += static_cast<uint64_t>(got);
    done += static_cast<uint64_t>(got);
    const bool partial = options.direct && static_cast<uint64_t>(got) % kAlignment != 0;
    if ((got == 0 || partial) && done < file.bytes)
      return Fail(ErrorCode::kIo, fmt::format("{}: {} bytes read of {}: the file is shorter than it was",
                                              EscapeBytes(file.path), done, file.bytes));
  }
  if (options.cold && !options.direct) ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  const Instant closing = clock.Now();
  fd = UniqueFd();
  tally.close_ns.Add((clock.Now() - closing).count());
  return {};
}

}  // namespace

std::optional<double> InferResult::InTimeShare() const {
  if (planned == 0) return std::nullopt;
  return static_cast<double>(in_time) / static_cast<double>(planned);
}

std::optional<double> StreamResult::BytesPerSecond() const {
  if (wall <= Duration{}) return std::nullopt;
  return static_cast<double>(reads.bytes) / Seconds(wall);
}

StorageSample FrameSample(const std::vector<StorageSample>& samples, const InferOptions& options, Seed seed,
                          int64_t number) {
  Random random = seed.Stream("frames").Stream(static_cast<uint64_t>(number)).MakeRandom();
  StorageSample sample =
      samples[static_cast<size_t>(random.Integer(0, static_cast<int64_t>(samples.size()) - 1))];
  if (options.record_bytes == 0 || sample.bytes <= options.record_bytes) return sample;
  sample.offset +=
      static_cast<uint64_t>(random.Integer(0, static_cast<int64_t>(sample.bytes - options.record_bytes)));
  sample.bytes = options.record_bytes;
  sample.hash.clear();  // it is of the whole
  return sample;
}

Result<InferResult> Infer(std::vector<StorageSample> samples, const InferOptions& options, Seed seed,
                          const MakeReader& make_reader, const Clock& clock, const std::stop_token& stop) {
  if (samples.empty()) return Fail(ErrorCode::kInvalidArgument, "a set without samples cannot be read");
  const double rate = options.streams * options.frames_per_s;
  const auto frames = static_cast<int64_t>(rate * Seconds(options.limit));
  const Duration deadline =
      options.deadline > Duration{} ? options.deadline : FromSeconds(1 / options.frames_per_s);
  const auto watched = std::make_shared<Watched>();
  const auto set = std::make_shared<const std::vector<StorageSample>>(std::move(samples));
  const Instant begin = clock.Now() + 10ms;  // all threads are there by then
  const Work work = [=, &clock](Watched& shared, size_t worker) -> Status {
    const auto reader = TRY(make_reader());
    while (const auto frame = shared.Take(worker, frames)) {
      const Instant planned = begin + FromSeconds(static_cast<double>(*frame) / rate);
      const StorageSample sample = FrameSample(*set, options, seed, *frame);
      SleepUntil(planned);
      const Instant now = clock.Now();
      shared.Begin(worker, EscapeBytes(sample.path), now);
      const auto read = reader->Read(sample);
      const MutexLock lock(shared.mutex);
      if (shared.workers[worker].abandoned) return {};
      shared.workers[worker].reads.clear();
      if (!read) {
        shared.reads.AddError(read.error().message);
        continue;
      }
      shared.reads.Add(*read);
      ++shared.infer.answered;
      shared.infer.in_time += read->closed - planned <= deadline ? 1 : 0;
      shared.infer.response_ns.Add((read->closed - planned).count());
      shared.infer.service_ns.Add((read->closed - read->begin).count());
    }
    return {};
  };
  const bool cancelled =
      TRY(RunWatched(watched, options.threads, work, options.timeout, std::nullopt, clock, stop));
  const MutexLock lock(watched->mutex);
  InferResult result = watched->infer;
  result.planned = std::min(watched->next, frames);
  result.reads = watched->reads;
  result.wall = clock.Now() - begin;
  result.cancelled = cancelled;
  return result;
}

Result<StreamResult> Stream(std::vector<StorageSample> samples, const StreamOptions& options,
                            const Clock& clock, const std::stop_token& stop) {
  if (samples.empty()) return Fail(ErrorCode::kInvalidArgument, "a set without samples cannot be read");
  if (options.block_bytes == 0 || options.block_bytes % kAlignment != 0)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("blocks of {} bytes: a multiple of {} is needed",
                                                         options.block_bytes, kAlignment));
  const auto watched = std::make_shared<Watched>();
  const auto set = std::make_shared<const std::vector<StorageSample>>(std::move(samples));
  const Instant begin = clock.Now();
  const Work work = [=, &clock](Watched& shared, size_t worker) -> Status {
    const std::unique_ptr<void, FreeMemory> buffer(std::aligned_alloc(kAlignment, options.block_bytes));
    if (!buffer) return Fail(ErrorCode::kOverloaded, "no memory for a block: fewer --threads need less");
    while (const auto item = shared.Take(worker, kEndless)) {
      const StorageSample& file = (*set)[static_cast<size_t>(*item) % set->size()];
      const std::string name = EscapeBytes(file.path);
      shared.Begin(worker, name, clock.Now());
      ReadTally tally;
      const Status status = StreamFile(file, options, buffer.get(), clock, tally,
                                       [&] { shared.Begin(worker, name, clock.Now()); });
      const MutexLock lock(shared.mutex);
      if (shared.workers[worker].abandoned) return {};
      shared.workers[worker].reads.clear();
      shared.reads.Merge(tally);
      if (!status) shared.reads.AddError(status.error().message);
    }
    return {};
  };
  const bool cancelled =
      TRY(RunWatched(watched, options.threads, work, options.timeout, begin + options.limit, clock, stop));
  const MutexLock lock(watched->mutex);
  return StreamResult{.reads = watched->reads, .wall = clock.Now() - begin, .cancelled = cancelled};
}

}  // namespace weir::probe
