#include "load/inputs/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/file.h"

namespace weir::load {
namespace {

uint64_t Aligned(uint64_t size) { return (size + 63) / 64 * 64; }

uint64_t InputBytes(const infer::Request& request) {
  uint64_t sum = 0;
  for (const infer::Tensor& input : request.inputs) sum += Aligned(input.data.size());
  return sum;
}

// Returns the bytes of one request; nothing if that is not fixed.
std::optional<uint64_t> OutputBytes(const infer::ModelInfo& model, const infer::TensorInfo& output,
                                    int batch) {
  infer::Shape shape = output.shape;
  if (model.max_batch > 0 && !shape.empty()) shape.front() = batch;
  if (output.dtype == infer::DType::kBytes ||
      std::ranges::any_of(shape, [](int64_t size) { return size < 0; }))
    return std::nullopt;
  const auto count = infer::ElementCount(shape);
  if (!count) return std::nullopt;
  return static_cast<uint64_t>(*count) * infer::ByteSize(output.dtype);
}

}  // namespace

Result<std::unique_ptr<SharedMemory>> SharedMemory::Create(uint64_t size) {
  static int number = 0;
  const std::string key = fmt::format("/weir-load-{}-{}", getpid(), number++);
  const auto failed = [&](const char* what) {
    return Fail(ErrorCode::kIo,
                fmt::format("shared memory of {} bytes: {}: {}", size, what, std::strerror(errno)));
  };
  shm_unlink(key.c_str());  // of a process that had this number before and was killed
  const UniqueFd fd(shm_open(key.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) return failed("open");
  // Taken now: memory that is found wanting later ends the program.
  if (const int fault = posix_fallocate(fd.get(), 0, static_cast<off_t>(size)); fault != 0) {
    shm_unlink(key.c_str());
    errno = fault;
    return failed("allocate");
  }
  void* const data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) {
    shm_unlink(key.c_str());
    return failed("map");
  }
  return std::unique_ptr<SharedMemory>(new SharedMemory(key, static_cast<std::byte*>(data), size));
}

SharedMemory::~SharedMemory() {
  munmap(data_, size_);
  Hide();
}

void SharedMemory::Hide() {
  if (!std::exchange(hidden_, true)) shm_unlink(key_.c_str());
}

Result<SharedRequests> ShareRequests(const std::vector<infer::Request>& requests,
                                     const infer::ModelInfo& model, int batch, uint64_t output_bytes,
                                     const std::string& name) {
  SharedRequests shared;
  std::vector<std::pair<std::string, uint64_t>> outputs;  // with their sizes
  uint64_t room = 0;                                      // of one request's
  for (const infer::TensorInfo& output : model.outputs) {
    const auto size = output_bytes > 0 ? std::optional(output_bytes) : OutputBytes(model, output, batch);
    if (!size || *size == 0) continue;
    outputs.emplace_back(output.name, *size);
    room += Aligned(*size);
  }
  uint64_t taken = 0;
  for (const infer::Request& request : requests) {
    const uint64_t size = InputBytes(request), count = shared.requests.size() + 1;
    if (taken + size > kMostSharedBytes || count * room > kMostSharedBytes) break;
    taken += size;
    shared.requests.push_back(request);
  }
  if (shared.requests.empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("one request takes more than the {} MiB of shared memory: take a smaller batch",
                            kMostSharedBytes >> 20));
  }
  shared.inputs = TRY(SharedMemory::Create(std::max<uint64_t>(64, taken)));
  if (room > 0) shared.outputs = TRY(SharedMemory::Create(room * shared.requests.size()));
  uint64_t in = 0, out = 0;
  for (infer::Request& request : shared.requests) {
    infer::RequestForm form;
    for (const infer::Tensor& input : request.inputs) {
      if (!input.data.empty()) std::memcpy(shared.inputs->data() + in, input.data.data(), input.data.size());
      form.input_regions.emplace_back(
          infer::RegionPart{.region = name + "-in", .offset = in, .byte_size = input.data.size()});
      in += Aligned(input.data.size());
    }
    for (const auto& [output, size] : outputs) {
      form.output_regions[output] = {.region = name + "-out", .offset = out, .byte_size = size};
      out += Aligned(size);
    }
    if (request.outputs.empty()) {
      for (const infer::TensorInfo& output : model.outputs) request.outputs.push_back(output.name);
    }
    shared.forms.push_back(std::move(form));
  }
  return shared;
}

}  // namespace weir::load
