// Shared memory that clients lend: inputs are read from it and outputs written to it, so that they need no
// socket.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/mutex.h"
#include "oip/api.h"
#include "serve/guarded_memory.h"

namespace weir::serve {

// Clients are not trusted: one that cuts its memory off gets an error, and the server goes on. No error tells
// another client's key. Thread-safe; a region in use when it is unregistered lives until the use is over.
class SharedMemoryRegistry {
 public:
  // A part of a region, in place: a client may change it at any moment, and what it must not change between a
  // check and its use is for Read.
  struct Acquired {
    Bytes data;
    std::shared_ptr<const GuardedMemory> memory;
    std::string region;
    // After the use. kInvalidArgument: the client had cut its memory off, and what was read is not all its
    // own.
    Status Check() const;
  };

  static constexpr uint64_t kDefaultMaxBytes = uint64_t{16} << 30;

  // `max_bytes`: address space of all regions together. One that is unregistered counts until its use is
  // over.
  explicit SharedMemoryRegistry(uint64_t max_bytes = kDefaultMaxBytes);
  ~SharedMemoryRegistry();

  // Maps the pages of the region, and no others of its object. kInvalidArgument for a name in use, a key that
  // is not that of one POSIX shared-memory object ("/name"), a part that does not lie within the object, and
  // a region larger than `max_bytes`; kNotFound where there is no such object; kOverloaded past 4,096
  // regions, or `max_bytes` of them.
  Status Register(const oip::Region& region);
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

  const uint64_t max_bytes_;
  const std::shared_ptr<std::atomic<uint64_t>> mapped_;  // bytes; outlived by what is in use

  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<const Mapping>, std::less<>> regions_ GUARDED_BY(mutex_);
};

}  // namespace weir::serve
