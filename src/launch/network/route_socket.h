// A network namespace's kernel, asked about the queues of its devices (rtnetlink).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace weir::launch {

// The parameters of a token bucket (tbf). A value.
struct Bucket {
  uint64_t bytes_per_s = 0;
  uint32_t burst_bytes = 0;  // that may leave at once
  uint32_t queue_bytes = 0;  // that may wait; what comes beyond is dropped
};

// The counters of one queue since its creation.
struct QueueCounters {
  uint64_t bytes = 0, packets = 0;  // that have left it, with Ethernet headers
  uint64_t dropped = 0;             // packets that found it full
  uint64_t queued_bytes = 0;        // that wait now
};

// A queue's address on its device, as the kernel has it: major number << 16 | minor number.
struct QueuePlace {
  uint32_t parent = 0, handle = 0;
};

// A socket of the namespace in which it was opened; the thread that uses it may be in another. A request
// takes some 20 us, and no program is started: rates are changed while others measure. One thread at a time.
class RouteSocket {
 public:
  static Result<RouteSocket> Open();  // in the calling thread's namespace

  // Gives the bucket at `place` of the device with this number other figures; what waits in it stays.
  Status ChangeBucket(int device_index, QueuePlace place, const Bucket& bucket);
  // kNotFound where there is no such queue.
  Result<QueueCounters> ReadQueue(int device_index, QueuePlace place);

 private:
  explicit RouteSocket(UniqueFd fd) : fd_(std::move(fd)) {}
  Status Send(std::vector<uint8_t>& message);
  Result<std::vector<uint8_t>> Receive();

  UniqueFd fd_;
  uint32_t sequence_ = 0;
};

}  // namespace weir::launch
