#include "run/assembly.h"

#include <algorithm>
#include <utility>

namespace weir::run {

Assembly::Assembly(const Clock& clock, Options options) : clock_(clock), options_(options) {
  CHECK(options_.batch >= 1 && options_.buffers >= 1 && options_.in_flight >= 1 && options_.window >= 1);
  MutexLock lock(mutex_);
  for (int i = 0; i < options_.buffers; ++i) {
    auto batch = std::make_unique<Batch>();
    batch->buffer = options_.make_memory(options_.item_bytes * static_cast<size_t>(options_.batch));
    free_.push_back(std::move(batch));
  }
}

bool Assembly::HasRoom() const {
  int slots = static_cast<int>(free_.size()) * options_.batch;
  if (!filling_.empty()) slots += options_.batch - filling_.back().claimed;
  return slots > reserved_;
}

std::optional<int64_t> Assembly::Next() {
  MutexLock lock(mutex_);
  while (!Exhausted() && (WindowClosed() || !HasRoom())) changed_.Wait(mutex_);
  if (Exhausted()) return std::nullopt;
  active_ += 1;
  reserved_ += 1;
  return next_++;
}

Assembly::ClaimedSlot Assembly::Claim(int64_t index) {
  MutexLock lock(mutex_);
  if (filling_.empty() || filling_.back().claimed == options_.batch) {
    CHECK(!free_.empty());
    filling_.push_back({.batch = std::move(free_.back())});
    free_.pop_back();
    filling_.back().batch->slots.resize(static_cast<size_t>(options_.batch));
    filling_.back().batch->files.resize(static_cast<size_t>(options_.batch));
  }
  Filling& open = filling_.back();
  const auto slot = static_cast<size_t>(open.claimed++);
  reserved_ -= 1;
  open.batch->slots[slot].index = index;
  return {.batch = open.batch.get(),
          .slot = slot,
          .data = open.batch->buffer.mutable_data() + slot * options_.item_bytes};
}

void Assembly::Commit(const ClaimedSlot& claimed, const Stamps& stamps) {
  MutexLock lock(mutex_);
  claimed.batch->slots[claimed.slot].stamps = stamps;
  const auto filling =
      std::ranges::find_if(filling_, [&](const Filling& f) { return f.batch.get() == claimed.batch; });
  CHECK(filling != filling_.end());
  filling->committed += 1;
  if (filling->committed == options_.batch) {
    Wait(std::move(filling->batch));
    filling_.erase(filling);
  }
  EndOne();
}

void Assembly::Reject() {
  MutexLock lock(mutex_);
  reserved_ -= 1;
  EndOne();
}

void Assembly::EndOne() {
  active_ -= 1;
  SendPartBatch();
  changed_.NotifyAll();
}

// When nobody can add to the open batch any more it goes as it is.
void Assembly::SendPartBatch() {
  if (active_ > 0 || filling_.empty() || !(Exhausted() || WindowClosed())) return;
  Filling& open = filling_.back();
  open.batch->slots.resize(static_cast<size_t>(open.committed));
  open.batch->files.resize(static_cast<size_t>(open.committed));
  Wait(std::move(open.batch));
  filling_.pop_back();
  CHECK(filling_.empty());
}

BatchPtr Assembly::Borrow() {
  MutexLock lock(mutex_);
  while (!stopped_ && free_.empty()) changed_.Wait(mutex_);
  if (stopped_) return nullptr;
  BatchPtr batch = std::move(free_.back());
  free_.pop_back();
  return batch;
}

void Assembly::Push(BatchPtr batch) {
  MutexLock lock(mutex_);
  Wait(std::move(batch));
}

void Assembly::Wait(BatchPtr batch) {
  waiting_.push_back(std::move(batch));
  if (flying_ == options_.in_flight && !held_since_) held_since_ = clock_.Now();
}

BatchPtr Assembly::TakeDue() {
  MutexLock lock(mutex_);
  if (waiting_.empty() || flying_ == options_.in_flight) return nullptr;
  BatchPtr batch = std::move(waiting_.front());
  waiting_.pop_front();
  flying_ += 1;
  if (held_since_ && waiting_.empty()) held_back_ += clock_.Now() - *std::exchange(held_since_, std::nullopt);
  return batch;
}

void Assembly::Answered() {
  MutexLock lock(mutex_);
  flying_ -= 1;
}

void Assembly::Release(BatchPtr batch) {
  MutexLock lock(mutex_);
  batch->slots.clear();
  batch->files.clear();
  free_.push_back(std::move(batch));
  changed_.NotifyAll();
}

void Assembly::Finished(int64_t count) {
  MutexLock lock(mutex_);
  const bool closed = WindowClosed();
  finished_ += count;
  if (closed) changed_.NotifyAll();
}

void Assembly::Stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
  SendPartBatch();
  changed_.NotifyAll();
}

int64_t Assembly::Begun() const {
  MutexLock lock(mutex_);
  return next_;
}

Duration Assembly::HeldBack() const {
  MutexLock lock(mutex_);
  return held_back_;
}

}  // namespace weir::run
