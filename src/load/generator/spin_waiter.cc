#include "load/generator/spin_waiter.h"

#include <sys/prctl.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weir::load {
namespace {

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace

SpinWaiter::SpinWaiter(const Clock& clock) : clock_(clock) { prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); }

void SpinWaiter::WaitUntil(Instant when) {
  Instant now = clock_.Now();
  if (now >= when) return;
  if (const Duration near = Near(when - now); when - now > near) {
    SleepUntil(when - near);
    now = clock_.Now();
  }
  const Instant begun = now;
  while (now < when) {
    Pause();
    now = clock_.Now();
  }
  spun_ += now - begun;
}

}  // namespace weir::load
