#include "http/work_pool.h"

#include <fmt/format.h>

#include <utility>

#include "base/thread.h"

namespace weir::http {

WorkPool::WorkPool(Options options) : max_waiting_(options.max_waiting) {
  for (int i = 0; i < options.threads; ++i) {
    threads_.push_back(StartThread(fmt::format("{}-{}", options.name, i),
                                   [this](const std::stop_token& stop) { Run(stop); }));
  }
}

bool WorkPool::Offer(Work& work) {
  {
    MutexLock lock(mutex_);
    if (stopped_ || waiting_.size() >= max_waiting_) return false;
    waiting_.push_back(std::move(work));
  }
  changed_.NotifyOne();
  return true;
}

void WorkPool::Stop() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    for (std::jthread& thread : threads_) thread.request_stop();
  }
  changed_.NotifyAll();
  threads_.clear();
}

void WorkPool::Run(const std::stop_token& stop) {
  while (true) {
    Work work;
    {
      MutexLock lock(mutex_);
      while (waiting_.empty() && !stop.stop_requested()) changed_.Wait(mutex_);
      if (waiting_.empty()) return;
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    work();
  }
}

}  // namespace weir::http
