#include "http/event_loop.h"

#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/timespec.h"

namespace weir::http {
namespace {

thread_local const EventLoop* running = nullptr;

class Running {
 public:
  explicit Running(const EventLoop* loop) : before_(std::exchange(running, loop)) {}
  ~Running() { running = before_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  const EventLoop* const before_;
};

}  // namespace

Result<std::unique_ptr<EventLoop>> EventLoop::Create(const Clock& clock) {
  UniqueFd poll(epoll_create1(EPOLL_CLOEXEC));
  if (!poll.valid()) return FailErrno("epoll_create1", errno);
  UniqueFd woken(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!woken.valid()) return FailErrno("eventfd", errno);
  UniqueFd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer.valid()) return FailErrno("timerfd_create", errno);
  std::unique_ptr<EventLoop> loop(new EventLoop(clock, std::move(poll), std::move(woken), std::move(timer)));
  // By edges: neither has to be read for the next one to be told.
  TRY_STATUS(loop->Register(loop->woken_.get(), EPOLLIN, &loop->posted_));
  TRY_STATUS(loop->Register(loop->timer_.get(), EPOLLIN, &loop->timers_));
  return loop;
}

EventLoop::EventLoop(const Clock& clock, UniqueFd poll, UniqueFd woken, UniqueFd timer)
    : clock_(clock), poll_(std::move(poll)), woken_(std::move(woken)), timer_(std::move(timer)) {}

Status EventLoop::Register(int fd, uint32_t events, void* what) {
  epoll_event event{};
  event.events = events | EPOLLET;
  event.data.ptr = what;
  if (epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return FailErrno("epoll_ctl", errno);
  return {};
}

// Who posts from within the loop need not wake it: it looks for more before it waits.
void EventLoop::Post(Work work) {
  bool first = false;
  {
    MutexLock lock(mutex_);
    first = posted_.empty();
    posted_.push_back(std::move(work));
  }
  if (first && !InLoop()) eventfd_write(woken_.get(), 1);
}

bool EventLoop::InLoop() const { return running == this; }

Status EventLoop::Watch(int fd, std::shared_ptr<Watcher> watcher) {
  const auto [at, fresh] = watched_.emplace(fd, std::move(watcher));
  CHECK(fresh);
  const Status registered = Register(fd, EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP, &*at);
  if (!registered) watched_.erase(at);
  return registered;
}

void EventLoop::Forget(int fd) {
  const auto at = watched_.find(fd);
  if (at == watched_.end()) return;
  epoll_ctl(poll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  for (size_t i = next_; i < count_; ++i) {
    if (ready_[i].data.ptr == &*at) ready_[i].data.ptr = nullptr;
  }
  watched_.erase(at);
}

EventLoop::Timer EventLoop::At(Instant when, Work work) {
  const Timer timer(when, ++made_);
  timers_.emplace(timer, std::move(work));
  Arm();
  return timer;
}

void EventLoop::Cancel(Timer timer) { timers_.erase(timer); }

// For the first of them, unless it rings earlier anyway.
void EventLoop::Arm() {
  if (timers_.empty() || ringing_) return;
  const Instant first = timers_.begin()->first.first;
  if (armed_ && *armed_ <= first) return;
  armed_ = first;
  itimerspec at{};
  at.it_value = ToTimespec(std::max<Duration>(first.time_since_epoch(), 1ns));  // 0 would be never
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
}

// One that is due; each may cancel the next.
bool EventLoop::Ring() {
  if (!timers_.empty() && timers_.begin()->first.first <= clock_.Now()) {
    Work work = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    work();
    return true;
  }
  ringing_ = false;
  Arm();
  return false;
}

// False: to nobody.
bool EventLoop::Tell(const epoll_event& event) {
  if (event.data.ptr == nullptr || event.data.ptr == &posted_) return false;
  if (event.data.ptr == &timers_) {
    ringing_ = true;
    armed_.reset();
    return false;
  }
  const std::shared_ptr<Watcher> watcher = static_cast<Watched::value_type*>(event.data.ptr)->second;
  const uint32_t broken = event.events & (EPOLLERR | EPOLLHUP);
  watcher->OnReady({.readable = ((event.events & (EPOLLIN | EPOLLRDHUP)) | broken) != 0,
                    .writable = ((event.events & EPOLLOUT) | broken) != 0,
                    .ended = ((event.events & EPOLLRDHUP) | broken) != 0,
                    .urgent = (event.events & EPOLLPRI) != 0});
  return true;
}

bool EventLoop::RunReady() {
  const Running here(this);
  while (next_ < count_) {
    if (Tell(ready_[next_++])) return true;
  }
  if (ringing_ && Ring()) return true;
  if (ran_ == turn_.size()) return false;
  Work work = std::move(turn_[ran_++]);
  work();
  return true;
}

void EventLoop::Harvest(bool wait) {
  turn_.clear();
  ran_ = 0;
  {
    MutexLock lock(mutex_);
    turn_.swap(posted_);
  }
  const int timeout = wait && turn_.empty() ? -1 : 0;
  const int count = epoll_wait(poll_.get(), ready_.data(), static_cast<int>(ready_.size()), timeout);
  next_ = 0;
  count_ = static_cast<size_t>(std::max(0, count));  // a signal: none
}

void EventLoop::RunOne() {
  while (!RunReady()) Harvest(true);
}

bool EventLoop::PollOne() {
  if (RunReady()) return true;
  Harvest(false);
  return RunReady();
}

}  // namespace weir::http
