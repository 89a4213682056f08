#include "gpu/objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace weir::gpu {
namespace {

std::string At(const ContextPtr& context, std::string_view what) {
  return fmt::format("cuda:{}: {}", context->ordinal(), what);
}

}  // namespace

Result<ContextPtr> Context::Retain(DriverPtr driver, int ordinal) {
  const std::shared_ptr<Context> context(new Context(std::move(driver), ordinal));
  const Driver& api = context->driver();
  const std::string what = fmt::format("cuda:{}", ordinal);
  // Where another library of this process made the context first, it keeps the flags that it has.
  static_cast<void>(api.primary_flags(ordinal, cuda::kBlockingSync));
  TRY_STATUS(api.Check(api.primary_retain(&context->handle_, ordinal), what));
  TRY_STATUS(context->MakeCurrent());
  return context;
}

Context::~Context() {
  if (handle_ != nullptr) static_cast<void>(driver_->primary_release(ordinal_));
}

Status Context::MakeCurrent() const {
  return driver_->Check(driver_->set_current(handle_), fmt::format("cuda:{}", ordinal_));
}

Result<int64_t> Context::FreeMemory() const {
  TRY_STATUS(MakeCurrent());
  size_t free_bytes = 0, all_bytes = 0;
  TRY_STATUS(driver_->Check(driver_->memory_info(&free_bytes, &all_bytes),
                            fmt::format("cuda:{}: its free memory", ordinal_)));
  return static_cast<int64_t>(free_bytes);
}

bool Context::IsPinned(const void* memory) const {
  unsigned type = 0;
  const auto address = reinterpret_cast<cuda::Address>(memory);
  return driver_->pointer_attribute(&type, cuda::kMemoryType, address) == cuda::kSuccess &&
         type == cuda::kHostMemory;
}

Status Context::Alive() const {
  TRY_STATUS(MakeCurrent());
  const cuda::Return error = driver_->synchronize();
  if (!Driver::IsSticky(error)) return {};
  return driver_->Check(error, fmt::format("cuda:{} is lost", ordinal_));
}

Result<Memory> Memory::OnDevice(ContextPtr context, size_t bytes) {
  TRY_STATUS(context->MakeCurrent());
  Memory memory;
  const Driver& api = context->driver();
  TRY_STATUS(api.Check(api.allocate(&memory.address_, std::max<size_t>(1, bytes)),
                       At(context, fmt::format("{} bytes of its memory", bytes))));
  memory.size_ = bytes;
  memory.context_ = std::move(context);
  return memory;
}

Result<Memory> Memory::Pinned(ContextPtr context, size_t bytes) {
  TRY_STATUS(context->MakeCurrent());
  Memory memory;
  const Driver& api = context->driver();
  void* host = nullptr;
  TRY_STATUS(api.Check(api.allocate_host(&host, std::max<size_t>(1, bytes), 0),
                       At(context, fmt::format("{} bytes of pinned memory of the host", bytes))));
  memory.host_ = static_cast<std::byte*>(host);
  memory.size_ = bytes;
  memory.context_ = std::move(context);
  return memory;
}

Result<Memory> Memory::OfOthers(ContextPtr context, const cuda::IpcMemory& handle, size_t bytes) {
  TRY_STATUS(context->MakeCurrent());
  Memory memory;
  const Driver& api = context->driver();
  const Status opened = api.Check(api.ipc_open(&memory.address_, handle, cuda::kLazyPeerAccess),
                                  At(context, "the handle of another process's memory"));
  if (!opened) return Fail(ErrorCode::kInvalidArgument, opened.error().message);
  memory.size_ = bytes;
  memory.is_foreign_ = true;
  memory.context_ = context;
  cuda::Address base = 0;
  size_t there = 0;
  TRY_STATUS(api.Check(api.address_range(&base, &there, memory.address_),
                       At(context, "the size of another process's memory")));
  // The handle is that of a whole allocation.
  if (there < bytes)
    return Fail(
        ErrorCode::kInvalidArgument,
        At(context, fmt::format("the memory of that handle has {} bytes, fewer than {}", there, bytes)));
  return memory;
}

Memory& Memory::operator=(Memory&& other) noexcept {
  if (this == &other) return *this;
  Release();
  context_ = std::exchange(other.context_, nullptr);
  size_ = std::exchange(other.size_, 0);
  address_ = std::exchange(other.address_, 0);
  host_ = std::exchange(other.host_, nullptr);
  is_foreign_ = std::exchange(other.is_foreign_, false);
  return *this;
}

