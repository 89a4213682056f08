// Memory of a GPU that a client lends by the handle that its CUDA exported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/error.h"
#include "base/mutex.h"
#include "gpu/objects.h"
#include "oip/api.h"

namespace weir::serve {

// Data goes through memory of the host, on either way. Thread-safe: one transfer at a time.
class CudaMemory {
 public:
  // kInvalidArgument for a handle that the driver does not know, a device that is not there, and memory
  // smaller than the region.
  static Result<std::unique_ptr<const CudaMemory>> Open(const gpu::DriverPtr& driver,
                                                        const oip::CudaRegion& region);

  // REQUIRES: the part lies within the region.
  Status Read(uint64_t offset, std::span<std::byte> to) const;
  Status Write(uint64_t offset, std::span<const std::byte> from) const;

 private:
  CudaMemory(gpu::ContextPtr context, gpu::Memory memory, gpu::Stream stream)
      : context_(std::move(context)), memory_(std::move(memory)), stream_(std::move(stream)) {}

  const gpu::ContextPtr context_;
  const gpu::Memory memory_;
  mutable Mutex mutex_;
  const gpu::Stream stream_ GUARDED_BY(mutex_);
};

}  // namespace weir::serve
