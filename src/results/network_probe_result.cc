#include "results/network_probe_result.h"

#include "base/fields.h"

namespace weir::results {

template <typename F>
void Describe(F& fields, Described<F, NetworkProbeResult::Throughput>& throughput) {
  fields("streams", throughput.streams);
  fields("message_bytes", throughput.message_bytes);
  fields.FromZero("gbit_per_s", throughput.gbit_per_s);
  fields.FromZero("cpu_ns_per_byte", throughput.cpu_ns_per_byte);
  fields.FromZero("busiest_sender", throughput.busiest_sender);
  fields.FromZero("busiest_receiver", throughput.busiest_receiver);
}

template <typename F>
void Describe(F& fields, Described<F, NetworkProbeResult::Times>& times) {
  fields("p50", times.p50);
  fields("p90", times.p90);
  fields("p99", times.p99);
  fields("max", times.max);
  fields("count", times.count);
}

template <typename F>
void Describe(F& fields, Described<F, NetworkProbeResult::Message>& message) {
  fields("bytes", message.bytes);
  fields("latency_us", message.latency_us);
  fields.FromZero("cpu_ns_per_byte", message.cpu_ns_per_byte);
  fields.FromZero("images_per_s", message.images_per_s);
}

template <typename F>
void Describe(F& fields, Described<F, NetworkProbeResult::Link>& link) {
  fields("interface", link.interface);
  fields("mtu", link.mtu);
  fields.FromZero("speed_gbit_per_s", link.speed_gbit_per_s);
  fields("congestion_control", link.congestion_control);
  fields("retransmits", link.retransmits);
  fields("offloads", link.offloads);
}

template <typename F>
void Describe(F& fields, Described<F, NetworkProbeResult::Rdma>& rdma) {
  fields("device", rdma.device);
  fields("ports", rdma.ports);
}

template <typename F>
void Describe(F& fields, Described<F, NetworkProbeResult::Cause>& cause) {
  fields("reason", cause.reason);
  fields("evidence", cause.evidence);
}

template <typename F>
void Describe(F& fields, Described<F, NetworkProbeResult>& result) {
  fields("peer", result.peer);
  fields.FromZero("throughput_gbit_per_s", result.throughput_gbit_per_s);
  fields("throughputs", result.throughputs);
  fields("messages", result.messages);
  fields("link", result.link);
  fields("rdma", result.rdma);
  fields("foreign_cores", result.foreign_cores);
  fields("steal_percent", result.steal_percent);
  fields("verdict", result.verdict);
  fields("reasons", result.reasons);
  fields("provenance", result.provenance);
}

Json NetworkProbeResult::ToJson() const { return FieldsToJson(*this); }

Result<NetworkProbeResult> NetworkProbeResult::FromJson(const Json& json) {
  return FieldsFromJson<NetworkProbeResult>(json);
}

}  // namespace weir::results
