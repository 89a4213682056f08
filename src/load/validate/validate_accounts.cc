#include "load/validate/validate_accounts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "load/validate/read_result.h"
#include "load/verdict/judge.h"
#include "stats/quantile.h"

namespace weir::load {
namespace {

using results::LoadResult;
using results::Reason;

constexpr Limits kLimits{};
constexpr double kWorthTelling = 0.01;  // of the mean response time, below 0

double SumOf(const LoadResult::Split& split) {
  const double client =
      split.slip + split.client_send.value_or(0) + split.wire_and_wait + split.client_receive;
  if (!split.server) return client;
  const LoadResult::Split::Server& server = *split.server;
  return client + server.receive.value_or(0) + server.queue + server.compute_input + server.compute_infer +
         server.compute_output + server.rest;
}

class AccountCheck {
 public:
  AccountCheck(const LoadResult::Level& level, std::string where, std::vector<Finding>& findings)
      : level_(level), where_(std::move(where)), findings_(findings) {}

  void Check() {
    if (level_.split) Split(*level_.split);
    if (level_.slowest) Slowest(*level_.slowest);
    if (level_.server) Server(*level_.server);
    if (level_.server_requests) ServerRequests(*level_.server_requests);
    if (level_.resources) Used(*level_.resources, where_ + ".resources");
    if (level_.server_resources) Used(*level_.server_resources, where_ + ".server_resources");
    if (level_.resources) Machine(*level_.resources);
  }

 private:
  void Add(std::string_view rule, std::string where, std::string what, bool fatal = true) {
    findings_.push_back({rule, std::move(where), std::move(what), fatal});
  }
  // Compares two figures that are calculated from means as large as the response time's.
  bool IsNear(double a, double b) const {
    const double scale = std::max({std::abs(a), std::abs(b), level_.response.mean.value_or(0)});
    return std::abs(a - b) <= kRounding * scale;
  }
  void MustBe(std::string_view rule, const std::string& where, const char* part, double value, double wanted,
              const char* source) {
    if (IsNear(value, wanted)) return;
    Add(rule, where, fmt::format("{} is {} ms, and {} {} ms", part, value, source, wanted));
  }
  void MayBeNoLess(std::string_view rule, const std::string& where, const char* part, double value) {
    if (value >= -kWorthTelling * level_.response.mean.value_or(0)) return;
    Add(rule, where,
        fmt::format("{} is {} ms: client and server count other requests, or their clocks disagree", part,
                    value),
        false);
  }

  void Split(const LoadResult::Split& split);
  void SplitOfServer(const LoadResult::Split::Server& parts, const std::string& where);
  void Slowest(const LoadResult::Slowest& slowest);
  void Server(const LoadResult::ServerTimes& server);
  void ServerRequests(const LoadResult::ServerRequests& requests);
  void Used(const results::Resources& used, const std::string& where);
  void Machine(const results::Resources& used);

