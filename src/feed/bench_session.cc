#include "feed/bench_session.h"

#include <utility>

#include "base/thread.h"
#include "monitor/resources.h"

namespace weir::feed {

Result<std::unique_ptr<BenchSession>> BenchSession::Open(BenchSetup setup, const Clock& clock) {
  const auto source = TRY(OpenSource(setup.set, setup.source));
  if (!setup.masks.empty()) setup.feed.masks = TRY(OpenMasks(setup.masks, *source, {}));
  auto feed = TRY(Feed::Open(source, std::move(setup.feed), clock));
  if (!setup.state.empty()) TRY_STATUS(feed->SetState(TRY_CONTEXT(ParseState(setup.state), "the state")));
  return std::unique_ptr<BenchSession>(
      new BenchSession(std::move(setup.set), std::move(setup.bench), std::move(feed), clock));
}

Status BenchSession::WarmUp(const std::stop_token& stop) {
  const Instant begin = clock_.Now();
  for (; bench_.warm_up > 0 && !stop.stop_requested(); --bench_.warm_up) {
    TRY_STATUS(feed_->Next());
    if (first_batch_s_ == 0) first_batch_s_ = Seconds(clock_.Now() - begin);
  }
  return {};
}

Result<results::FeedResult> BenchSession::Run(const std::stop_token& stop,
                                              const std::function<void(double, int64_t)>& progress) {
  const auto monitor = TRY(monitor::ResourceMonitor::Start(clock_, {}));
  BenchFigures figures = TRY(RunBench(*feed_, bench_, clock_, stop, progress));
  if (first_batch_s_ > 0) figures.first_batch_s = first_batch_s_;
  results::FeedResult result = MakeResult(*feed_, figures, mixing_, monitor->Stop(), UsableCpus());
  result.set = EscapeBytes(set_);
  result.state = TRY(ParseJson(FormatState(feed_->state())));
  return result;
}

int64_t BenchSession::SamplesWanted() const {
  return bench_.duration > Duration{}
             ? 0
             : bench_.epochs * feed_->BatchesPerEpoch() * feed_->options().slice.batch;
}

}  // namespace weir::feed
