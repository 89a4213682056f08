#include "feed/batch.h"

#include <sys/mman.h>

#include <cerrno>

namespace weir::feed {
namespace {

class AnonymousBuffer final : public BatchBuffer {
 public:
  AnonymousBuffer(void* at, size_t size) : BatchBuffer(static_cast<std::byte*>(at), size) {}
  ~AnonymousBuffer() override { ::munmap(data(), size()); }
};

class AnonymousMemory final : public BatchMemory {
 public:
  Result<std::unique_ptr<BatchBuffer>> Allocate(size_t size) override {
    void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return FailErrno("memory for a batch", errno);
    ::madvise(at, size, MADV_HUGEPAGE);
    return std::make_unique<AnonymousBuffer>(at, size);
  }
};

}  // namespace

std::shared_ptr<BatchMemory> ProcessMemory() { return std::make_shared<AnonymousMemory>(); }

}  // namespace weir::feed
