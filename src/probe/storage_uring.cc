// Samples read by io_uring: each sample is a chain of open, read, forget and close that the kernel runs.
#include <fcntl.h>
#include <fmt/format.h>
#include <liburing.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "probe/storage_open_files.h"
#include "probe/storage_read.h"

namespace weir::probe {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMostBytes = (uint64_t{1} << 31) - kPage;  // of one read

std::unexpected<Error> RingError(int error) {
  return Fail(ErrorCode::kUnsupported,
              fmt::format("io_uring: {}: this system or container forbids it; use --access pool",
                          std::strerror(error)));
}

class UringReader final : public SampleReader {
 public:
  UringReader(const ReadOptions& options, const Clock& clock)
      : options_(options), clock_(clock), slots_(static_cast<size_t>(options.ring_depth)) {}
  ~UringReader() override {
    if (ready_) ::io_uring_queue_exit(&ring_);
    std::free(memory_);
  }
  UringReader(const UringReader&) = delete;
  UringReader& operator=(const UringReader&) = delete;

  Status Start() {
    const auto depth = static_cast<unsigned>(options_.ring_depth);
    if (const int made = ::io_uring_queue_init(depth * kSteps, &ring_, 0); made < 0) return RingError(-made);
    ready_ = true;
    // Files of the chains live in the ring's own table, so a read can name a file that is not open yet.
    const std::vector<int> none(depth, -1);
    if (const int made = ::io_uring_register_files(&ring_, none.data(), depth); made < 0)
      return RingError(-made);
    slot_bytes_ = (options_.most_bytes + 2 * kPage + kPage - 1) / kPage * kPage;
    memory_ = static_cast<std::byte*>(std::aligned_alloc(kPage, slot_bytes_ * depth));
    if (memory_ == nullptr)
      return Fail(
          ErrorCode::kOverloaded,
          fmt::format("no memory for {} buffers of {} bytes: a smaller --ring-depth or fewer --threads "
                      "need less",
                      depth, slot_bytes_));
    std::memset(memory_, 1, slot_bytes_ * depth);
    std::vector<iovec> buffers(depth);
    for (unsigned i = 0; i < depth; ++i) buffers[i] = {memory_ + i * slot_bytes_, slot_bytes_};
    // A limit on locked memory may forbid this; reads then pin their buffers one by one.
    fixed_ = ::io_uring_register_buffers(&ring_, buffers.data(), depth) == 0;
    return {};
  }

  Result<ReadMoments> Read(const StorageSample& sample) override {
    Begin(0, sample);
    return Wait().read;
  }

  std::span<const std::byte> Contents(int slot, const StorageSample& sample) const override {
    const uint64_t lead = options_.direct ? sample.offset % kPage : 0;
    return {memory_ + static_cast<size_t>(slot) * slot_bytes_ + lead, sample.bytes};
  }

  int Slots() const override { return options_.ring_depth; }

  void Begin(int number, const StorageSample& sample) override {
    Slot& slot = slots_[static_cast<size_t>(number)];
    slot = Slot{.sample = &sample};
    slot.lead = options_.direct ? sample.offset % kPage : 0;
    const uint64_t wanted = sample.bytes + slot.lead;
    slot.length = options_.direct ? (wanted + kPage - 1) / kPage * kPage : wanted;
    LookAtCache(slot);
    if (sample.place != StorageSample::Place::kFile) {
      slot.fd = FindOpen(sample.path, slot);
      if (slot.fd < 0) return;
    }
    slot.moments.begin = slot.moments.opened = slot.moments.began = clock_.Now();
    Submit(number, slot);
  }

  ReadDone Wait() override {
    while (true) {
      for (size_t i = 0; i < slots_.size(); ++i)
        if (Slot& slot = slots_[i]; slot.sample != nullptr && slot.left == 0) return Finish(i);
      io_uring_cqe* done = nullptr;
      const int waited = ::io_uring_submit_and_wait(&ring_, 1);
      const Instant now = clock_.Now();
      if (waited < 0 && waited != -EINTR && waited != -EAGAIN && waited != -EBUSY)
        for (Slot& slot : slots_)
          if (slot.sample != nullptr) slot.error = -waited, slot.left = 0;
      while (::io_uring_peek_cqe(&ring_, &done) == 0) {
        Take(::io_uring_cqe_get_data64(done), done->res, now);
        ::io_uring_cqe_seen(&ring_, done);
      }
    }
  }

 private:
  enum Step : uint64_t { kOpen, kRead, kForget, kClose, kSteps };
  struct Slot {
    const StorageSample* sample = nullptr;  // null: free
    ReadMoments moments;
    uint64_t lead = 0, length = 0;
    int fd = -1;    // of a shard
    int left = 0;   // steps that have not ended
    int error = 0;  // the first
    int64_t got = -1;
  };

