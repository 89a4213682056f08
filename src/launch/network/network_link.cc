#include "launch/network/network_link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <linux/pkt_sched.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <functional>
#include <utility>

#include "base/thread.h"
#include "launch/process/command.h"
#include "launch/process/orphans.h"

namespace weir::launch {
namespace {

constexpr uint32_t kFirstAddress = 0xC6120000;  // 198.18.0.0
constexpr uint32_t kPairs = 1 << 15;            // of four addresses each in a /15
// Bytes: what the kernel hands over in one piece and cuts later, 64 KiB, and a header for each cut.
constexpr int64_t kLargestPacket = 70'000;
constexpr char kFarDevice[] = "eth0";
constexpr QueuePlace kRoot{.parent = TC_H_ROOT, .handle = 0x00100000};      // 10:
constexpr QueuePlace kDelayed{.parent = 0x00010001, .handle = 0x00100000};  // 10: below netem, which is 1:
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

// Runs `body` in that namespace on its own thread, because a thread cannot pass its namespace to another.
Status InNamespace(int network_namespace, const std::function<Status()>& body) {
  Status done;
  StartThread("launch-netns", [&](const std::stop_token&) {
    if (::setns(network_namespace, CLONE_NEWNET) != 0)
      done = FailErrno("entering a network namespace", errno);
    else
      done = body();
  }).join();
  return done;
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

// A failure of these commands means that this machine lacks the ability.
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

Bucket BucketFor(double gbit_per_s, Duration queue) {
  const double bytes_per_s = gbit_per_s * 1e9 / 8;
  const int64_t burst = std::max<int64_t>(static_cast<int64_t>(bytes_per_s * 157e-6), kLargestPacket);
  const double queue_bytes = static_cast<double>(burst) + bytes_per_s * Seconds(queue);
  constexpr double kMostQueued = 2e9;  // the kernel counts in 32 bits
  return {.bytes_per_s = static_cast<uint64_t>(std::llround(bytes_per_s)),
          .burst_bytes = static_cast<uint32_t>(burst),
          .queue_bytes = static_cast<uint32_t>(std::min(queue_bytes, kMostQueued))};
}

namespace {

std::vector<std::string> QueueArguments(const std::string& device, QueuePlace place) {
  std::vector<std::string> arguments{"tc", "qdisc", "add", "dev", device};
  if (place.parent == TC_H_ROOT)
    arguments.emplace_back("root");
  else
    arguments.insert(arguments.end(),
                     {"parent", fmt::format("{:x}:{:x}", place.parent >> 16, place.parent & 0xFFFF)});
  arguments.insert(arguments.end(), {"handle", fmt::format("{:x}:", place.handle >> 16)});
  return arguments;
}

}  // namespace

std::vector<std::string> ShapeArguments(const std::string& device, QueuePlace place, const Bucket& bucket) {
  std::vector<std::string> arguments = QueueArguments(device, place);
  arguments.insert(arguments.end(),
                   {"tbf", "rate", fmt::format("{}bit", bucket.bytes_per_s * 8), "burst",
                    fmt::format("{}b", bucket.burst_bytes), "limit", fmt::format("{}b", bucket.queue_bytes)});
  return arguments;
}

// The other end of a pair of virtual devices takes packets at once, so that none ever waits.
std::vector<std::string> CountArguments(const std::string& device, QueuePlace place) {
  std::vector<std::string> arguments = QueueArguments(device, place);
  arguments.insert(arguments.end(), {"pfifo", "limit", "100000"});
  return arguments;
}

std::vector<std::string> DelayArguments(const std::string& device, Duration delay) {
  return {"tc",
          "qdisc",
          "add",
          "dev",
          device,
          "root",
          "handle",
          "1:",
          "netem",
          "delay",
          fmt::format("{}us", delay / 1us),
          "limit",
          "1000000"};
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
  if (options.gbit_per_s) TRY_STATUS(CheckRate(*options.gbit_per_s));
  if (options.mtu < 1280 || options.mtu > 65000)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("an MTU of {}: from 1280 to 65000 can be had", options.mtu));
  if (options.queue < 100us || options.queue > 1s)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("a link's queue of {} ms: from 0.1 to 1,000 can be had", Milliseconds(options.queue)));
  if (options.delay < Duration::zero() || options.delay > 10s)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("a link's delay of {} ms: from 0 to 10,000 can be had", Milliseconds(options.delay)));
  std::unique_ptr<NetworkLink> link(new NetworkLink(options.delay, clock));
  link->namespace_ = TRY(MakeNamespace());
  TRY_STATUS(link->Connect(options.mtu));
  TRY_STATUS(link->Mark());
  TRY_STATUS(link->Delay());
  TRY_STATUS(link->Shape(options));
  TRY_STATUS(link->FindEnds());
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

// The device tells who made it, for RemoveOrphans: its name has no room for the moment that owner began.
Status NetworkLink::Mark() {
  return RunTool({"ip", "link", "set", "dev", device_, "alias", MakeName(clock_.Now())}, -1, clock_);
}

// Delay first, rate behind it: what waits for its turn then waits in the bucket's queue, which is the one
// that is limited and counted.
Status NetworkLink::Delay() {
  if (delay_ == Duration::zero()) return {};
  const auto add = [&](const std::string& device, int network_namespace) -> Status {
    const auto done = RunWell(
        {.arguments = DelayArguments(device, delay_), .network_namespace = network_namespace, .timeout = 10s},
        clock_);
    if (done) return {};
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("a network link with a delay of {} ms: {}; this kernel cannot delay packets unless "
                    "it has netem (CONFIG_NET_SCH_NETEM, \"modprobe sch_netem\"): ask for no delay, or "
                    "name a second machine",
                    Milliseconds(delay_), done.error().message));
  };
  TRY_STATUS(add(device_, -1));
  return add(kFarDevice, namespace_.get());
}

