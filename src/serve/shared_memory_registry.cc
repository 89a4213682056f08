#include "serve/shared_memory_registry.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "base/file.h"

namespace weir::serve {
namespace {

constexpr size_t kMostRegions = 4096;

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

// One object of POSIX shared memory: a slash, or none, and a plain name.
Status CheckKey(const std::string& key) {
  const std::string_view name = std::string_view(key).substr(key.starts_with('/') ? 1 : 0);
  const bool plain = !name.empty() && name.size() < NAME_MAX && name != "." && name != ".." &&
                     name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
  if (plain) return {};
  return Invalid("the key is not that of one shared-memory object, such as \"/name\"");
}

}  // namespace

// A share of the address space for regions, given back by its destructor.
class SharedMemoryRegistry::Reservation {
 public:
  static Result<Reservation> Make(uint64_t bytes, uint64_t max_bytes,
                                  const std::shared_ptr<std::atomic<uint64_t>>& mapped) {
    constexpr std::string_view kRemedy = "raise --max-client-shm-mb of the server";
    if (bytes > max_bytes) {
      return Invalid(
          fmt::format("its {} bytes are more than the {} MiB for all regions: register less, or {}", bytes,
                      max_bytes >> 20, kRemedy));
    }
    uint64_t before = mapped->load();
    do {
      if (bytes > max_bytes - before) {
        return Fail(ErrorCode::kOverloaded,
                    fmt::format("{} of the {} MiB for all regions are in use: unregister some first, or {}",
                                before >> 20, max_bytes >> 20, kRemedy));
      }
    } while (!mapped->compare_exchange_weak(before, before + bytes));
    return Reservation(bytes, mapped);
  }
  Reservation(Reservation&& other) noexcept
      : bytes_(std::exchange(other.bytes_, 0)), mapped_(std::move(other.mapped_)) {}
  Reservation& operator=(Reservation&&) = delete;
  ~Reservation() {
    if (bytes_ > 0) mapped_->fetch_sub(bytes_);
  }

 private:
  Reservation(uint64_t bytes, std::shared_ptr<std::atomic<uint64_t>> mapped)
      : bytes_(bytes), mapped_(std::move(mapped)) {}

  uint64_t bytes_;
  std::shared_ptr<std::atomic<uint64_t>> mapped_;
};

struct SharedMemoryRegistry::Mapping {
  const oip::Region region;  // of a GPU: its name and size alone
  const std::shared_ptr<const Reservation> reservation;
  const std::shared_ptr<const GuardedMemory> memory;  // the pages in which the region lies
  const uint64_t begin = 0;                           // of the region in `memory`
  const std::unique_ptr<const CudaMemory> cuda;       // instead of `memory`
  const int64_t device = 0;                           // of `cuda`
};

Result<std::shared_ptr<const SharedMemoryRegistry::Mapping>> SharedMemoryRegistry::Open(
    const oip::Region& region) const {
  TRY_STATUS(CheckKey(region.key));
  if (region.byte_size == 0) return Invalid("byte_size is 0");
  const UniqueFd object(::shm_open(region.key.c_str(), O_RDWR | O_CLOEXEC, 0));
  if (!object.valid() && errno == ENOENT)
    return Fail(ErrorCode::kNotFound, "there is no shared-memory object of that key");
  if (!object.valid()) return Invalid(FailErrno("its shared-memory object", errno).error().message);
  struct stat facts = {};
  if (::fstat(object.get(), &facts) != 0) return FailErrno("its shared-memory object", errno);
  const auto size = static_cast<uint64_t>(facts.st_size);
  if (!S_ISREG(facts.st_mode) || region.offset > size || region.byte_size > size - region.offset) {
    return Invalid(fmt::format("offset {} and byte_size {} do not lie within its object of {} bytes",
                               region.offset, region.byte_size, size));
  }
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t begin = region.offset % page;
  const uint64_t length = (begin + region.byte_size + page - 1) / page * page;
  auto reservation = std::make_shared<const Reservation>(TRY(Reservation::Make(length, max_bytes_, mapped_)));
  void* const data = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, object.get(),
                            static_cast<off_t>(region.offset - begin));
  if (data == MAP_FAILED) return FailErrno("its shared-memory object", errno);
  return std::make_shared<const Mapping>(region, std::move(reservation),
                                         TRY(GuardedMemory::Own(data, length)), begin);
}

SharedMemoryRegistry::SharedMemoryRegistry(uint64_t max_bytes, gpu::DriverPtr driver)
    : max_bytes_(max_bytes),
      driver_(std::move(driver)),
      mapped_(std::make_shared<std::atomic<uint64_t>>(0)) {}
SharedMemoryRegistry::~SharedMemoryRegistry() = default;

Status SharedMemoryRegistry::Insert(const std::string& name,
                                    const std::function<Result<std::shared_ptr<const Mapping>>()>& open) {
  const std::string what = fmt::format("region \"{}\"", name);
  if (name.empty()) return Invalid("a region needs a name");
  const auto free_name = [&]() -> Status {
    MutexLock lock(mutex_);
    if (regions_.contains(name)) return Invalid(what + " is already registered: unregister it first");
    if (regions_.size() >= kMostRegions) {
      return Fail(ErrorCode::kOverloaded,
                  fmt::format("{}: {} regions are registered: unregister some first", what, kMostRegions));
    }
    return {};
  };
  TRY_STATUS(free_name());
  auto mapping = TRY_CONTEXT(open(), what);
  MutexLock lock(mutex_);
  if (regions_.emplace(name, std::move(mapping)).second) return {};
  return Invalid(what + " is already registered: unregister it first");
}

