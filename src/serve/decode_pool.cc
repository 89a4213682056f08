#include "serve/decode_pool.h"

#include <fmt/format.h>

#include "base/thread.h"

namespace weir::serve {

DecodePool::DecodePool(int threads, size_t max_waiting) : max_waiting_(max_waiting) {
  for (int i = 0; i < threads; ++i) {
    threads_.push_back(
        StartThread(fmt::format("decode-{}", i), [this](const std::stop_token& stop) { Run(stop); }));
  }
}

DecodePool::~DecodePool() {
  {
    MutexLock lock(mutex_);
    for (std::jthread& thread : threads_) thread.request_stop();
  }
  changed_.NotifyAll();
  threads_.clear();
}

bool DecodePool::Offer(const std::shared_ptr<Work>& work) {
  {
    MutexLock lock(mutex_);
    if (waiting_.size() >= max_waiting_) return false;
    waiting_.push_back(work);
  }
  if (work->pieces() > 1) {
    changed_.NotifyAll();
  } else {
    changed_.NotifyOne();
  }
  return true;
}

void DecodePool::Run(const std::stop_token& stop) {
  while (true) {
    std::shared_ptr<Work> work;
    size_t piece = 0;
    {
      MutexLock lock(mutex_);
      while (waiting_.empty() && !stop.stop_requested()) changed_.Wait(mutex_);
      if (waiting_.empty()) return;
      work = waiting_.front();
      piece = work->next_++;
      if (work->next_ == work->pieces()) waiting_.pop_front();
    }
    work->Do(piece);
    if (work->done_.fetch_add(1, std::memory_order_acq_rel) + 1 == work->pieces()) work->Finish();
  }
}

}  // namespace weir::serve
