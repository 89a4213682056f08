#include "launch/network/route_socket.h"

#include <linux/gen_stats.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace weir::launch {
namespace {

using Octets = std::span<const uint8_t>;

constexpr size_t Aligned(size_t size) { return (size + 3) & ~size_t{3}; }  // NLMSG_ALIGN is NLA_ALIGN

// A message being written: what is put is followed by zeros up to the next multiple of four.
class Message {
 public:
  Message(uint16_t type, uint16_t flags, const tcmsg& queue) {
    Put(nlmsghdr{.nlmsg_type = type, .nlmsg_flags = flags});
    Put(queue);
  }
  template <typename Value>
  void Put(const Value& value) {
    const size_t at = octets_.size();
    octets_.resize(at + Aligned(sizeof value));
    std::memcpy(&octets_[at], &value, sizeof value);
  }
  template <typename Value>
  void PutAttribute(uint16_t type, const Value& value) {
    Put(nlattr{.nla_len = static_cast<uint16_t>(sizeof(nlattr) + sizeof value), .nla_type = type});
    Put(value);
  }
  void PutText(uint16_t type, std::string_view text) {
    Put(nlattr{.nla_len = static_cast<uint16_t>(sizeof(nlattr) + text.size() + 1), .nla_type = type});
    octets_.insert(octets_.end(), text.begin(), text.end());
    octets_.resize(Aligned(octets_.size() + 1));
  }
  size_t BeginNested(uint16_t type) {
    const size_t at = octets_.size();
    Put(nlattr{.nla_type = type});
    return at;
  }
  void EndNested(size_t at) {
    const auto size = static_cast<uint16_t>(octets_.size() - at);
    std::memcpy(&octets_[at], &size, sizeof size);  // nla_len stands first
  }
  std::vector<uint8_t>& octets() { return octets_; }

 private:
  std::vector<uint8_t> octets_;
};

// A value at the front of `octets`; nothing where they are too few.
template <typename Value>
std::optional<Value> Front(Octets octets) {
  if (octets.size() < sizeof(Value)) return std::nullopt;
  Value value;
  std::memcpy(&value, octets.data(), sizeof value);
  return value;
}

// The contents of the first attribute of this type among `attributes`.
std::optional<Octets> Find(Octets attributes, uint16_t type) {
  while (const auto head = Front<nlattr>(attributes)) {
    if (head->nla_len < sizeof(nlattr) || head->nla_len > attributes.size()) return std::nullopt;
    if ((head->nla_type & NLA_TYPE_MASK) == type)
      return attributes.subspan(sizeof(nlattr), head->nla_len - sizeof(nlattr));
    attributes = attributes.subspan(std::min(attributes.size(), Aligned(head->nla_len)));
  }
  return std::nullopt;
}

QueueCounters CountersIn(Octets attributes) {
  QueueCounters counters;
  const Octets stats = Find(attributes, TCA_STATS2).value_or(Octets());
  if (const auto basic = Front<gnet_stats_basic>(Find(stats, TCA_STATS_BASIC).value_or(Octets())))
    counters.bytes = basic->bytes, counters.packets = basic->packets;
  if (const auto packets = Front<uint64_t>(Find(stats, TCA_STATS_PKT64).value_or(Octets())))
    counters.packets = *packets;
  if (const auto queue = Front<gnet_stats_queue>(Find(stats, TCA_STATS_QUEUE).value_or(Octets())))
    counters.dropped = queue->drops, counters.queued_bytes = queue->backlog;
  return counters;
}

tcmsg QueueOf(int device_index, QueuePlace place) {
  return {.tcm_family = AF_UNSPEC,
          .tcm_ifindex = device_index,
          .tcm_handle = place.handle,
          .tcm_parent = place.parent};
}

// Calls `look` with the type and the contents of each message in `octets`, until it is content.
template <typename Look>
bool AnyMessage(Octets octets, const Look& look) {
  while (const auto head = Front<nlmsghdr>(octets)) {
    if (head->nlmsg_len < sizeof(nlmsghdr) || head->nlmsg_len > octets.size()) return false;
    if (look(head->nlmsg_type, octets.subspan(sizeof(nlmsghdr), head->nlmsg_len - sizeof(nlmsghdr))))
      return true;
    octets = octets.subspan(std::min(octets.size(), Aligned(head->nlmsg_len)));
  }
  return false;
}

}  // namespace