  // A chain's file has no number that cachestat takes. So each eighth file is looked at before its clock
  // starts.
  void LookAtCache(Slot& slot) {
    constexpr uint64_t kEach = 8;
    slot.moments.asked_cache = false;
    if (slot.sample->place == StorageSample::Place::kSequence || looks_++ % kEach != 0) return;
    const UniqueFd fd(::open(slot.sample->path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd.valid()) return;
    slot.moments.asked_cache = true;
    slot.moments.cached_bytes = CachedBytes(fd.get(), *slot.sample);
  }

  int FindOpen(const std::string& path, Slot& slot) {
    slot.moments.own_file = false;
    if (const int found = files_.Find(path); found >= 0) return found;
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | (options_.direct ? O_DIRECT : 0)));
    if (!fd.valid()) {
      slot.error = errno;
      return -1;
    }
    if (slot.sample->place == StorageSample::Place::kRecord)
      ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_RANDOM);
    // Keep may close a file that an entry of the ring names. After this call the kernel holds the file.
    ::io_uring_submit(&ring_);
    return files_.Keep(path, std::move(fd));
  }

  io_uring_sqe* Entry(int number, Step step, unsigned flags) {
    io_uring_sqe* const entry = ::io_uring_get_sqe(&ring_);
    CHECK(entry != nullptr);  // the ring has room for the chains of all slots
    pending_ = {entry, static_cast<uint64_t>(number) * kSteps + step, flags};
    return entry;
  }
  void Put() {
    pending_.entry->flags |= static_cast<uint8_t>(pending_.flags);
    ::io_uring_sqe_set_data64(pending_.entry, pending_.data);
  }

  void Submit(int number, Slot& slot) {
    const auto place = static_cast<unsigned>(number);
    const bool chain = slot.fd < 0;
    const bool forget = options_.cold && !options_.direct;
    const unsigned table = chain ? IOSQE_FIXED_FILE : 0;
    const int file = chain ? number : slot.fd;
    if (chain) {
      // The table of the ring takes no O_CLOEXEC: a file there has no number that a child could inherit.
      ::io_uring_prep_openat_direct(Entry(number, kOpen, IOSQE_IO_LINK), AT_FDCWD, slot.sample->path.c_str(),
                                    O_RDONLY | (options_.direct ? O_DIRECT : 0), 0, place);
      Put();
      ++slot.left;
    }
    std::byte* const buffer = memory_ + place * slot_bytes_;
    const uint64_t at = slot.sample->offset - slot.lead;
    // After a short or failed read the chain must still close the file: a hard link.
    const unsigned link = chain || forget ? IOSQE_IO_HARDLINK : 0;
    io_uring_sqe* const read = Entry(number, kRead, table | link);
    if (fixed_) {
      ::io_uring_prep_read_fixed(read, file, buffer, static_cast<unsigned>(slot.length), at, number);
    } else {
      ::io_uring_prep_read(read, file, buffer, static_cast<unsigned>(slot.length), at);
    }
    Put();
    ++slot.left;
    if (forget) {
      ::io_uring_prep_fadvise(Entry(number, kForget, table | (chain ? IOSQE_IO_HARDLINK : 0)), file,
                              chain ? 0 : at / kPage * kPage,
                              chain ? 0 : static_cast<off_t>(slot.length / kPage * kPage),
                              POSIX_FADV_DONTNEED);
      Put();
      ++slot.left;
    }
    if (chain) {
      ::io_uring_prep_close_direct(Entry(number, kClose, 0), place);
      Put();
      ++slot.left;
    }
  }

  void Take(uint64_t data, int result, Instant now) {
    Slot& slot = slots_[data / kSteps];
    ReadMoments& moments = slot.moments;
    --slot.left;
    const auto step = static_cast<Step>(data % kSteps);
    if (result < 0 && result != -ECANCELED && step != kForget && slot.error == 0) slot.error = -result;
    if (step == kOpen) moments.opened = moments.began = now;
    if (step == kRead) {
      moments.read = moments.closing = now;
      slot.got = result;
    }
    if (step == kForget) moments.closing = now;
    moments.closed = now;
  }

  ReadDone Finish(size_t number) {
    const Slot slot = std::exchange(slots_[number], Slot());
    ReadDone done{.slot = static_cast<int>(number)};
    const StorageSample& sample = *slot.sample;
    if (slot.error != 0) {
      done.read = FailErrno(EscapeBytes(sample.path), slot.error);
      return done;
    }
    const auto got = static_cast<uint64_t>(std::max<int64_t>(0, slot.got));
    if (got < sample.bytes + slot.lead) {
      done.read = ShortRead(sample, got - std::min(got, slot.lead));
      return done;
    }
    ReadMoments moments = slot.moments;
    moments.bytes = sample.bytes;
    if (options_.added > Duration{}) {
      SleepUntil(moments.read + options_.added);
      const Duration late = clock_.Now() - moments.closed;
      for (Instant* const moment : {&moments.read, &moments.closing, &moments.closed})
        *moment += std::max(Duration{}, late);
    }
    if (options_.verify) {
      if (const Status right = VerifySample(sample, memory_ + number * slot_bytes_ + slot.lead); !right) {
        done.read = std::unexpected(right.error());
        return done;
      }
    }
    done.read = moments;
    return done;
  }

  const ReadOptions options_;
  const Clock& clock_;
  io_uring ring_{};
  bool ready_ = false, fixed_ = false;
  std::byte* memory_ = nullptr;
  size_t slot_bytes_ = 0;
  std::vector<Slot> slots_;
  OpenFiles files_;  // shards
  uint64_t looks_ = 0;
  struct {
    io_uring_sqe* entry = nullptr;
    uint64_t data = 0;
    unsigned flags = 0;
  } pending_;
};

}  // namespace

Result<std::unique_ptr<SampleReader>> MakeUringReader(const ReadOptions& options, const Clock& clock) {
  if (options.most_bytes > kMostBytes)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("--access io_uring reads samples up to {} bytes; use --access pool", kMostBytes));
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  auto reader = std::make_unique<UringReader>(options, clock);
  TRY_STATUS(reader->Start());
  return reader;
}

}  // namespace weir::probe
