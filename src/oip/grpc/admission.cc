#include "oip/grpc/admission.h"

#include <algorithm>
#include <utility>

namespace weir::oip {
namespace {

// Less than this is not taken for an unfinished message.
constexpr uint64_t kNegligible = 4096;
// Bytes beside the messages themselves: headers of a call (8 KiB at most by default), frames of a message,
// window updates of a client that receives, pings.
constexpr uint64_t kPerMessage = 8192;
constexpr uint64_t kMessageParts = 16;
constexpr uint64_t kSentParts = 64;
constexpr double kPerSecond = 64;
constexpr int kTotalTimeouts = 10;

GrpcAdmission::Options Complete(GrpcAdmission::Options options) {
  if (options.max_per_address <= 0) options.max_per_address = std::max(1, options.max_connections * 3 / 4);
  return options;
}

}  // namespace

std::string_view ToString(GrpcRefusal refusal) {
  switch (refusal) {
    case GrpcRefusal::kConnections:
      return "connections";
    case GrpcRefusal::kAddress:
      return "address";
    case GrpcRefusal::kDescriptors:
      return "descriptors";
    case GrpcRefusal::kSilent:
      return "silent";
    case GrpcRefusal::kStalled:
      return "stalled";
    case GrpcRefusal::kSlow:
      return "slow";
    case GrpcRefusal::kBytes:
      return "bytes";
    case GrpcRefusal::kResets:
      return "resets";
    case GrpcRefusal::kCalls:
      return "calls";
    case GrpcRefusal::kMessage:
      return "in_flight_bytes";
  }
  return "";
}

std::string_view Explanation(GrpcRefusal refusal) {
  switch (refusal) {
    case GrpcRefusal::kConnections:
      return "a connection was refused: all connections are taken; raise --max-connections";
    case GrpcRefusal::kAddress:
      return "a connection was refused: its address has as many as it may have; raise "
             "--max-connections-per-address";
    case GrpcRefusal::kDescriptors:
      return "a connection was refused: this process may open no more files; raise the limit (ulimit -n)";
    case GrpcRefusal::kSilent:
      return "a connection that had sent no request was closed to make room for another";
    case GrpcRefusal::kStalled:
      return "a connection was closed: a message made no progress; --message-timeout-secs is the limit";
    case GrpcRefusal::kSlow:
      return "a connection was closed: a message took ten times --message-timeout-secs";
    case GrpcRefusal::kBytes:
      return "a connection was closed: unfinished messages take more than --max-in-flight-mb, and it had "
             "most "
             "of them";
    case GrpcRefusal::kResets:
      return "a connection was closed: its client began and dropped calls by the thousand (HTTP/2 rapid "
             "reset)";
    case GrpcRefusal::kCalls:
      return "a connection was closed: the open calls of all connections take more than --max-in-flight-mb, "
             "and it had more than its share";
    case GrpcRefusal::kMessage:
      return "a message was refused: the messages in flight take more than --max-in-flight-mb";
  }
  return "";
}

bool IsClosing(GrpcRefusal refusal) {
  return refusal == GrpcRefusal::kSilent || refusal == GrpcRefusal::kStalled ||
         refusal == GrpcRefusal::kSlow || refusal == GrpcRefusal::kBytes || refusal == GrpcRefusal::kResets ||
         refusal == GrpcRefusal::kCalls;
}

GrpcAdmission::GrpcAdmission(Options options) : options_(Complete(options)) {}

GrpcAdmission::Decision GrpcAdmission::Offer(Id id, std::string_view address, Instant now) {
  Decision decision;
  const auto known = of_address_.find(address);
  const int same = known == of_address_.end() ? 0 : known->second;
  if (same >= options_.max_per_address) {
    decision.instead = CloseSilent(address, now);
    if (!decision.instead) decision.refused = GrpcRefusal::kAddress;
  } else if (std::cmp_greater_equal(connections_.size(), options_.max_connections)) {
    decision.instead = CloseSilent(std::nullopt, now);
    if (!decision.instead) decision.refused = GrpcRefusal::kConnections;
  }
  if (decision.refused) return decision;
  Connection& connection = connections_[id];
  connection.address = address;
  connection.admitted = connection.observed = now;
  ++of_address_[connection.address];
  return decision;
}

std::optional<GrpcAdmission::Closing> GrpcAdmission::MakeRoom(Instant now) {
  return CloseSilent(std::nullopt, now);
}

std::optional<GrpcAdmission::Closing> GrpcAdmission::CloseSilent(std::optional<std::string_view> address,
                                                                 Instant now) {
  for (auto& [id, connection] : connections_) {
    if (now - connection.admitted < options_.silence) break;  // the later ones are younger
    if (connection.closing || connection.traffic.messages > 0 || connection.unfinished > kNegligible)
      continue;
    if (address && connection.address != *address) continue;
    connection.closing = true;
    return Closing{id, GrpcRefusal::kSilent};
  }
  return std::nullopt;
}

void GrpcAdmission::Remove(Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  SetUnfinished(found->second, 0);
  const auto address = of_address_.find(found->second.address);
  if (--address->second == 0) of_address_.erase(address);
  connections_.erase(found);
}

void GrpcAdmission::SetUnfinished(Connection& connection, uint64_t bytes) {
  unfinished_ = unfinished_ - connection.unfinished + bytes;
  connection.unfinished = bytes;
}

bool GrpcAdmission::crowded() const {
  return std::cmp_greater_equal(connections_.size(),
                                std::min(options_.max_connections, options_.max_per_address));
}

uint64_t GrpcAdmission::UnfinishedOf(Id id) const {
  const auto found = connections_.find(id);
  return found == connections_.end() ? 0 : found->second.unfinished;
}

void GrpcAdmission::Observe(Id id, const Traffic& traffic, Instant now) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  const Traffic before = std::exchange(connection.traffic, traffic);
  const Duration passed = now - std::exchange(connection.observed, now);
  const uint64_t completed = traffic.message_bytes - before.message_bytes;
  connection.explained += completed + completed / kMessageParts;
  connection.explained += (traffic.messages - before.messages) * kPerMessage;
  connection.explained += (traffic.sent - before.sent) / kSentParts;
  connection.explained += static_cast<uint64_t>(std::max(0.0, Seconds(passed)) * kPerSecond);
  // Allowance that is not used is not kept: it would hide what comes later.
  connection.explained = std::min(connection.explained, traffic.received);
  SetUnfinished(connection, traffic.received - connection.explained);
  UpdateWait(connection, now);
}