Status SharedMemoryRegistry::Register(const oip::Region& region) {
  return Insert(region.name, [&] { return Open(region); });
}

Status SharedMemoryRegistry::Register(const oip::CudaRegion& region) {
  return Insert(region.name, [&]() -> Result<std::shared_ptr<const Mapping>> {
    if (driver_ == nullptr) {
      return Fail(ErrorCode::kUnsupported,
                  "this server has no GPU memory: register memory of the system instead");
    }
    return std::make_shared<const Mapping>(oip::Region{.name = region.name, .byte_size = region.byte_size},
                                           nullptr, nullptr, 0, TRY(CudaMemory::Open(driver_, region)),
                                           region.device);
  });
}

bool SharedMemoryRegistry::Has(const std::string& name) const {
  MutexLock lock(mutex_);
  return regions_.contains(name);
}

Status SharedMemoryRegistry::Unregister(const std::string& name) {
  std::vector<std::shared_ptr<const Mapping>> gone;  // unmapped outside of the lock
  MutexLock lock(mutex_);
  const size_t found = std::erase_if(regions_, [&](auto& one) {
    if (one.second->cuda != nullptr || (!name.empty() && one.first != name)) return false;
    gone.push_back(std::move(one.second));
    return true;
  });
  if (found == 0 && !name.empty())
    return Fail(ErrorCode::kNotFound, fmt::format("region \"{}\" is not registered", name));
  return {};
}

void SharedMemoryRegistry::UnregisterCuda(const std::string& name) {
  std::vector<std::shared_ptr<const Mapping>> gone;
  MutexLock lock(mutex_);
  std::erase_if(regions_, [&](auto& one) {
    if (one.second->cuda == nullptr || (!name.empty() && one.first != name)) return false;
    gone.push_back(std::move(one.second));
    return true;
  });
}

Result<std::vector<oip::Region>> SharedMemoryRegistry::List(const std::string& name) const {
  MutexLock lock(mutex_);
  std::vector<oip::Region> list;
  for (const auto& [key, mapping] : regions_) {
    if (mapping->cuda == nullptr && (name.empty() || key == name)) list.push_back(mapping->region);
  }
  if (list.empty() && !name.empty())
    return Fail(ErrorCode::kNotFound, fmt::format("region \"{}\" is not registered", name));
  return list;
}

std::vector<oip::CudaRegion> SharedMemoryRegistry::ListCuda(const std::string& name) const {
  MutexLock lock(mutex_);
  std::vector<oip::CudaRegion> list;
  for (const auto& [key, mapping] : regions_) {
    if (mapping->cuda == nullptr || (!name.empty() && key != name)) continue;
    list.push_back(
        {.name = key, .handle = {}, .device = mapping->device, .byte_size = mapping->region.byte_size});
  }
  return list;
}

Result<std::shared_ptr<const SharedMemoryRegistry::Mapping>> SharedMemoryRegistry::Find(
    const oip::RegionPart& part) const {
  MutexLock lock(mutex_);
  const auto found = regions_.find(part.region);
  if (found == regions_.end())
    return Fail(ErrorCode::kNotFound, fmt::format("region \"{}\" is not registered", part.region));
  const uint64_t size = found->second->region.byte_size;
  if (part.offset > size || part.byte_size > size - part.offset) {
    return Invalid(fmt::format("offset {} and byte_size {} do not lie within region \"{}\" of {} bytes",
                               part.offset, part.byte_size, part.region, size));
  }
  return found->second;
}

Result<SharedMemoryRegistry::Acquired> SharedMemoryRegistry::Acquire(const oip::RegionPart& part) const {
  const std::shared_ptr<const Mapping> mapping = TRY(Find(part));
  if (mapping->cuda != nullptr) {
    Bytes copy = Bytes::AllocateUninitialized(part.byte_size);
    TRY_STATUS(mapping->cuda->Read(part.offset, copy.mutable_span()));
    return Acquired{std::move(copy), nullptr, part.region};
  }
  std::byte* const data = mapping->memory->data() + mapping->begin + part.offset;
  // The use keeps the whole mapping, so that its share of the address space stays taken.
  const std::shared_ptr<const GuardedMemory> memory(mapping, mapping->memory.get());
  return Acquired{Bytes::Wrap(memory, data, part.byte_size), memory, part.region};
}

Status SharedMemoryRegistry::Acquired::Check() const {
  if (memory == nullptr || !memory->IsCut()) return {};
  return Invalid(fmt::format("region \"{}\" has been cut off by its owner: register it again", region));
}

Result<Bytes> SharedMemoryRegistry::Read(const oip::RegionPart& part) const {
  const Acquired acquired = TRY(Acquire(part));
  if (acquired.memory == nullptr) return acquired.data;
  const Bytes copy = Bytes::Copy(acquired.data.span());
  TRY_STATUS(acquired.Check());
  return copy;
}

Status SharedMemoryRegistry::Write(const oip::RegionPart& part, const Bytes& data) const {
  CHECK(data.size() <= part.byte_size);
  const std::shared_ptr<const Mapping> mapping = TRY(Find(part));
  if (mapping->cuda != nullptr) return mapping->cuda->Write(part.offset, data.span());
  Acquired acquired = TRY(Acquire(part));
  // The answer may lie in that memory already: an input that is given back.
  if (!data.empty()) std::memmove(acquired.data.mutable_data(), data.data(), data.size());
  return acquired.Check();
}

}  // namespace weir::serve
