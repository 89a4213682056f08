#include "probe/network_facts.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

#include "base/file.h"

namespace weir::probe {
namespace {

using results::NetworkProbeResult;

std::string AddressText(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address != nullptr && address->sa_family == AF_INET)
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
  if (address != nullptr && address->sa_family == AF_INET6)
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text, sizeof text);
  return text;
}

std::string InterfaceOf(const std::string& host) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return "";
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, &::freeifaddrs);
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next)
    if (AddressText(each->ifa_addr) == host) return each->ifa_name;
  return "";
}

// A request to the driver of an interface; nullopt where it does not know it.
template <typename Value>
std::optional<Value> AskDriver(int socket, const std::string& interface, Value value) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&value);
  if (::ioctl(socket, SIOCETHTOOL, &request) != 0) return std::nullopt;
  return value;
}

std::string FirstLine(const std::filesystem::path& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

std::vector<std::string> NamesByVerbs() {
  struct Device;
  using GetList = Device** (*)(int*);
  using FreeList = void (*)(Device**);
  using GetName = const char* (*)(Device*);
  std::vector<std::string> names;
  void* const library = ::dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return names;
  const auto get = reinterpret_cast<GetList>(::dlsym(library, "ibv_get_device_list"));
  const auto release = reinterpret_cast<FreeList>(::dlsym(library, "ibv_free_device_list"));
  const auto name = reinterpret_cast<GetName>(::dlsym(library, "ibv_get_device_name"));
  int count = 0;
  Device** const list = get != nullptr && release != nullptr && name != nullptr ? get(&count) : nullptr;
  for (int i = 0; list != nullptr && i < count; ++i) names.emplace_back(name(list[i]));
  if (list != nullptr) release(list);
  ::dlclose(library);
  return names;
}

}  // namespace

NetworkProbeResult::Link FindLink(const std::string& host) {
  NetworkProbeResult::Link link{.interface = InterfaceOf(host)};
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return link;
  char congestion[16] = "";
  socklen_t size = sizeof congestion;
  if (::getsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, congestion, &size) == 0)
    link.congestion_control.assign(congestion, ::strnlen(congestion, sizeof congestion));
  if (link.interface.empty()) return link;
  ifreq request{};
  std::strncpy(request.ifr_name, link.interface.c_str(), IFNAMSIZ - 1);
  if (::ioctl(socket.get(), SIOCGIFMTU, &request) == 0) link.mtu = request.ifr_mtu;
  if (const auto told = AskDriver(socket.get(), link.interface, ethtool_cmd{.cmd = ETHTOOL_GSET})) {
    const uint32_t mbit = ethtool_cmd_speed(&*told);
    if (mbit > 0 && mbit != static_cast<uint32_t>(SPEED_UNKNOWN)) link.speed_gbit_per_s = mbit / 1e3;
  }
  constexpr std::pair<uint32_t, const char*> kOffloads[] = {
      {ETHTOOL_GTXCSUM, "tx-checksum"},
      {ETHTOOL_GRXCSUM, "rx-checksum"},
      {ETHTOOL_GTSO, "tso"},
      {ETHTOOL_GGSO, "gso"},
      {ETHTOOL_GGRO, "gro"},
  };
  for (const auto& [command, name] : kOffloads) {
    const auto told = AskDriver(socket.get(), link.interface, ethtool_value{.cmd = command});
    if (told && told->data != 0) link.offloads.emplace_back(name);
  }
  return link;
}

std::vector<NetworkProbeResult::Rdma> FindRdma(const std::string& sysfs) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(sysfs) / "class/infiniband";
  std::vector<std::string> names = sysfs == "/sys" ? NamesByVerbs() : std::vector<std::string>();
  std::error_code error;
  for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().string());
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  std::vector<NetworkProbeResult::Rdma> found;
  for (const std::string& name : names) {
    NetworkProbeResult::Rdma device{.device = name};
    std::error_code none;
    for (fs::directory_iterator at(root / name / "ports", none), end; !none && at != end;
         at.increment(none)) {
      std::string state = FirstLine(at->path() / "state");  // "4: ACTIVE"
      state = state.substr(
          std::min(state.size(), state.find(": ") == std::string::npos ? 0 : state.find(": ") + 2));
      device.ports.push_back(
          fmt::format("{}: {}, {}", at->path().filename().string(), state, FirstLine(at->path() / "rate")));
    }
    std::ranges::sort(device.ports);
    found.push_back(std::move(device));
  }
  return found;
}

}  // namespace weir::probe