void GrpcAdmission::Clear(Id id, Instant now) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  found->second.explained = found->second.traffic.received;
  SetUnfinished(found->second, 0);
  UpdateWait(found->second, now);
}

GrpcAdmission::Wait GrpcAdmission::BeginWait(const Connection& connection, Instant now) const {
  return {.since = now,
          .most = connection.unfinished,
          .message_bytes = connection.traffic.message_bytes,
          .part_since = now,
          .part_received = connection.traffic.received};
}

// Messages that were unfinished are taken to be complete once as many bytes have been completed as were
// unfinished at the most: the wait begins anew.
void GrpcAdmission::UpdateWait(Connection& connection, Instant now) const {
  if (connection.unfinished <= kNegligible) {
    connection.wait.reset();
    return;
  }
  if (!connection.wait) {
    connection.wait = BeginWait(connection, now);
    return;
  }
  Wait& wait = *connection.wait;
  wait.most = std::max(wait.most, connection.unfinished);
  if (connection.traffic.message_bytes - wait.message_bytes >= wait.most) {
    wait = BeginWait(connection, now);
    return;
  }
  const Duration part = options_.message_timeout / kParts;
  if (now - wait.part_since < part) return;
  const double least = static_cast<double>(options_.least_rate) * Seconds(now - wait.part_since);
  const auto came = static_cast<double>(connection.traffic.received - wait.part_received);
  wait.idle_parts = came < least ? wait.idle_parts + 1 : 0;
  wait.part_since = now;
  wait.part_received = connection.traffic.received;
}

std::vector<GrpcAdmission::Id> GrpcAdmission::Suspects(Instant now) const {
  std::vector<Id> suspects;
  const bool much = unfinished_ > options_.max_bytes / 2;
  for (const auto& [id, connection] : connections_) {
    if (!connection.wait || connection.closing) continue;
    const bool late = now - connection.wait->since >= options_.message_timeout * (kTotalTimeouts - 1);
    if (connection.wait->idle_parts >= kParts - 1 || late || much) suspects.push_back(id);
  }
  return suspects;
}

std::vector<GrpcAdmission::Closing> GrpcAdmission::Poll(Instant now) {
  std::vector<Closing> closings;
  uint64_t left = 0;
  const auto close = [&](Id id, Connection& connection, GrpcRefusal reason) {
    connection.closing = true;
    closings.push_back({id, reason});
  };
  for (auto& [id, connection] : connections_) {
    if (connection.closing) continue;
    if (connection.wait && connection.wait->idle_parts >= kParts) {
      close(id, connection, GrpcRefusal::kStalled);
    } else if (connection.wait && now - connection.wait->since >= options_.message_timeout * kTotalTimeouts) {
      close(id, connection, GrpcRefusal::kSlow);
    } else {
      left += connection.unfinished;
    }
  }
  while (left > options_.max_bytes) {
    const auto unfinished = [](const auto& entry) {
      return entry.second.closing ? 0 : entry.second.unfinished;
    };
    const auto most = std::ranges::max_element(connections_, {}, unfinished);
    left -= most->second.unfinished;
    close(most->first, most->second, GrpcRefusal::kBytes);
  }
  return closings;
}

}  // namespace weir::oip
