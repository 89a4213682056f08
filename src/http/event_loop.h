// An event loop for the sockets, the timers and the posted work of one thread. The server runs on
// Boost.Asio's loop, which arms every wait for bytes by a system call; here a socket is registered once,
// which spares a load generator one system call at each answer.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/mutex.h"

namespace weir::http {

// All but Post and InLoop are of one thread at a time: the one that runs it, or that will. Timers run on the
// system's, so the clock has to be a real one.
class EventLoop {
 public:
  using Work = std::move_only_function<void()>;

  // At least one of them.
  struct Readiness {
    bool readable = false;  // bytes, the end or an error
    bool writable = false;  // room, or an error
    bool ended = false;     // nothing will come after what has come
    bool urgent = false;    // TCP's urgent data: a read ends before it, and what is behind it is not told of
  };
  class Watcher {
   public:
    virtual ~Watcher() = default;
    // Reports changes since the last call: bytes that were reported and not read are not reported again.
    virtual void OnReady(Readiness ready) = 0;
  };

  // kIo where the process may have no more descriptors.
  static Result<std::unique_ptr<EventLoop>> Create(const Clock& clock);

  // Thread-safe. Runs in its turn, after what was posted before.
  void Post(Work work);
  // Thread-safe. The caller is work of this loop.
  bool InLoop() const;

  // From now on, also of what has come already. The watcher lives for as long as it is watched, and until it
  // has returned. REQUIRES: not watched yet.
  Status Watch(int fd, std::shared_ptr<Watcher> watcher);
  // It is told nothing any more. To be called before `fd` is closed.
  void Forget(int fd);

  using Timer = std::pair<Instant, uint64_t>;
  Timer At(Instant when, Work work);
  void Cancel(Timer timer);  // fine when it has run

  // One piece of work: RunOne waits for it, PollOne does not and says whether there was any.
  void RunOne();
  bool PollOne();

 private:
  using Watched = std::unordered_map<int, std::shared_ptr<Watcher>>;

  EventLoop(const Clock& clock, UniqueFd poll, UniqueFd woken, UniqueFd timer);
  Status Register(int fd, uint32_t events, void* what);
  void Harvest(bool wait);
  bool RunReady();
  bool Tell(const epoll_event& event);
  bool Ring();
  void Arm();

  const Clock& clock_;
  const UniqueFd poll_, woken_, timer_;
  Watched watched_;
  std::array<epoll_event, 64> ready_;
  size_t next_ = 0, count_ = 0;  // of ready_: those to be told
  std::map<Timer, Work> timers_;
  uint64_t made_ = 0;             // timers, ever
  std::optional<Instant> armed_;  // timer_ rings then
  bool ringing_ = false;          // it has; who is due has not all run
  std::vector<Work> turn_;        // of what was posted: what runs before the sockets are asked again
  size_t ran_ = 0;                // of turn_

  Mutex mutex_;
  std::vector<Work> posted_ GUARDED_BY(mutex_);
};

}  // namespace weir::http
