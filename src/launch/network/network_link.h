// A second node on this machine: a network namespace behind a cable of a given rate.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/mutex.h"
#include "launch/network/route_socket.h"

namespace weir::launch {

// A pair of virtual Ethernet devices, one in this process's namespace and one in a namespace without a name
// that this object holds open: when this process ends in whatever way, the kernel takes both away once
// what runs there has ended. With a rate both ends are shaped (tbf), so it holds each way on its own, as on a
// full-duplex cable. Without one nothing holds packets back; a queue that passes all on at once (pfifo)
// counts them. One thread at a time, but where a method says otherwise.
class NetworkLink {
 public:
  struct Options {
    // Each way, counted with Ethernet headers; 0.001 to 100. Absent: not shaped.
    std::optional<double> gbit_per_s = 5;
    int mtu =
        9000;  // bytes; 1,280 to 65,000. 9,000: what data centres use; a payload gets 99.3 % of the rate
    // The queue at each end, beside the bucket that leaves at once, as time at this rate; 0.1 ms to 1 s. In
    // bytes it stays what it is whatever the rate becomes, as a port's memory does. 8 ms are 5 MB at 5
    // Gbit/s: about what a switch with 16 MB of shared memory grants a port that alone is congested.
    Duration queue = 8ms;
    Duration delay{};  // of each packet, each way, beside the queue's; up to 10 s. Wants netem in the kernel
  };
  // kUnsupported with the remedy where this process may not, the tools are not there, or the kernel cannot
  // delay; kInvalidArgument.
  static Result<std::unique_ptr<NetworkLink>> Create(Options options, const Clock& clock);
  ~NetworkLink();

  // REQUIRES: a link with a rate. Takes effect at once, also with connections open; what is queued stays
  // queued, and the queue stays as large as it was made, or as one bucket where that is more. (A sender that
  // goes on at a higher rate fills it, and loses what comes then.) Some 50 us. Thread-safe.
  Status SetRate(double gbit_per_s);

  // Since the link was made: what near and far sent. Thread-safe.
  struct Counters {
    QueueCounters to_far, to_near;
  };
  Result<Counters> ReadCounters();

  const std::string& near_address() const { return near_address_; }  // this process's end
  const std::string& far_address() const {
    return far_address_;
  }  // where a server on the far side is reached
  int far_namespace() const { return namespace_.get(); }  // a descriptor of it
  std::string far_namespace_path() const;                 // of the same, while this process lives

 private:
  NetworkLink(Duration delay, const Clock& clock) : clock_(clock), delay_(delay) {}
  Status Connect(int mtu);
  Status Mark();
  Status Delay();
  Status Shape(const Options& options);
  Status FindEnds();

  // One end: the socket of its namespace and the device's number there.
  struct End {
    RouteSocket socket;
    int device_index = 0;
  };

  const Clock& clock_;
  const Duration delay_;
  UniqueFd namespace_;
  std::string device_;        // at this end; empty until it is there
  uint32_t queue_bytes_ = 0;  // constant once the link is made
  std::string near_address_, far_address_;

  Mutex mutex_;
  std::optional<End> near_ GUARDED_BY(mutex_), far_ GUARDED_BY(mutex_);
};

// The parts that only reckon.

// Returns the bucket that shapes to a rate. It holds 157 us of the rate (96 KiB at 5 Gbit/s): bulk transfers
// need as much to reach the rate on a busy machine. It never holds less than the largest packet that the
// kernel hands over in one piece (64 KiB). A smaller bucket makes the kernel cut packets here, which halves
// the rate. A larger one would let short requests pass unshaped. The queue holds `queue` of the rate beyond
// the bucket.
Bucket BucketFor(double gbit_per_s, Duration queue);

// Arguments for tc that shape what leaves `device`, at `place`.
std::vector<std::string> ShapeArguments(const std::string& device, QueuePlace place, const Bucket& bucket);

// Arguments for tc that count what leaves `device`, and hold nothing back.
std::vector<std::string> CountArguments(const std::string& device, QueuePlace place);

// Arguments for tc that delay what leaves `device` before it is shaped, by whole microseconds. The delay's
// own queue is never what is full: a million packets.
std::vector<std::string> DelayArguments(const std::string& device, Duration delay);

// A pair of addresses in 198.18.0.0/15, the range kept for measuring networks (RFC 2544), that is not among
// `taken` (host byte order); the search begins at a place given by `start`.
struct AddressPair {
  uint32_t near = 0, far = 0;  // host byte order, in one /30
};
Result<AddressPair> FreeAddresses(const std::vector<uint32_t>& taken, uint32_t start);

}  // namespace weir::launch