Status NetworkLink::Shape(const Options& options) {
  const QueuePlace place = delay_ == Duration::zero() ? kRoot : kDelayed;
  if (!options.gbit_per_s) {
    TRY_STATUS(RunTool(CountArguments(device_, place), -1, clock_));
    return RunTool(CountArguments(kFarDevice, place), namespace_.get(), clock_);
  }
  const Bucket bucket = BucketFor(*options.gbit_per_s, options.queue);
  TRY_STATUS(RunTool(ShapeArguments(device_, place, bucket), -1, clock_));
  TRY_STATUS(RunTool(ShapeArguments(kFarDevice, place, bucket), namespace_.get(), clock_));
  queue_bytes_ = bucket.queue_bytes;
  return {};
}

Status NetworkLink::FindEnds() {
  const auto find = [](const std::string& device, std::optional<End>& end) -> Status {
    RouteSocket socket = TRY(RouteSocket::Open());
    const auto index = static_cast<int>(::if_nametoindex(device.c_str()));
    if (index == 0) return FailErrno("the device " + device, errno);
    end = End{.socket = std::move(socket), .device_index = index};
    return {};
  };
  std::optional<End> near, far;
  TRY_STATUS(find(device_, near));
  TRY_STATUS(InNamespace(namespace_.get(), [&] { return find(kFarDevice, far); }));
  MutexLock lock(mutex_);
  near_ = std::move(near), far_ = std::move(far);
  return {};
}

Status NetworkLink::SetRate(double gbit_per_s) {
  CHECK(queue_bytes_ > 0);  // it was made with a rate
  TRY_STATUS(CheckRate(gbit_per_s));
  const QueuePlace place = delay_ == Duration::zero() ? kRoot : kDelayed;
  Bucket bucket = BucketFor(gbit_per_s, Duration::zero());
  bucket.queue_bytes = std::max(queue_bytes_, bucket.queue_bytes);
  MutexLock lock(mutex_);
  TRY_STATUS(near_->socket.ChangeBucket(near_->device_index, place, bucket));
  return far_->socket.ChangeBucket(far_->device_index, place, bucket);
}

Result<NetworkLink::Counters> NetworkLink::ReadCounters() {
  const QueuePlace place = delay_ == Duration::zero() ? kRoot : kDelayed;
  MutexLock lock(mutex_);
  return Counters{.to_far = TRY(near_->socket.ReadQueue(near_->device_index, place)),
                  .to_near = TRY(far_->socket.ReadQueue(far_->device_index, place))};
}

std::string NetworkLink::far_namespace_path() const {
  return fmt::format("/proc/{}/fd/{}", ::getpid(), namespace_.get());
}

}  // namespace weir::launch
