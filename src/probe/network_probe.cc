#include "probe/network_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "base/count.h"
#include "base/thread.h"
#include "monitor/resources.h"
#include "probe/network_data.h"
#include "probe/network_facts.h"
#include "probe/storage_result.h"

namespace weir::probe {
namespace {

using results::NetworkProbeResult;

constexpr int kFewest = 20;          // messages of each size
constexpr double kBusyShare = 0.95;  // of a core: the thread was the limit

struct Ends {
  std::vector<StreamUse> senders, receivers;
};

double ShareOfCore(const StreamUse& use) {
  return use.wall > Duration{} ? Seconds(use.cpu) / Seconds(use.wall) : 0;
}

double BusiestOf(const std::vector<StreamUse>& uses) {
  double most = 0;
  for (const StreamUse& use : uses) most = std::max(most, ShareOfCore(use));
  return most;
}

std::optional<double> CpuPerByte(const Ends& ends) {
  Duration cpu{};
  uint64_t bytes = 0;
  for (const StreamUse& use : ends.senders) {
    cpu += use.cpu;
    bytes += use.all_bytes;
  }
  for (const StreamUse& use : ends.receivers) cpu += use.cpu;
  if (bytes == 0) return std::nullopt;
  return static_cast<double>(cpu.count()) / static_cast<double>(bytes);
}

class NetworkProbe {
 public:
  NetworkProbe(cluster::Cluster& hosts, DataAddress data, const NetworkOptions& options, const Clock& clock,
               const std::stop_token& stop)
      : hosts_(hosts), data_(std::move(data)), options_(options), clock_(clock), stop_(stop) {}

  Status Run(NetworkProbeResult& result) {
    int best_streams = options_.streams.front();
    for (const int streams : options_.streams) {
      const auto measured = TRY(Throughput(streams, options_.stream_message_bytes, result));
      if (measured.gbit_per_s > result.throughput_gbit_per_s) {
        result.throughput_gbit_per_s = measured.gbit_per_s;
        best_streams = streams;
      }
      result.throughputs.push_back(measured);
    }
    for (const uint64_t bytes : options_.message_bytes) {
      auto message = TRY(Latency(bytes, result));
      const auto carried = TRY(Throughput(best_streams, bytes, result));
      message.images_per_s = carried.gbit_per_s * 1e9 / 8 / static_cast<double>(bytes);
      result.throughput_gbit_per_s = std::max(result.throughput_gbit_per_s, carried.gbit_per_s);
      result.throughputs.push_back(carried);
      result.messages.push_back(std::move(message));
    }
    return {};
  }