Result<RouteSocket> RouteSocket::Open() {
  UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!fd.valid()) return FailErrno("a socket to the kernel's network", errno);
  const timeval patience{.tv_sec = 5};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return RouteSocket(std::move(fd));
}

Status RouteSocket::Send(std::vector<uint8_t>& message) {
  nlmsghdr head;
  std::memcpy(&head, message.data(), sizeof head);
  head.nlmsg_len = static_cast<uint32_t>(message.size());
  head.nlmsg_seq = ++sequence_;
  std::memcpy(message.data(), &head, sizeof head);
  if (::send(fd_.get(), message.data(), message.size(), 0) != std::ssize(message))
    return FailErrno("asking the kernel's network", errno);
  return {};
}

Result<std::vector<uint8_t>> RouteSocket::Receive() {
  std::vector<uint8_t> octets(1 << 16);
  ssize_t got = 0;
  while ((got = ::recv(fd_.get(), octets.data(), octets.size(), 0)) < 0 && errno == EINTR) {
  }
  if (got < 0) return FailErrno("an answer of the kernel's network", errno);
  octets.resize(static_cast<size_t>(got));
  return octets;
}

Status RouteSocket::ChangeBucket(int device_index, QueuePlace place, const Bucket& bucket) {
  Message message(RTM_NEWQDISC, NLM_F_REQUEST | NLM_F_ACK, QueueOf(device_index, place));
  message.PutText(TCA_KIND, "tbf");
  const size_t options = message.BeginNested(TCA_OPTIONS);
  // The kernel reckons from the burst in bytes; the bucket in ticks is for kernels before 3.13.
  tc_tbf_qopt figures{.limit = bucket.queue_bytes};
  figures.rate.linklayer = TC_LINKLAYER_ETHERNET;
  figures.rate.rate = static_cast<uint32_t>(std::min<uint64_t>(bucket.bytes_per_s, UINT32_MAX));
  message.PutAttribute(TCA_TBF_PARMS, figures);
  message.PutAttribute(TCA_TBF_BURST, bucket.burst_bytes);
  if (bucket.bytes_per_s >= UINT32_MAX) message.PutAttribute(TCA_TBF_RATE64, bucket.bytes_per_s);
  message.EndNested(options);
  TRY_STATUS(Send(message.octets()));

  const std::vector<uint8_t> answer = TRY(Receive());
  std::optional<int> error;
  AnyMessage(answer, [&](uint16_t type, Octets contents) {
    const auto told = Front<nlmsgerr>(contents);
    if (type == NLMSG_ERROR && told) error = -told->error;
    return error.has_value();
  });
  if (!error)
    return Fail(ErrorCode::kIo, "the kernel's network answered a change of rate with something else");
  if (*error != 0) return FailErrno("changing the rate of a link", *error);
  return {};
}

Result<QueueCounters> RouteSocket::ReadQueue(int device_index, QueuePlace place) {
  Message message(RTM_GETQDISC, NLM_F_REQUEST | NLM_F_DUMP, QueueOf(device_index, place));
  TRY_STATUS(Send(message.octets()));
  std::optional<QueueCounters> found;
  for (bool over = false; !over;) {
    const std::vector<uint8_t> answer = TRY(Receive());
    over = AnyMessage(answer, [&](uint16_t type, Octets contents) {
      if (type == NLMSG_DONE || type == NLMSG_ERROR) return true;
      const auto queue = Front<tcmsg>(contents);
      if (type == RTM_NEWQDISC && queue && queue->tcm_ifindex == device_index &&
          queue->tcm_parent == place.parent)
        found = CountersIn(contents.subspan(Aligned(sizeof(tcmsg))));
      return false;
    });
  }
  if (!found) return Fail(ErrorCode::kNotFound, "the link has no queue of ours: somebody has replaced it");
  return *found;
}

}  // namespace weir::launch
