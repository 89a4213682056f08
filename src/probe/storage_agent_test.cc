#include "probe/storage_agent.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

namespace weir::probe {
namespace {

// Rank 0 of one host: each step is passed as soon as it is arrived at, by the next call of Pass.
class OneHost final : public cluster::CallContext {
 public:
  int rank() const override { return rank_; }
  int world() const override { return 1; }
  std::stop_token stop() const override { return {}; }
  int connection() const override { return -1; }
  void OnStep(std::function<void(const cluster::PassedStep& step)> passed) override {
    passed_ = std::move(passed);
  }
  Status Arrive(int64_t step, bool last) override {
    arrivals.emplace_back(step, last);
    return {};
  }
  void Pass(int64_t step, bool last, Duration cost) {
    if (passed_) passed_({.step = step, .at = Instant(1s), .last = last, .cost = cost});
  }

  std::vector<std::pair<int64_t, bool>> arrivals;
  int rank_ = 0;

 private:
  std::function<void(const cluster::PassedStep& step)> passed_;
};

using Steps = std::vector<std::pair<int64_t, bool>>;

TEST(ClusterBarrier, PassesStepsAndCountsWhatTheirMessagesTook) {
  OneHost host;
  ClusterBarrier barrier(host);
  Steps passed;
  barrier.Start([&](int64_t step, Instant, bool last) { passed.emplace_back(step, last); });
  barrier.Arrive(0, false);
  host.Pass(0, false, 40us);
  barrier.Arrive(1, true);
  host.Pass(1, true, 60us);
  barrier.Finish();
  host.Pass(2, true, 1s);  // after the end
  EXPECT_EQ(passed, (Steps{{0, false}, {1, true}}));
  EXPECT_EQ(barrier.cost_ns().count(), 2);
  EXPECT_EQ(barrier.cost_ns().Max(), 60'000);
  barrier.Leave();  // the run is over on all hosts
  EXPECT_EQ(host.arrivals, (Steps{{0, false}, {1, true}}));
}

TEST(ClusterBarrier, LetsTheOthersEndWhereThisHostEndsEarly) {
  OneHost host;
  ClusterBarrier barrier(host);
  barrier.Start([](int64_t, Instant, bool) {});
  barrier.Arrive(0, false);
  barrier.Finish();
  barrier.Leave();
  EXPECT_EQ(host.arrivals, (Steps{{0, false}, {1, true}}));
  OneHost other;
  ClusterBarrier(other).Leave();  // before its first step
  EXPECT_EQ(other.arrivals, (Steps{{0, true}}));
}

HostsPlan MemoryPlan() {
  HostsPlan plan{.options = {.profile = {.name = "own", .sample_bytes = 1000, .batch = 4, .step = 10us},
                             .read = {.access = Access::kMemory},
                             .threads = 1,
                             .steps = 5,
                             .limit = 100ms},
                 .path = ".",
                 .set = "",
                 .made = {.samples = 10, .mean_bytes = 1000}};
  return plan;
}

TEST(StorageAgent, OpensASetInMemoryThatIsTheSameOnEachHost) {
  const SteadyClock clock;
  std::vector<std::string> hashes;
  for (const uint64_t bytes : {1000U, 1000U, 1001U}) {
    OneHost host;
    StorageAgent agent(clock);
    HostsPlan plan = MemoryPlan();
    plan.made.mean_bytes = static_cast<double>(bytes);
    const auto opened = agent.Open(plan, cluster::Message(), host);
    ASSERT_TRUE(opened);
    const auto set = SetThere::FromJson(opened->body);
    ASSERT_TRUE(set);
    EXPECT_EQ(set->facts.samples, 10U);
    EXPECT_GT(set->ceiling_samples_per_s, 0);
    hashes.push_back(set->hash);
  }
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_NE(hashes[0], hashes[2]);
}

TEST(StorageAgent, PlaysNothingBeforeASetWasOpened) {
  const SteadyClock clock;
  OneHost host;
  host.rank_ = 1;
  StorageAgent agent(clock);
  const auto answer = agent.Play({.body = HostTask{.hosts = 1, .as_fast = true}.ToJson(), .block = ""}, host);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "no set was opened before");
  const auto space = StorageAgent::Space(MemoryPlan(), host);
  ASSERT_TRUE(space);
  EXPECT_EQ(SpaceThere::FromJson(space->body)->bytes, 0U);
}

}  // namespace
}  // namespace weir::probe
