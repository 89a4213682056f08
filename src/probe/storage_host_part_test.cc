#include "probe/storage_host_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "probe/storage_hosts.h"

namespace weir::probe {
namespace {

HostTrain Part(int64_t first_sample) {
  HostTrain part{.run = {.accelerators = 2}, .barrier_ns = {}, .ended = Instant(7s)};
  TrainResult& train = part.run.train;
  train.steps = 5;
  train.samples = 40;
  train.bytes = 4000;
  train.compute = 8ms;
  train.wall = 10ms;
  train.set_samples = 4;
  train.stalls.read = 4ms;
  train.stalls.hosts = 2ms;
  train.stall_times.read.Add(4'000'000);
  train.reads.read_ns.Add(1000 * (1 + first_sample));
  train.reads.bytes = 4000;
  train.reads.errors = 1;
  train.reads.first_errors = {"a: gone"};
  train.epochs = {{10, 100}};
  train.order.resize(1);
  train.order[0].Add(first_sample);
  train.order[0].Add(first_sample + 1);
  part.run.machine.device_bytes = 100;
  part.barrier_ns.Add(50'000);
  return part;
}

TEST(HostPart, IsTheSameAfterItsMessage) {
  const HostTrain part = Part(0);
  const auto read = HostTrainFrom(ToMessage(part));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->ended, part.ended);
  EXPECT_EQ(read->barrier_ns.Buckets(), part.barrier_ns.Buckets());
  const TrainResult &there = read->run.train, &here = part.run.train;
  EXPECT_EQ(there.Utilisation(), here.Utilisation());
  EXPECT_EQ(there.SamplesPerSecond(), here.SamplesPerSecond());
  EXPECT_EQ(there.reads.read_ns.Buckets(), here.reads.read_ns.Buckets());
  EXPECT_EQ(there.reads.first_errors, here.reads.first_errors);
  EXPECT_EQ(there.stalls.hosts, here.stalls.hosts);
  EXPECT_EQ(there.order, here.order);
  EXPECT_EQ(there.epochs, here.epochs);
  EXPECT_EQ(ToMessage(*read).body, ToMessage(part).body);
}

TEST(HostPart, OfBrokenBytesIsRefused) {
  cluster::Message message = ToMessage(Part(0));
  message.block.resize(message.block.size() / 2);
  EXPECT_EQ(HostTrainFrom(message).error().code, ErrorCode::kCorrupt);
  message = ToMessage(Part(0));
  message.body.erase("order");
  EXPECT_THAT(HostTrainFrom(message).error().message, testing::HasSubstr("order"));
  message = ToMessage(Part(0));
  message.body["stalls_ns"] = {1, 2};
  EXPECT_THAT(HostTrainFrom(message).error().message, testing::HasSubstr("stalls_ns"));
}

TEST(MergeTraining, AddsCountsAndKeepsTheSlowestTimes) {
  HostTrain slow = Part(2);
  slow.run.train.wall = 20ms;
  slow.run.train.stalls.hosts = 4ms;
  const TrainRun run = MergeTraining({Part(0), slow});
  EXPECT_EQ(run.train.samples, 80);
  EXPECT_EQ(run.train.wall, 20ms);
  EXPECT_EQ(run.train.compute, 8ms);
  EXPECT_EQ(run.train.Utilisation(), 0.4);
  EXPECT_EQ(run.train.stalls.hosts, 3ms);  // the mean
  EXPECT_EQ(run.train.reads.read_ns.count(), 2);
  EXPECT_EQ(run.train.epochs.front(), (std::pair<uint64_t, uint64_t>{20, 200}));
  EXPECT_EQ(run.machine.device_bytes, 200);
}

TEST(CountEpochs, FindsASampleThatWasReadTwiceInAnothersPlace) {
  const TrainRun whole = MergeTraining({Part(0), Part(2)});
  EXPECT_EQ(CountEpochs({whole}).whole, 1);
  EXPECT_EQ(CountEpochs({whole}).exact, 1);
  const TrainRun doubled = MergeTraining({Part(0), Part(1)});  // 0, 1, 1, 2 instead of 0, 1, 2, 3
  EXPECT_EQ(CountEpochs({doubled}).exact, 0);
  EXPECT_EQ(Judge({.runs = {doubled}, .wants_cold = false}).standing, results::Standing::kInvalid);
  EXPECT_EQ(CountEpochs({Part(0).run}).whole, 0);  // half an epoch
}

TEST(JudgeHosts, NamesALostHostAndAnotherBuild) {
  HostsReport report{
      .train = {}, .hosts = {{.name = "a", .build = "1"}, {.name = "b", .build = "1"}}, .lost = ""};
  StorageVerdict good;
  JudgeHosts(report, good);
  EXPECT_EQ(good.standing, results::Standing::kValid);
  report.hosts[1].build = "2";
  StorageVerdict other;
  JudgeHosts(report, other);
  EXPECT_EQ(other.standing, results::Standing::kSuspect);
  report.lost = "b (rank 1): no sign for 4 s";
  StorageVerdict lost;
  JudgeHosts(report, lost);
  EXPECT_EQ(lost.standing, results::Standing::kInvalid);
  EXPECT_EQ(lost.causes.front().reason, "host-lost");
}

TEST(HostTask, WithoutAHostIsRefused) {
  const HostTask task{.accelerators = 3, .repeat = 1, .hosts = 2, .as_fast = true, .begin = Instant(5ns)};
  const auto read = HostTask::FromJson(task.ToJson());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->accelerators, 3);
  EXPECT_EQ(read->begin, task.begin);
  EXPECT_TRUE(read->as_fast);
  EXPECT_FALSE(HostTask::FromJson(HostTask{}.ToJson()));
}

}  // namespace
}  // namespace weir::probe
