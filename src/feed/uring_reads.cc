#include "feed/uring_reads.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <liburing.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "dataset/source.h"

namespace weir::feed {
namespace {

constexpr uint64_t kWakeUp = UINT64_MAX;  // the number of the ring's own read

class UringReads final : public SampleReads {
 public:
  UringReads(int depth, std::function<FilePlace(int64_t)> place_of)
      : place_of_(std::move(place_of)), slots_(static_cast<size_t>(depth)) {
    for (size_t i = slots_.size(); i > 0; --i) free_.push_back(i - 1);
  }
  ~UringReads() override {
    if (thread_.joinable()) {
      {
        const MutexLock lock(mutex_);
        stopping_ = true;
      }
      Wake();
      thread_.join();
    }
    if (ready_) ::io_uring_queue_exit(&ring_);
  }

  Status Begin() {
    const int made = ::io_uring_queue_init(static_cast<unsigned>(slots_.size()) + 1, &ring_, 0);
    if (made < 0) {
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("io_uring: {}: this system or container forbids it; read without it "
                              "(reads 0), or with more threads",
                              std::strerror(-made)));
    }
    ready_ = true;
    wake_ = UniqueFd(::eventfd(0, EFD_CLOEXEC));
    if (wake_.get() < 0) return FailErrno("eventfd", errno);
    thread_ = StartThread("feed-read", [this](const std::stop_token&) { Work(); });
    return {};
  }

  void Start(int64_t sample, Done done) override {
    bool wake = false;
    {
      const MutexLock lock(mutex_);
      wake = inbox_.empty() && asleep_;
      inbox_.push_back({sample, std::move(done)});
    }
    if (wake) Wake();
  }

 private:
  struct Wanted {
    int64_t sample = 0;
    Done done;
  };
  // One read under way: first the file is opened, then read until it ends.
  struct Slot {
    Wanted wanted;
    FilePlace place;
    UniqueFd opened;
    Bytes bytes;
    size_t got = 0;
    bool is_open = false;
  };

  void Wake() const {
    const uint64_t one = 1;
    while (::write(wake_.get(), &one, sizeof one) < 0 && errno == EINTR) {
    }
  }

  io_uring_sqe* Entry() {
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
    if (entry == nullptr) {  // more than the queue holds before the kernel takes them
      ::io_uring_submit(&ring_);
      entry = ::io_uring_get_sqe(&ring_);
    }
    CHECK(entry != nullptr);
    return entry;
  }

  void ArmWakeUp() {
    io_uring_sqe* const entry = Entry();
    ::io_uring_prep_read(entry, wake_.get(), &woken_, sizeof woken_, 0);
    ::io_uring_sqe_set_data64(entry, kWakeUp);
  }

  void Work() {
    ArmWakeUp();
    std::deque<Wanted> wanted;
    size_t under_way = 0;
    while (true) {
      bool stopping = false;
      {
        const MutexLock lock(mutex_);
        for (Wanted& one : inbox_) wanted.push_back(std::move(one));
        inbox_.clear();
        stopping = stopping_;
        asleep_ = true;
      }
      if (stopping && under_way == 0) return;
      for (; !stopping && !wanted.empty() && !free_.empty(); wanted.pop_front(), ++under_way)
        BeginRead(std::move(wanted.front()));
      const int waited = ::io_uring_submit_and_wait(&ring_, 1);
      CHECK(waited >= 0 || waited == -EINTR || waited == -EAGAIN || waited == -EBUSY);
      {
        const MutexLock lock(mutex_);
        asleep_ = false;
      }
      io_uring_cqe* come = nullptr;
      while (::io_uring_peek_cqe(&ring_, &come) == 0) {
        const uint64_t number = ::io_uring_cqe_get_data64(come);
        const int result = come->res;
        ::io_uring_cqe_seen(&ring_, come);
        if (number == kWakeUp) {
          ArmWakeUp();
        } else if (Continue(static_cast<size_t>(number), result, stopping)) {
          --under_way;
        }
      }
    }
  }

