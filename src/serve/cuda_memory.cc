#include "serve/cuda_memory.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace weir::serve {
namespace {

constexpr size_t kEnd = 0, kMarks = 1;

}  // namespace

Result<std::unique_ptr<const CudaMemory>> CudaMemory::Open(const gpu::DriverPtr& driver,
                                                           const oip::CudaRegion& region) {
  gpu::cuda::IpcMemory handle = {};
  if (region.handle.size() != sizeof handle.bytes) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("its handle has {} bytes instead of {}: give that of cudaIpcGetMemHandle",
                            region.handle.size(), sizeof handle.bytes));
  }
  if (region.byte_size == 0) return Fail(ErrorCode::kInvalidArgument, "byte_size is 0");
  if (region.device < 0 || region.device >= std::ssize(driver->devices())) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("there is no device {}: this server sees {}", region.device,
                            driver->devices().size() == 1
                                ? "device 0 alone"
                                : fmt::format("devices 0 to {}", driver->devices().size() - 1)));
  }
  std::memcpy(handle.bytes, region.handle.data(), sizeof handle.bytes);
  auto context = TRY(gpu::Context::Retain(driver, static_cast<int>(region.device)));
  auto memory = TRY(gpu::Memory::OfOthers(context, handle, region.byte_size));
  auto stream = TRY(gpu::Stream::Create(context, kMarks));
  return std::unique_ptr<const CudaMemory>(
      new CudaMemory(std::move(context), std::move(memory), std::move(stream)));
}

Status CudaMemory::Read(uint64_t offset, std::span<std::byte> to) const {
  TRY_STATUS(context_->MakeCurrent());
  MutexLock lock(mutex_);
  TRY_STATUS(stream_.Download(to.data(), memory_, to.size(), offset));
  TRY_STATUS(stream_.Mark(kEnd));
  return stream_.Wait(kEnd);
}

Status CudaMemory::Write(uint64_t offset, std::span<const std::byte> from) const {
  TRY_STATUS(context_->MakeCurrent());
  MutexLock lock(mutex_);
  TRY_STATUS(stream_.Upload(memory_, from.data(), from.size(), offset));
  TRY_STATUS(stream_.Mark(kEnd));
  return stream_.Wait(kEnd);
}

}  // namespace weir::serve
