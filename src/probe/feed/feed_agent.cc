#include "probe/feed/feed_agent.h"

#include <utility>

#include "base/mutex.h"
#include "base/thread.h"
#include "probe/feed/cluster_feed.h"

namespace weir::probe {
namespace {

constexpr Duration kLook = 100ms;

// The steps that all ranks have come to, for the thread that takes batches.
class Meeting {
 public:
  explicit Meeting(cluster::CallContext& context, const Clock& clock) : context_(context), clock_(clock) {
    context.OnStep([this](const cluster::PassedStep& step) { Take(step); });
  }
  ~Meeting() { context_.OnStep({}); }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  Result<bool> Meet(int64_t step, bool last) {
    TRY_STATUS(context_.Arrive(step, last));
    const std::stop_token stop = context_.stop();
    const MutexLock lock(mutex_);
    while (passed_.step < step) {
      if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped between two steps");
      changed_.WaitUntil(mutex_, clock_.Now() + kLook);
    }
    return passed_.last;
  }

 private:
  void Take(const cluster::PassedStep& step) {
    const MutexLock lock(mutex_);
    passed_ = step;
    changed_.NotifyAll();
  }

  cluster::CallContext& context_;
  const Clock& clock_;
  Mutex mutex_;
  CondVar changed_;
  cluster::PassedStep passed_ GUARDED_BY(mutex_) = {.step = -1, .at = {}};
};

}  // namespace

Result<cluster::Message> FeedAgent::Open(feed::BenchSetup setup, cluster::CallContext& context) {
  session_.reset();
  TRY_STATUS(CheckFeedHosts(setup.feed));
  setup.feed.slice.rank = context.rank();
  setup.feed.slice.world = context.world();
  auto session = TRY(feed::BenchSession::Open(std::move(setup), clock_));
  TRY_STATUS(session->WarmUp(context.stop()));
  session_ = std::move(session);
  return cluster::Message();
}

Result<cluster::Message> FeedAgent::Play(const cluster::Message& request, cluster::CallContext& context) {
  const auto session = std::exchange(session_, nullptr);  // it measures once
  if (session == nullptr) return Fail(ErrorCode::kInvalidArgument, "no set was opened before");
  const Instant begin{Duration(TRY(GetInteger(request.body, kFeedBegin)))};
  TRY_STATUS(cluster::CheckBegin(begin, clock_.Now()));
  Meeting meeting(context, clock_);
  session->MeetBy([&](int64_t step, bool last) { return meeting.Meet(step, last); });
  SleepUntil(begin);
  const results::FeedResult result = TRY(session->Run(context.stop(), [](double, int64_t) {}));
  return cluster::Message{.body = result.ToJson(), .block = ""};
}

}  // namespace weir::probe