  const LoadResult::Level& level_;
  const std::string where_;
  std::vector<Finding>& findings_;
};

void AccountCheck::Split(const LoadResult::Split& split) {
  const std::string where = where_ + ".split_ms";
  const auto &response = level_.response.mean, &service = level_.service.mean,
             &first_byte = level_.first_byte.mean;
  if (!response || !service || !first_byte) {
    Add(rule::kSplit, where, "there is no response time whose parts these could be");
    return;
  }
  MustBe(rule::kSplit, where, "the sum", SumOf(split), *response, "the mean response time is");
  MustBe(rule::kSplit, where, "slip", split.slip, *response - *service, "response less service time is");
  if (split.client_send.has_value() != level_.client_send.has_value()) {
    Add(rule::kSplit, where, "of client_send and client_send_ms there is one alone");
  } else if (split.client_send) {
    const LoadResult::Times& send = *level_.client_send;
    const double share =
        static_cast<double>(send.n) / static_cast<double>(std::max<int64_t>(1, level_.answered));
    // The server's own time is left out of the send time, if the two overlap.
    const double wanted = share * send.mean.value_or(0);
    const bool overlaps = split.wire_and_wait <= 0 && *split.client_send < wanted;
    if (!overlaps)
      MustBe(rule::kSplit, where, "client_send", *split.client_send, wanted, "client_send_ms has");
  }
  MustBe(rule::kSplit, where, "client_receive", split.client_receive, *service - *first_byte,
         "service time less that of the first byte is");
  // A server receives while the client sends.
  MayBeNoLess(rule::kSplit, where, "wire_and_wait", split.wire_and_wait + split.client_send.value_or(0));
  if (split.server.has_value() != level_.server.has_value()) {
    Add(rule::kSplit, where,
        split.server ? "it has the server's parts, and server_ms is missing"
                     : "it lacks the server's parts, which server_ms has");
  } else if (split.server) {
    SplitOfServer(*split.server, where);
  }
}

void AccountCheck::SplitOfServer(const LoadResult::Split::Server& parts, const std::string& where) {
  const LoadResult::ServerTimes& server = *level_.server;
  constexpr const char* kSource = "server_ms has";
  MustBe(rule::kSplit, where, "receive", parts.receive.value_or(0), server.receive.value_or(0), kSource);
  MustBe(rule::kSplit, where, "queue", parts.queue, server.queue, kSource);
  MustBe(rule::kSplit, where, "compute_input", parts.compute_input, server.compute_input, kSource);
  MustBe(rule::kSplit, where, "compute_infer", parts.compute_infer, server.compute_infer, kSource);
  MustBe(rule::kSplit, where, "compute_output", parts.compute_output, server.compute_output, kSource);
  const double rest = server.request - server.receive.value_or(0) - server.queue - server.compute_input -
                      server.compute_infer - server.compute_output;
  MustBe(rule::kSplit, where, "server_rest", parts.rest, rest, "server_ms leaves");
  MayBeNoLess(rule::kSplit, where, "server_rest", parts.rest);
}

// They are the ones behind the rank of the percentile, so on average no faster than all.
void AccountCheck::Slowest(const LoadResult::Slowest& slowest) {
  const std::string where = where_ + ".slowest";
  MustBe(rule::kSlowest, where, "the sum of split_ms", SumOf(slowest.split), slowest.mean, "mean_ms is");
  const double p = slowest.above_percentile / 100;
  if (!stats::Supports(p, level_.answered)) {
    Add(rule::kSupport, where,
        fmt::format("{} answers do not support p{:g}", level_.answered, slowest.above_percentile));
    return;
  }
  const int64_t above = level_.answered - stats::NearestRank(p, level_.answered);
  if (slowest.n != above) {
    Add(rule::kSlowest, where,
        fmt::format("n is {}, and {} of {} answers are above p{:g}", slowest.n, above, level_.answered,
                    slowest.above_percentile));
  }
  const auto &mean = level_.response.mean, &max = level_.response.max;
  const bool below = mean && slowest.mean < *mean && !IsNear(slowest.mean, *mean);
  const bool above_max = max && slowest.mean > *max && !IsNear(slowest.mean, *max);
  if (below || above_max) {
    Add(rule::kSlowest, where,
        fmt::format("they took {} ms on average, which is not between the mean of all and the longest",
                    slowest.mean));
  }
}

void AccountCheck::Server(const LoadResult::ServerTimes& server) {
  const std::string where = where_ + ".server_ms";
  if (const auto& service = level_.service.mean) {
    MustBe(rule::kServer, where, "outside", server.outside, *service - server.request,
           "service time less the server's is");
  } else {
    Add(rule::kServer, where, "there is no service time that it could be a part of");
  }
}

void AccountCheck::ServerRequests(const LoadResult::ServerRequests& requests) {
  const std::string where = where_ + ".server_requests";
  if (requests.ours_at_most > requests.counted ||
      requests.others_at_least != requests.counted - requests.ours_at_most) {
    Add(rule::kServer, where,
        fmt::format("{} at most of {} requests were ours, and {} at least were not", requests.ours_at_most,
                    requests.counted, requests.others_at_least));
    return;
  }
  const ServerShare share{.counted = requests.counted, .ours_at_most = requests.ours_at_most};
  if (!IsShared(share)) return;
  if (!HasReason(level_, Reason::kServerShared)) {
    Add(rule::kServer, where,
        fmt::format("{} of {} requests were not ours; no claim says so", share.others_at_least(),
                    share.counted));
  } else if (share.others_share() > kLimits.shared_invalid && !IsInvalidFor(level_, Reason::kServerShared)) {
    Add(rule::kServer, where,
        fmt::format("{} of {} requests were not ours; both claims should be INVALID for it",
                    share.others_at_least(), share.counted));
  }
  // Only our server sends its durations with each response.
  if (level_.server && !level_.server->receive)
    Add(rule::kServer, where,
        "the server's statistics are those of others, too, and server_ms is made of them");
}

void AccountCheck::Used(const results::Resources& used, const std::string& where) {
  for (const auto& [name, range] : used.Ranges()) {
    const double slack = kRounding * range.max;
    if (range.min > range.mean + slack || range.mean > range.max + slack) {
      Add(rule::kResources, where,
          fmt::format("{}: the mean of {} lies outside min and max, {} and {}", name, range.mean, range.min,
                      range.max));
    }
    if (name.ends_with("percent") && range.max > 100 * (1 + kRounding))
      Add(rule::kResources, where, fmt::format("{}: {} % is more than all", name, range.max));
  }
  if (used.samples < 1 || used.wall_s <= 0 || used.period_ms <= 0) {
    Add(rule::kResources, where,
        fmt::format("{} samples every {} ms in {} s are no account of anything", used.samples, used.period_ms,
                    used.wall_s));
  }
}

// The resources are those of the last run; a level tells what any of its runs had.
void AccountCheck::Machine(const results::Resources& used) {
  const std::string where = where_ + ".resources";
  if (used.steal_percent.value_or(0) > kLimits.steal_percent && !HasReason(level_, Reason::kSteal)) {
    Add(rule::kMachine, where,
        fmt::format("the hypervisor took {:.3g} % of the CPU time, limit {:.3g} %; no claim says so",
                    *used.steal_percent, kLimits.steal_percent));
  }
  const double measured_s = level_.runs.empty() ? 0 : level_.runs.back().measured_s;
  if (measured_s > 0 && used.throttled_s.value_or(0) / measured_s > kLimits.throttled_share &&
      !IsInvalidFor(level_, Reason::kThrottling)) {
    Add(rule::kMachine, where,
        fmt::format(
            "a quota held it back for {} of {} s, limit {:.3g} %; both claims should be INVALID for it",
            *used.throttled_s, measured_s, 100 * kLimits.throttled_share));
  }
}

}  // namespace

void CheckAccounts(const LoadResult::Level& level, const std::string& where, std::vector<Finding>& findings) {
  AccountCheck(level, where, findings).Check();
}

}  // namespace weir::load
