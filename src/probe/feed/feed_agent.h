// A host's rank of a feed that several hosts take together.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "cluster/agent.h"
#include "cluster/message.h"
#include "feed/bench_session.h"

namespace weir::probe {

inline constexpr char kFeedOpen[] = "feed.open", kFeedPlay[] = "feed.play";

// One thread at a time.
class FeedAgent {
 public:
  explicit FeedAgent(const Clock& clock) : clock_(clock) {}

  // Opens the set as this host's rank, and takes the batches of the warm-up. The errors are those of
  // CheckFeedHosts and of feed::BenchSession.
  Result<cluster::Message> Open(feed::BenchSetup setup, cluster::CallContext& context);
  // Measures from the instant that the request names, a step of all ranks at a time. Blocks.
  // kInvalidArgument before Open, and a second time after it.
  Result<cluster::Message> Play(const cluster::Message& request, cluster::CallContext& context);

 private:
  const Clock& clock_;
  std::unique_ptr<feed::BenchSession> session_;
};

}  // namespace weir::probe