void Memory::Release() {
  if (context_ == nullptr) return;
  const Driver& api = context_->driver();
  static_cast<void>(context_->MakeCurrent());
  if (host_ != nullptr) static_cast<void>(api.free_host(host_));
  if (address_ != 0) static_cast<void>(is_foreign_ ? api.ipc_close(address_) : api.free(address_));
  context_.reset();
}

Result<Stream> Stream::Create(ContextPtr context, size_t marks) {
  TRY_STATUS(context->MakeCurrent());
  const Driver& api = context->driver();
  Stream stream;
  stream.context_ = context;
  TRY_STATUS(api.Check(api.stream_create(&stream.handle_, cuda::kNonBlocking), At(context, "a stream")));
  for (size_t i = 0; i < marks; ++i) {
    cuda::EventHandle event = nullptr;
    TRY_STATUS(api.Check(api.event_create(&event, cuda::kEventBlockingSync), At(context, "an event")));
    stream.marks_.push_back(event);
  }
  return stream;
}

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this == &other) return *this;
  Release();
  context_ = std::exchange(other.context_, nullptr);
  handle_ = std::exchange(other.handle_, nullptr);
  marks_ = std::exchange(other.marks_, {});
  return *this;
}

void Stream::Release() {
  if (context_ == nullptr) return;
  const Driver& api = context_->driver();
  static_cast<void>(context_->MakeCurrent());
  for (const cuda::EventHandle event : marks_) static_cast<void>(api.event_destroy(event));
  if (handle_ != nullptr) static_cast<void>(api.stream_destroy(handle_));
  marks_.clear();
  context_.reset();
}

Status Stream::Upload(const Memory& to, const std::byte* from, size_t bytes, size_t at) const {
  const Driver& api = context_->driver();
  return api.Check(api.upload(to.address() + at, from, bytes, handle_), At(context_, "upload"));
}

Status Stream::Download(std::byte* to, const Memory& from, size_t bytes, size_t at) const {
  const Driver& api = context_->driver();
  return api.Check(api.download(to, from.address() + at, bytes, handle_), At(context_, "download"));
}

Status Stream::Mark(size_t mark) const {
  const Driver& api = context_->driver();
  return api.Check(api.event_record(marks_[mark], handle_), At(context_, "compute"));
}

Status Stream::Wait(size_t mark) const {
  const Driver& api = context_->driver();
  return api.Check(api.event_synchronize(marks_[mark]), At(context_, "compute"));
}

Result<Duration> Stream::Between(size_t from, size_t to) const {
  const Driver& api = context_->driver();
  float milliseconds = 0;
  TRY_STATUS(api.Check(api.event_elapsed(&milliseconds, marks_[from], marks_[to]), At(context_, "compute")));
  return std::chrono::nanoseconds(std::llround(1e6 * static_cast<double>(milliseconds)));
}

Result<Kernel> Kernel::Load(ContextPtr context, const std::string& ptx, const std::string& function) {
  TRY_STATUS(context->MakeCurrent());
  const Driver& api = context->driver();
  Kernel kernel;
  kernel.context_ = context;
  TRY_STATUS(api.Check(api.module_load(&kernel.module_, ptx.c_str()), At(context, "its kernel " + function)));
  TRY_STATUS(api.Check(api.module_function(&kernel.function_, kernel.module_, function.c_str()),
                       At(context, "its kernel " + function)));
  return kernel;
}

Kernel& Kernel::operator=(Kernel&& other) noexcept {
  if (this == &other) return *this;
  Release();
  context_ = std::exchange(other.context_, nullptr);
  module_ = std::exchange(other.module_, nullptr);
  function_ = std::exchange(other.function_, nullptr);
  return *this;
}

void Kernel::Release() {
  if (context_ == nullptr) return;
  static_cast<void>(context_->MakeCurrent());
  if (module_ != nullptr) static_cast<void>(context_->driver().module_unload(module_));
  context_.reset();
}

Status Kernel::Launch(const Stream& stream, uint64_t threads, std::vector<void*> parameters) const {
  constexpr unsigned kBlock = 256;
  const auto blocks = static_cast<unsigned>((threads + kBlock - 1) / kBlock);
  const Driver& api = context_->driver();
  return api.Check(
      api.launch(function_, blocks, 1, 1, kBlock, 1, 1, 0, stream.handle(), parameters.data(), nullptr),
      At(context_, "its kernel"));
}

}  // namespace weir::gpu
