#include "launch/network_link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/thread.h"
#include "launch/command.h"

namespace weir::launch {
namespace {

constexpr uint32_t kFirstAddress = 0xC6120000;  // 198.18.0.0
constexpr uint32_t kPairs = 1 << 15;            // of four addresses each in a /15
// Bytes: what the kernel hands over in one piece and cuts later, 64 KiB, and a header for each cut.
constexpr int64_t kLargestPacket = 70'000;
constexpr char kFarDevice[] = "eth0";
constexpr char kRemedy[] =
    "run as root (CAP_SYS_ADMIN and CAP_NET_ADMIN) with iproute2 installed, or name a second machine";

// A namespace that has no name and no process: a thread enters it, takes a descriptor, and ends.
Result<UniqueFd> MakeNamespace() {
  Result<UniqueFd> made = Fail(ErrorCode::kInternal, "no namespace");
  StartThread("launch-netns", [&](const std::stop_token&) {
    if (::unshare(CLONE_NEWNET) != 0) {
      const int error = errno;
      made = FailErrno("a network namespace", error);
      if (error == EPERM || error == EINVAL || error == ENOSYS) {
        made.error().code = ErrorCode::kUnsupported;
        made.error().message += fmt::format(": {}", kRemedy);
      }
      return;
    }
    UniqueFd fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (fd.valid())
      made = std::move(fd);
    else
      made = FailErrno("/proc/thread-self/ns/net", errno);
  }).join();
  return made;
}

std::vector<uint32_t> AddressesTaken() {
  std::vector<uint32_t> taken;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return taken;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    taken.push_back(ntohl(reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr));
  }
  ::freeifaddrs(list);
  return taken;
}

std::string ToText(uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255);
}

// What these commands cannot do is not to be had on this machine.
Status RunTool(const std::vector<std::string>& arguments, int network_namespace, const Clock& clock) {
  const auto done =
      RunWell({.arguments = arguments, .network_namespace = network_namespace, .timeout = 10s}, clock);
  if (done) return {};
  return Fail(ErrorCode::kUnsupported, fmt::format("a network link: {}; {}", done.error().message, kRemedy));
}

Status CheckRate(double gbit_per_s) {
  if (gbit_per_s >= 0.001 && gbit_per_s <= 100) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("a link of {} Gbit/s: from 0.001 to 100 can be had", gbit_per_s));
}

}  // namespace

std::vector<std::string> ShapeArguments(const std::string& verb, const std::string& device,
                                        double gbit_per_s) {
  const double bytes_per_s = gbit_per_s * 1e9 / 8;
  const auto burst = std::max<int64_t>(static_cast<int64_t>(bytes_per_s * 157e-6), kLargestPacket);
  return {"tc",
          "qdisc",
          verb,
          "dev",
          device,
          "root",
          "tbf",
          "rate",
          fmt::format("{:.0f}bit", gbit_per_s * 1e9),
          "burst",
          fmt::format("{}b", burst),
          "latency",
          "2ms"};
}

Result<AddressPair> FreeAddresses(const std::vector<uint32_t>& taken, uint32_t start) {
  for (uint32_t i = 0; i < kPairs; ++i) {
    const uint32_t base = kFirstAddress + (start + i) % kPairs * 4;
    const bool free = std::ranges::none_of(taken, [&](uint32_t address) { return (address & ~3U) == base; });
    if (free) return AddressPair{.near = base + 1, .far = base + 2};
  }
  return Fail(ErrorCode::kOverloaded, "every address of 198.18.0.0/15 is in use on this machine");
}

Result<std::unique_ptr<NetworkLink>> NetworkLink::Create(Options options, const Clock& clock) {
  TRY_STATUS(CheckRate(options.gbit_per_s));
  if (options.mtu < 1280 || options.mtu > 65000)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("an MTU of {}: from 1280 to 65000 can be had", options.mtu));
  std::unique_ptr<NetworkLink> link(new NetworkLink(clock));
  link->namespace_ = TRY(MakeNamespace());
  TRY_STATUS(link->Connect(options.mtu));
  TRY_STATUS(link->Shape("add", options.gbit_per_s));
  return link;
}

NetworkLink::~NetworkLink() {
  if (!device_.empty()) (void)RunTool({"ip", "link", "delete", "dev", device_}, -1, clock_);
}

Status NetworkLink::Connect(int mtu_bytes) {
  const AddressPair pair = TRY(FreeAddresses(AddressesTaken(), static_cast<uint32_t>(::getpid()) * 8));
  near_address_ = ToText(pair.near), far_address_ = ToText(pair.far);
  const int far = namespace_.get();
  // At most 15 characters; a process number and a descriptor of it are unique while the link is there.
  const std::string device = fmt::format("weir{:x}.{:x}", ::getpid(), far);
  const std::string mtu = fmt::format("{}", mtu_bytes);
  TRY_STATUS(RunTool({"ip", "link", "add", "dev", device, "mtu", mtu, "type", "veth", "peer", "name",
                      kFarDevice, "mtu", mtu, "netns", far_namespace_path()},
                     -1, clock_));
  device_ = device;
  TRY_STATUS(RunTool({"ip", "address", "add", near_address_ + "/30", "dev", device_}, -1, clock_));
  TRY_STATUS(RunTool({"ip", "address", "add", far_address_ + "/30", "dev", kFarDevice}, far, clock_));
  TRY_STATUS(RunTool({"ip", "link", "set", "dev", device_, "up"}, -1, clock_));
  TRY_STATUS(RunTool({"ip", "link", "set", "dev", kFarDevice, "up"}, far, clock_));
  return RunTool({"ip", "link", "set", "dev", "lo", "up"}, far, clock_);
}

Status NetworkLink::SetRate(double gbit_per_s) {
  TRY_STATUS(CheckRate(gbit_per_s));
  return Shape("change", gbit_per_s);
}

Status NetworkLink::Shape(const std::string& verb, double gbit_per_s) {
  TRY_STATUS(RunTool(ShapeArguments(verb, device_, gbit_per_s), -1, clock_));
  return RunTool(ShapeArguments(verb, kFarDevice, gbit_per_s), namespace_.get(), clock_);
}

std::string NetworkLink::far_namespace_path() const {
  return fmt::format("/proc/{}/fd/{}", ::getpid(), namespace_.get());
}

}  // namespace weir::launch