 private:
  Result<std::vector<StreamUse>> Take() {
    if (stop_.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped");
    const auto answer = TRY(hosts_.CallAll(kNetworkTake, cluster::Message(), stop_)).front();
    return StreamsFromJson(answer.body);
  }

  Result<NetworkProbeResult::Throughput> Throughput(int streams, uint64_t bytes, NetworkProbeResult& result) {
    std::vector<Result<StreamUse>> sent(static_cast<size_t>(streams), Fail(ErrorCode::kInternal, ""));
    const Instant until = clock_.Now() + options_.length + kOmitted;
    {
      std::vector<std::jthread> threads;
      for (size_t i = 0; i < sent.size(); ++i)
        threads.push_back(StartThread(fmt::format("net-{}", i), [&, i](const std::stop_token&) {
          sent[i] = SendStream(data_, bytes, until, clock_, stop_);
        }));
    }
    Ends ends;
    for (const auto& use : sent) {
      ends.senders.push_back(TRY(use));
      result.link.retransmits += ends.senders.back().retransmits;
    }
    ends.receivers = TRY(Take());
    NetworkProbeResult::Throughput made{.streams = streams,
                                        .message_bytes = bytes,
                                        .cpu_ns_per_byte = CpuPerByte(ends),
                                        .busiest_sender = BusiestOf(ends.senders),
                                        .busiest_receiver = BusiestOf(ends.receivers)};
    for (const StreamUse& use : ends.receivers)
      if (use.time > Duration{}) made.gbit_per_s += 8e-9 * static_cast<double>(use.bytes) / Seconds(use.time);
    return made;
  }

  Result<NetworkProbeResult::Message> Latency(uint64_t bytes, NetworkProbeResult& result) {
    stats::Histogram latency;
    Ends ends;
    ends.senders.push_back(
        TRY(SendMessages(data_, bytes, clock_.Now() + options_.length, kFewest, latency, clock_, stop_)));
    result.link.retransmits += ends.senders.back().retransmits;
    ends.receivers = TRY(Take());
    const auto us = [](std::optional<int64_t> ns) {
      return ns ? std::optional(static_cast<double>(*ns) / 1e3) : std::nullopt;
    };
    return NetworkProbeResult::Message{.bytes = bytes,
                                       .latency_us = {.p50 = us(latency.Quantile(0.5)),
                                                      .p90 = us(latency.Quantile(0.9)),
                                                      .p99 = us(latency.Quantile(0.99)),
                                                      .max = us(latency.Max()),
                                                      .count = latency.count()},
                                       .cpu_ns_per_byte = CpuPerByte(ends),
                                       .images_per_s = {}};
  }

  cluster::Cluster& hosts_;
  const DataAddress data_;
  const NetworkOptions& options_;
  const Clock& clock_;
  const std::stop_token& stop_;
};

void JudgeThreads(const NetworkProbeResult& result, StorageVerdict& verdict) {
  const auto best =
      std::ranges::max_element(result.throughputs, {}, &NetworkProbeResult::Throughput::gbit_per_s);
  if (best == result.throughputs.end()) return;
  const auto [share, end] =
      std::max(std::pair(best->busiest_sender, "sends"), std::pair(best->busiest_receiver, "receives"));
  if (share < kBusyShare) return;
  verdict.Add(results::Standing::kSuspect, "generator-busy",
              fmt::format("a thread that {} used {:.0f} % of a core: the link may carry more, limit {:.0f} %",
                          end, 100 * share, 100 * kBusyShare));
}

std::string SizeText(uint64_t bytes) { return Size(static_cast<double>(bytes)); }

}  // namespace

Result<results::NetworkProbeResult> ProbeNetwork(cluster::Cluster& hosts, const cluster::Address& peer,
                                                 const NetworkOptions& options, const Clock& clock,
                                                 const std::stop_token& stop) {
  const auto opened = TRY(hosts.CallAll(kNetworkOpen, cluster::Message(), stop)).front();
  DataPort port = TRY_CONTEXT(DataPort::FromJson(opened.body), "the agent's answer");
  const DataAddress data{.address = {.host = peer.host, .port = port.port}, .cookie = std::move(port.cookie)};
  NetworkProbeResult result{.peer = peer.ToString()};
  {
    const UniqueFd here = TRY(cluster::Connect(data.address, clock.Now() + 10s, clock));
    result.link = FindLink(TRY(cluster::HostOf(here.get(), false)));
  }
  TRY(hosts.CallAll(kNetworkTake, cluster::Message(), stop));
  result.rdma = FindRdma();
  const auto monitor = TRY(monitor::ResourceMonitor::Start(clock, {.nvml_library = ""}));
  NetworkProbe probe(hosts, data, options, clock, stop);
  TRY_STATUS(probe.Run(result));
  const MachineUse machine =
      MachineUseOf(monitor->Stop(), static_cast<int>(std::thread::hardware_concurrency()));
  result.foreign_cores = machine.foreign_cores;
  result.steal_percent = machine.steal_percent;
  StorageVerdict verdict;
  JudgeMachine(machine, verdict);
  JudgeThreads(result, verdict);
  result.verdict = std::string(results::ToString(verdict.standing));
  for (const StorageCause& cause : verdict.causes)
    result.reasons.push_back({.reason = cause.reason, .evidence = cause.evidence});
  return result;
}

std::string ProbeText(const TextStyle& style, const NetworkProbeResult& result) {
  const auto& link = result.link;
  std::string text = fmt::format("{} to {}", style.Bold("network"), EscapeForTerminal(result.peer));
  if (!link.interface.empty())
    text += fmt::format(" by {}, MTU {}", EscapeForTerminal(link.interface), link.mtu);
  if (link.speed_gbit_per_s) text += fmt::format(", {} Gbit/s by its driver", Short(*link.speed_gbit_per_s));
  text += fmt::format(", {}\n", link.congestion_control);
  text += fmt::format("  {:<14}{}\n", "offloads",
                      link.offloads.empty() ? "none" : fmt::format("{}", fmt::join(link.offloads, ", ")));
  for (const auto& rdma : result.rdma)
    text += fmt::format("  {:<14}{}  {}\n", "RDMA", EscapeForTerminal(rdma.device),
                        EscapeForTerminal(fmt::format("{}", fmt::join(rdma.ports, "; "))));
  if (result.rdma.empty()) text += fmt::format("  {:<14}no device\n", "RDMA");
  text += fmt::format("  {:<14}{} Gbit/s\n", "throughput", Short(result.throughput_gbit_per_s));
  for (const auto& each : result.throughputs)
    text += fmt::format("  {:<14}{} of {}: {} Gbit/s, {} ns of CPU a byte\n", "",
                        Count(each.streams, "stream"), SizeText(each.message_bytes), Short(each.gbit_per_s),
                        each.cpu_ns_per_byte ? Short(*each.cpu_ns_per_byte) : "-");
  for (const auto& message : result.messages)
    text +=
        fmt::format("  {:<14}p50 {} us, p99 {} us; {} messages/s without answers\n", SizeText(message.bytes),
                    message.latency_us.p50 ? Short(*message.latency_us.p50) : "-",
                    message.latency_us.p99 ? Short(*message.latency_us.p99) : "-",
                    message.images_per_s ? Short(*message.images_per_s) : "-");
  text += fmt::format("  {:<14}{}\n", "retransmits", Count(link.retransmits));
  text += fmt::format("{} {}\n", style.Bold("verdict"), result.verdict);
  for (const auto& cause : result.reasons) text += fmt::format("  {}: {}\n", cause.reason, cause.evidence);
  return text;
}

Result<std::vector<uint64_t>> ParseSizes(const std::string& text, uint64_t most) {
  std::vector<uint64_t> sizes;
  std::string_view rest = text;
  while (true) {
    const size_t comma = std::min(rest.find(','), rest.size());
    uint64_t value = 0;
    const auto [end, fault] = std::from_chars(rest.data(), rest.data() + comma, value);
    if (fault != std::errc() || end != rest.data() + comma || value < 1 || value > most)
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("\"{}\" is not a list of whole numbers from 1 to {}, such as 64,4096", text, most));
    sizes.push_back(value);
    if (comma == rest.size()) return sizes;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace weir::probe
