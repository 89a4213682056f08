#include "serve/guarded_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>

namespace weir::serve {
namespace {

// A table for the signal handler, which may take no lock and may run at any moment in any thread.
struct Place {
  std::atomic<uintptr_t> begin = 0;  // 0: free; kTaken: being filled
  std::atomic<uintptr_t> end = 0;
  std::atomic<bool> cut = false;
};
constexpr uintptr_t kTaken = 1;
std::array<Place, 8192> places;

struct sigaction previous;
uintptr_t page_size = 0;

// Zeros take the place of the rest of the mapping, and the instruction is tried again. (A bare system call,
// as safe in a handler as those that POSIX lists.)
bool Replace(Place& place, uintptr_t address) {
  const uintptr_t begin = place.begin, end = place.end;
  if (begin <= kTaken || address < begin || address >= end) return false;
  place.cut = true;
  const uintptr_t page = address - address % page_size;
  const int kept = errno;
  void* const zeros = ::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ | PROT_WRITE,
                             MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  errno = kept;
  return zeros != MAP_FAILED;
}

void OnBusError(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (Place& place : places) {
    if (Replace(place, address)) return;
  }
  // Not ours: what would have happened without us happens when the instruction is tried again.
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal, info, context);
  } else {
    sigaction(SIGBUS, &previous, nullptr);
  }
}

void HandleBusErrors() {
  static std::once_flag once;
  std::call_once(once, [] {
    page_size = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action = {};
    action.sa_sigaction = OnBusError;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &previous);
  });
}

}  // namespace

Result<std::shared_ptr<const GuardedMemory>> GuardedMemory::Own(void* data, size_t size) {
  HandleBusErrors();
  for (size_t number = 0; number < places.size(); ++number) {
    uintptr_t free = 0;
    if (!places[number].begin.compare_exchange_strong(free, kTaken)) continue;
    const auto begin = reinterpret_cast<uintptr_t>(data);
    places[number].cut = false;
    places[number].end = begin + size;
    places[number].begin = begin;
    return std::shared_ptr<const GuardedMemory>(
        new GuardedMemory(number, static_cast<std::byte*>(data), size));
  }
  ::munmap(data, size);
  return Fail(ErrorCode::kOverloaded, "too much memory of clients is in use");
}

GuardedMemory::~GuardedMemory() {
  places[number_].begin = kTaken;  // the addresses are somebody else's from here on
  ::munmap(data_, size_);
  places[number_].begin = 0;
}

bool GuardedMemory::IsCut() const { return places[number_].cut; }

}  // namespace weir::serve
