#include "serve/guarded_copy.h"

#include <setjmp.h>
#include <signal.h>

#include <cstring>
#include <mutex>

namespace weir::serve {
namespace {

// Of the copy that this thread is in; null outside of one.
thread_local sigjmp_buf* copying = nullptr;
struct sigaction previous;  // set once, before any copy

void OnBusError(int signal, siginfo_t* info, void* context) {
  if (copying != nullptr) siglongjmp(*copying, 1);
  // Not ours: what would have happened without us happens when the instruction is tried again.
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal, info, context);
  } else {
    sigaction(SIGBUS, &previous, nullptr);
  }
}

}  // namespace

void GuardCopies() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = OnBusError;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &previous);
  });
}

bool GuardedCopy(void* to, const void* from, size_t size) {
  if (size == 0) return true;
  sigjmp_buf back;
  if (sigsetjmp(back, 1) != 0) {  // the jump out of the handler unblocks what it blocked
    copying = nullptr;
    return false;
  }
  copying = &back;
  // The compiler must not move the copy out of the guard.
  asm volatile("" ::: "memory");
  std::memcpy(to, from, size);
  asm volatile("" ::: "memory");
  copying = nullptr;
  return true;
}

}  // namespace weir::serve
