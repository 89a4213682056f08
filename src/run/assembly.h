// Pictures to batches, with bounded memory: who may load the next picture, where it is put, when a batch
// goes, and when one must wait.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/mutex.h"
#include "run/stages.h"

namespace weir::run {

// A batch on its way. It belongs to the Assembly's pool and comes back by Release.
struct Batch {
  struct Slot {
    int64_t index = 0;  // of the picture, in the order of the input
    Stamps stamps;
  };
  Bytes buffer;              // the items of the input tensor, one after the other
  std::vector<Bytes> files;  // or, where a picture goes as it is, one for each slot
  std::vector<Slot> slots;
};
using BatchPtr = std::unique_ptr<Batch>;

// Thread-safe. Loaders call Next, then Claim and Commit, or Reject, once for each index they were given.
// After Commit, Reject, Answered, Push and Stop the caller submits what TakeDue gives, until it gives
// nothing.
//
// Memory: `buffers` batches. A loader gets an index only with a slot kept for it, so slots can't run out
// under it. A picture that takes long holds back what comes after it by at most `window` pictures; then a
// part batch goes rather than wait for pictures that can't come.
class Assembly {
 public:
  struct Options {
    int64_t pictures = 0;      // in all
    int batch = 1;             // pictures a batch
    size_t item_bytes = 0;     // of one picture in the input tensor; 0: batches bring their own memory
    int buffers = 2;           // batches being filled, waiting or in flight
    int in_flight = 1;         // batches submitted and not yet answered
    int64_t window = 1 << 16;  // pictures begun and not yet finished in order
    std::function<Bytes(size_t)> make_memory = Bytes::AllocateUninitialized;  // of a batch
  };
  Assembly(const Clock& clock, Options options);

  // The index of the next picture to load; nothing at the end, or once stopped. Blocks while there is no
  // room.
  std::optional<int64_t> Next();

  struct ClaimedSlot {
    Batch* batch = nullptr;
    size_t slot = 0;
    std::byte* data = nullptr;  // item_bytes, the caller's to fill; or batch->files[slot]
  };
  ClaimedSlot Claim(int64_t index);  // never blocks
  void Commit(const ClaimedSlot& claimed, const Stamps& stamps);
  void Reject();

  // For batches made beforehand: an empty one (nothing once stopped; blocks while all are on their way), and
  // its way in.
  BatchPtr Borrow();
  void Push(BatchPtr batch);

  BatchPtr TakeDue();  // a full batch, counted as in flight from now on; none while `in_flight` are
  void Answered();     // one less is in flight
  void Release(BatchPtr batch);
  void Finished(int64_t count);  // so many pictures are finished, in order
  void Stop();                   // no new pictures; what was begun is finished

  int64_t Begun() const;  // pictures handed out so far
  // Time during which a full batch was held back only because `in_flight` others were on their way.
  Duration HeldBack() const;

 private:
  struct Filling {
    BatchPtr batch;
    int claimed = 0;
    int committed = 0;
  };
  bool Exhausted() const REQUIRES(mutex_) { return stopped_ || next_ >= options_.pictures; }
  bool WindowClosed() const REQUIRES(mutex_) { return next_ - finished_ >= options_.window; }
  bool HasRoom() const REQUIRES(mutex_);
  void Wait(BatchPtr batch) REQUIRES(mutex_);
  void SendPartBatch() REQUIRES(mutex_);
  void EndOne() REQUIRES(mutex_);

  const Clock& clock_;
  const Options options_;

  mutable Mutex mutex_;
  CondVar changed_;
  int64_t next_ GUARDED_BY(mutex_) = 0;
  int64_t finished_ GUARDED_BY(mutex_) = 0;
  bool stopped_ GUARDED_BY(mutex_) = false;
  int active_ GUARDED_BY(mutex_) = 0;    // loaders between Next and Commit or Reject
  int reserved_ GUARDED_BY(mutex_) = 0;  // of those, the ones that have not claimed their slot
  int flying_ GUARDED_BY(mutex_) = 0;
  std::vector<BatchPtr> free_ GUARDED_BY(mutex_);
  std::deque<Filling> filling_ GUARDED_BY(mutex_);  // the last one may have slots left
  std::deque<BatchPtr> waiting_ GUARDED_BY(mutex_);
  std::optional<Instant> held_since_ GUARDED_BY(mutex_);
  Duration held_back_ GUARDED_BY(mutex_){};
};

}  // namespace weir::run
