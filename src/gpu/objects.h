// Objects on a device: its context, streams, events, memory and kernels. Each keeps what it stands on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "gpu/driver.h"

namespace weir::gpu {

// The primary context of one device, shared with the libraries of this process. Threads wait in it without
// spinning. Thread-safe.
class Context {
 public:
  // `ordinal` must be that of a device.
  static Result<std::shared_ptr<const Context>> Retain(DriverPtr driver, int ordinal);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const { return *driver_; }
  const DeviceFacts& facts() const { return driver_->devices()[static_cast<size_t>(ordinal_)]; }
  int ordinal() const { return ordinal_; }

  // The calling thread computes in it from now on.
  Status MakeCurrent() const;
  bool IsPinned(const void* memory) const;  // whether a GPU can read this memory of the host by itself
  Result<int64_t> FreeMemory() const;       // bytes, as of now
  // Whether the device still answers: the error that is stuck in the context, once one is.
  Status Alive() const;

 private:
  Context(DriverPtr driver, int ordinal) : driver_(std::move(driver)), ordinal_(ordinal) {}
  const DriverPtr driver_;
  const int ordinal_;
  cuda::ContextHandle handle_ = nullptr;
};
using ContextPtr = std::shared_ptr<const Context>;

// Device memory, or memory of the host that the device reads and writes by itself. Movable.
class Memory {
 public:
  static Result<Memory> OnDevice(ContextPtr context, size_t bytes);
  static Result<Memory> Pinned(ContextPtr context, size_t bytes);
  // Memory of another process, by the handle that it exported. kInvalidArgument where it is none, and where
  // the memory has fewer than `bytes`.
  static Result<Memory> OfOthers(ContextPtr context, const cuda::IpcMemory& handle, size_t bytes);
  Memory() = default;
  ~Memory() { Release(); }
  Memory(Memory&& other) noexcept { *this = std::move(other); }
  Memory& operator=(Memory&& other) noexcept;

  size_t size() const { return size_; }
  cuda::Address address() const { return address_; }  // of device memory
  std::byte* host() const { return host_; }           // of pinned memory

 private:
  void Release();
  ContextPtr context_;
  size_t size_ = 0;
  cuda::Address address_ = 0;
  std::byte* host_ = nullptr;
  bool is_foreign_ = false;
};

// An order of work on a device, and the moments between its parts. One thread at a time; movable.
class Stream {
 public:
  // `marks`: the number of moments that Mark can keep.
  static Result<Stream> Create(ContextPtr context, size_t marks);
  Stream() = default;
  ~Stream() { Release(); }
  Stream(Stream&& other) noexcept { *this = std::move(other); }
  Stream& operator=(Stream&& other) noexcept;

  cuda::StreamHandle handle() const { return handle_; }
  // `at`: the first byte of the device memory. REQUIRES: at + bytes <= its size.
  Status Upload(const Memory& to, const std::byte* from, size_t bytes, size_t at = 0) const;
  Status Download(std::byte* to, const Memory& from, size_t bytes, size_t at = 0) const;
  Status Mark(size_t mark) const;  // the work so far ends here
  Status Wait(size_t mark) const;  // blocks, without spinning, until the device has got there
  Result<Duration> Between(size_t from, size_t to) const;  // both reached; to half a microsecond

 private:
  void Release();
  ContextPtr context_;
  cuda::StreamHandle handle_ = nullptr;
  std::vector<cuda::EventHandle> marks_;
};

// A kernel of a module in PTX, which the driver compiles for its device. Movable.
class Kernel {
 public:
  static Result<Kernel> Load(ContextPtr context, const std::string& ptx, const std::string& function);
  Kernel() = default;
  ~Kernel() { Release(); }
  Kernel(Kernel&& other) noexcept { *this = std::move(other); }
  Kernel& operator=(Kernel&& other) noexcept;

  // `parameters` point to the arguments, in their order. `threads` in all, in blocks of 256.
  Status Launch(const Stream& stream, uint64_t threads, std::vector<void*> parameters) const;

 private:
  void Release();
  ContextPtr context_;
  cuda::ModuleHandle module_ = nullptr;
  cuda::FunctionHandle function_ = nullptr;
};

}  // namespace weir::gpu
