// A second node on this machine: a network namespace behind a cable of a given rate.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"

namespace weir::launch {

// A pair of virtual Ethernet devices, one in this process's namespace and one in a namespace without a name
// that this object holds open: when this process ends in whatever way, the kernel takes both away once
// what runs there has ended. Both ends are shaped (tbf), so the rate holds each way on its own, as on a
// full-duplex cable. There is no propagation delay beside the queue's. One thread at a time.
class NetworkLink {
 public:
  struct Options {
    double gbit_per_s = 5;  // each way, counted with Ethernet headers; 0.001 to 100
    int mtu =
        9000;  // bytes; 1,280 to 65,000. 9,000: what data centres use; a payload gets 99.3 % of the rate
  };
  // kUnsupported with the remedy where this process may not, or the tools are not there; kInvalidArgument.
  static Result<std::unique_ptr<NetworkLink>> Create(Options options, const Clock& clock);
  ~NetworkLink();

  // Takes effect at once, also with connections open.
  Status SetRate(double gbit_per_s);

  const std::string& near_address() const { return near_address_; }  // this process's end
  const std::string& far_address() const {
    return far_address_;
  }  // where a server on the far side is reached
  const std::string& device() const { return device_; }   // at this end, for counters
  int far_namespace() const { return namespace_.get(); }  // a descriptor of it
  std::string far_namespace_path() const;                 // of the same, while this process lives

 private:
  explicit NetworkLink(const Clock& clock) : clock_(clock) {}
  Status Connect(int mtu);
  Status Shape(const std::string& verb, double gbit_per_s);

  const Clock& clock_;
  UniqueFd namespace_;
  std::string device_;  // empty until it is there
  std::string near_address_, far_address_;
};

// The parts that only reckon.

// Arguments for tc that shape what leaves `device`; `verb` is add or change. The bucket holds 157 us of the
// rate (96 KiB at 5 Gbit/s), the least with which bulk transfers reach the rate on a busy machine, and never
// less than the largest packet that the kernel hands over in one piece (64 KiB): a smaller one makes it cut
// packets here, and halves the rate. A larger one would let short requests pass unshaped.
std::vector<std::string> ShapeArguments(const std::string& verb, const std::string& device,
                                        double gbit_per_s);

// A pair of addresses in 198.18.0.0/15, the range kept for measuring networks (RFC 2544), that is not among
// `taken` (host byte order); the search begins at a place given by `start`.
struct AddressPair {
  uint32_t near = 0, far = 0;  // host byte order, in one /30
};
Result<AddressPair> FreeAddresses(const std::vector<uint32_t>& taken, uint32_t start);

}  // namespace weir::launch
