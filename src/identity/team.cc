#include "identity/team.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "base/thread.h"

namespace weir::identity {

Team::Team(int workers) {
  for (int i = 1; i < workers; ++i) {
    const auto worker = static_cast<size_t>(i);
    threads_.push_back(StartThread("look-up-" + std::to_string(i),
                                   [this, worker](const std::stop_token&) { Serve(worker); }));
  }
}

Team::~Team() {
  MutexLock lock(mutex_);
  stopped_ = true;
  changed_.NotifyAll();
}

void Team::Serve(size_t worker) {
  uint64_t seen = 0;
  for (;;) {
    const std::function<void(size_t)>* work = nullptr;
    {
      MutexLock lock(mutex_);
      while (!stopped_ && (work_ == nullptr || round_ == seen)) changed_.Wait(mutex_);
      if (stopped_) return;
      seen = round_;
      work = work_;
      ++running_;
    }
    (*work)(worker);
    MutexLock lock(mutex_);
    if (--running_ == 0) finished_.NotifyAll();
  }
}

void Team::Run(const std::function<void(size_t)>& work) {
  bool ours = false;
  if (!threads_.empty()) {
    MutexLock lock(mutex_);
    ours = !busy_;
    if (ours) {
      busy_ = true;
      work_ = &work;
      ++round_;
      changed_.NotifyAll();
    }
  }
  work(0);
  if (!ours) return;
  MutexLock lock(mutex_);
  work_ = nullptr;  // a worker that has not begun finds nothing to do
  while (running_ > 0) finished_.Wait(mutex_);
  busy_ = false;
}

void Team::ForEachPart(size_t count, size_t part, const std::function<void(size_t, size_t)>& work) {
  std::atomic<size_t> next{0};
  Run([&](size_t) {
    for (size_t begin = next.fetch_add(part); begin < count; begin = next.fetch_add(part))
      work(begin, std::min(begin + part, count));
  });
}

}  // namespace weir::identity
