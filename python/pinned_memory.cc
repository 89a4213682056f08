#include "pinned_memory.h"

#include <fmt/format.h>

#include <utility>

#include "gpu/objects.h"

namespace weir::python {
namespace {

class PinnedBuffer final : public feed::BatchBuffer {
 public:
  explicit PinnedBuffer(gpu::Memory memory)
      : BatchBuffer(memory.host(), memory.size()), memory_(std::move(memory)) {}

 private:
  const gpu::Memory memory_;
};

class PinnedBatches final : public feed::BatchMemory {
 public:
  explicit PinnedBatches(gpu::ContextPtr context) : context_(std::move(context)) {}
  Result<std::unique_ptr<feed::BatchBuffer>> Allocate(size_t size) override {
    return std::make_unique<PinnedBuffer>(TRY(gpu::Memory::Pinned(context_, size)));
  }

 private:
  const gpu::ContextPtr context_;
};

}  // namespace

Result<std::shared_ptr<feed::BatchMemory>> PinnedMemory(int ordinal) {
  gpu::DriverPtr driver = TRY_CONTEXT(gpu::Driver::Open(), "pin_memory");
  const auto devices = std::ssize(driver->devices());
  if (ordinal < 0 || ordinal >= devices) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("pin_memory: there is no cuda:{}: the driver has {} GPUs", ordinal, devices));
  }
  return std::make_shared<PinnedBatches>(TRY(gpu::Context::Retain(std::move(driver), ordinal)));
}

}  // namespace weir::python
