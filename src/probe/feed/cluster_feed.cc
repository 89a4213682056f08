#include "probe/feed/cluster_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "probe/feed/feed_agent.h"
#include "probe/feed/merge.h"

namespace weir::probe {
namespace {

constexpr Duration kAhead = 150ms;  // of the start, so that every host knows of it in time

// Returns the instant at which all begin, for each host by its own clock.
std::vector<cluster::Message> BeginAt(Instant begin, const std::vector<cluster::Host>& hosts) {
  std::vector<cluster::Message> requests;
  for (const cluster::Host& host : hosts) {
    const Instant there = host.clock ? host.clock->There(begin) : begin;
    requests.push_back({.body = {{kFeedBegin, there.time_since_epoch().count()}}, .block = ""});
  }
  return requests;
}

}  // namespace

Status CheckFeedHosts(const feed::FeedOptions& options) {
  if (options.bad == feed::BadPolicy::kSkip)
    return Fail(ErrorCode::kInvalidArgument,
                "--bad skip goes with one host: ranks that leave samples out fall out of step; take replace");
  if (options.slice.rank != 0 || options.slice.world != 1)
    return Fail(ErrorCode::kInvalidArgument,
                "--rank and --world go with one host: the agents have their own ranks");
  return {};
}

Result<results::FeedResult> FeedOnHosts(cluster::Cluster& hosts, const cluster::Message& open,
                                        const Clock& clock, const std::stop_token& stop) {
  TRY_STATUS(hosts.CallAll(kFeedOpen, open, stop));
  (void)hosts.Synchronise();  // a loss shows below
  Duration slowest{};
  for (const cluster::Host& host : hosts.hosts())
    if (host.clock) slowest = std::max(slowest, host.clock->error);
  auto answers = hosts.CallAll(kFeedPlay, BeginAt(clock.Now() + kAhead + 4 * slowest, hosts.hosts()), stop);
  std::vector<HostFeed> parts;
  for (cluster::Host& host : hosts.hosts()) {
    auto& answer = answers[parts.size()];
    HostFeed part{.host = std::move(host), .result = {}};
    const std::string place = fmt::format("{} (rank {})", part.host.name, parts.size());
    if (answer)
      part.result = TRY_CONTEXT(results::FeedResult::FromJson(answer->body), place);
    else if (!part.host.lost)
      return Context(place, answer.error());
    parts.push_back(std::move(part));
  }
  return MergeFeeds(parts);
}

}  // namespace weir::probe
