// Shared memory that clients lend: inputs are read from it and outputs written to it, so that they need no
// socket.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/mutex.h"
#include "oip/api.h"
#include "serve/cuda_memory.h"
#include "serve/guarded_memory.h"

namespace weir::serve {

// Clients are not trusted: one that cuts its memory off gets an error, and the server goes on. No error tells
// another client's key. Thread-safe; a region in use when it is unregistered lives until the use is over.
class SharedMemoryRegistry {
 public:
  // A part of a region, in place: a client may change it at any moment, and what it must not change between a
  // check and its use is for Read. Of memory of a GPU it is a copy.
  struct Acquired {
    Bytes data;
    std::shared_ptr<const GuardedMemory> memory;  // null: of a GPU
    std::string region;
    // After the use. kInvalidArgument: the client had cut its memory off, and what was read is not all its
    // own.
    Status Check() const;
  };

  static constexpr uint64_t kDefaultMaxBytes = uint64_t{16} << 30;

  // `max_bytes`: address space of all regions together. One that is unregistered counts until its use is
  // over.
  // `driver` of the GPUs whose memory clients may lend; null: of none.
  explicit SharedMemoryRegistry(uint64_t max_bytes = kDefaultMaxBytes, gpu::DriverPtr driver = nullptr);
  ~SharedMemoryRegistry();

  // Maps the pages of the region, and no others of its object. kInvalidArgument for a name in use, a key that
  // is not that of one POSIX shared-memory object ("/name"), a part that does not lie within the object, and
  // a region larger than `max_bytes`; kNotFound where there is no such object; kOverloaded past 4,096
  // regions, or `max_bytes` of them.
  Status Register(const oip::Region& region);
  // The same of memory of a GPU, which has names of its own among all. kInvalidArgument also for a handle
  // that the driver does not know, a device that is not there, and memory smaller than the region;
  // kUnsupported, kNotFound where there is no driver.
  Status Register(const oip::CudaRegion& region);
  bool has_gpu() const { return driver_ != nullptr; }
  bool Has(const std::string& name) const;                               // of either kind
  void UnregisterCuda(const std::string& name);                          // empty: all
  std::vector<oip::CudaRegion> ListCuda(const std::string& name) const;  // empty: all

  // The next two are for memory of the system.
  Status Unregister(const std::string& name);                            // empty: all; kNotFound
  Result<std::vector<oip::Region>> List(const std::string& name) const;  // empty: all; kNotFound

  // kNotFound for an unknown region, kInvalidArgument for a part that does not lie within it, or has been cut
  // off by the client.
  Result<Acquired> Acquire(const oip::RegionPart& part) const;
  Result<Bytes> Read(const oip::RegionPart& part) const;               // a copy
  Status Write(const oip::RegionPart& part, const Bytes& data) const;  // data.size() <= part.byte_size

 private:
  struct Mapping;
  class Reservation;
  Result<std::shared_ptr<const Mapping>> Open(const oip::Region& region) const;
  Status Insert(const std::string& name, const std::function<Result<std::shared_ptr<const Mapping>>()>& open);
  Result<std::shared_ptr<const Mapping>> Find(const oip::RegionPart& part) const;

  const uint64_t max_bytes_;
  const gpu::DriverPtr driver_;
  const std::shared_ptr<std::atomic<uint64_t>> mapped_;  // bytes; outlived by what is in use

  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<const Mapping>, std::less<>> regions_ GUARDED_BY(mutex_);
};

}  // namespace weir::serve