  void BeginRead(Wanted wanted) {
    const size_t number = free_.back();
    free_.pop_back();
    Slot& slot = slots_[number];
    slot = {};
    slot.wanted = std::move(wanted);
    slot.place = place_of_(slot.wanted.sample);
    if (slot.place.fd < 0) {
      io_uring_sqe* const entry = Entry();
      // As dataset::OpenRegularFile: a pipe must not block.
      ::io_uring_prep_openat(entry, AT_FDCWD, slot.place.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
      ::io_uring_sqe_set_data64(entry, number);
      return;
    }
    slot.is_open = true;
    slot.bytes = Bytes::AllocateUninitialized(slot.place.bytes);
    ReadOn(number);
  }

  void ReadOn(size_t number) {
    Slot& slot = slots_[number];
    io_uring_sqe* const entry = Entry();
    constexpr size_t kAtOnce = 1 << 30;
    ::io_uring_prep_read(entry, slot.opened.get() >= 0 ? slot.opened.get() : slot.place.fd,
                         slot.bytes.mutable_data() + slot.got,
                         static_cast<unsigned>(std::min(slot.bytes.size() - slot.got, kAtOnce)),
                         static_cast<uint64_t>(slot.place.offset) + slot.got);
    ::io_uring_sqe_set_data64(entry, number);
  }

  // Takes the result of a slot's last step. Returns whether the read has ended.
  bool Continue(size_t number, int result, bool stopping) {
    Slot& slot = slots_[number];
    const std::string& path = slot.place.path;
    const auto refuse = [&](int error) {
      return End(number, std::unexpected(image::RejectOf(FailErrno(path, error).error(), path)), stopping);
    };
    if (result == -EINTR || result == -EAGAIN) {
      if (slot.is_open) {
        ReadOn(number);
        return false;
      }
      return refuse(-result);
    }
    if (result < 0) return refuse(-result);
    if (!slot.is_open) {
      slot.is_open = true;
      slot.opened = UniqueFd(result);
      struct stat facts{};
      if (::fstat(result, &facts) != 0) return refuse(errno);
      if (!S_ISREG(facts.st_mode)) {
        return End(number,
                   std::unexpected(image::Reject{image::RejectReason::kNotAFile, "not a regular file"}),
                   stopping);
      }
      if (facts.st_size > static_cast<int64_t>(dataset::kMaxFileBytes)) {
        return End(number,
                   std::unexpected(image::Reject{
                       image::RejectReason::kTooManyBytes,
                       fmt::format("{} bytes; the most is {}", facts.st_size, dataset::kMaxFileBytes)}),
                   stopping);
      }
      slot.bytes = Bytes::AllocateUninitialized(static_cast<size_t>(facts.st_size));
      if (facts.st_size == 0 || stopping) return End(number, slot.bytes, stopping);
      ReadOn(number);
      return false;
    }
    slot.got += static_cast<size_t>(result);
    if (result > 0 && slot.got < slot.bytes.size() && !stopping) {
      ReadOn(number);
      return false;
    }
    if (slot.got < slot.bytes.size() && slot.opened.get() < 0) {
      return End(number,
                 std::unexpected(image::Reject{image::RejectReason::kVanished, "its shard became shorter"}),
                 stopping);
    }
    return End(number, slot.bytes.Slice(0, slot.got), stopping);
  }

  bool End(size_t number, image::Accepted<Bytes> bytes, bool stopping) {
    Slot& slot = slots_[number];
    Done done = std::move(slot.wanted.done);
    slot = {};
    free_.push_back(number);
    if (!stopping) done(std::move(bytes));
    return true;
  }

  const std::function<FilePlace(int64_t)> place_of_;
  io_uring ring_{};
  bool ready_ = false;
  UniqueFd wake_;
  uint64_t woken_ = 0;
  // The ring's thread alone.
  std::vector<Slot> slots_;
  std::vector<size_t> free_;

  Mutex mutex_;
  std::vector<Wanted> inbox_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool asleep_ GUARDED_BY(mutex_) = true;
  std::jthread thread_;
};

}  // namespace

Result<std::unique_ptr<SampleReads>> MakeUringReads(int depth,
                                                    std::function<FilePlace(int64_t sample)> place_of) {
  auto reads = std::make_unique<UringReads>(depth, std::move(place_of));
  TRY_STATUS(reads->Begin());
  return reads;
}

}  // namespace weir::feed
