#include "base/short_slice.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace weir {

void WantShortSlice() {
  struct {
    uint32_t size = 48, policy = 0;
    uint64_t flags = 0;
    int32_t nice = 0;
    uint32_t priority = 0;
    uint64_t runtime = 100'000, deadline = 0, period = 0;
  } wish;
  wish.nice = ::getpriority(PRIO_PROCESS, 0);
  ::syscall(SYS_sched_setattr, 0, &wish, 0U);
}

}  // namespace weir
