#include "monitor/snapshot.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>

#include "base/thread.h"
#include "monitor/testing/fake_tree.h"

namespace weir::monitor {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

std::vector<int> Pids(const Snapshot& snapshot) {
  std::vector<int> pids;
  for (const ProcessUse& use : snapshot.processes) pids.push_back(use.pid);
  return pids;
}

TEST(SnapshotReader, FollowsTheTreeOfItsRoots) {
  FakeTree proc;
  proc.PutProcess({.pid = 10, .children = "11 12"});
  proc.PutProcess({.pid = 11, .parent = 10});
  proc.PutProcess({.pid = 12, .parent = 10, .children = "13"});
  proc.PutProcess({.pid = 13, .parent = 12});
  proc.PutProcess({.pid = 99});
  SnapshotReader reader({.proc = proc.root(), .roots = {10}});
  EXPECT_THAT(Pids(reader.Read(Instant{})), UnorderedElementsAre(10, 11, 12, 13));
}

TEST(SnapshotReader, FindsChildrenByTheirParentWhereTheKernelDoesNotListThem) {
  FakeTree proc;
  proc.PutProcess({.pid = 10});
  proc.PutProcess({.pid = 11, .parent = 10});
  proc.PutProcess({.pid = 12, .parent = 11});
  proc.PutProcess({.pid = 99});
  proc.Remove("/10/task/10/children");
  SnapshotReader reader({.proc = proc.root(), .roots = {10}});
  EXPECT_THAT(Pids(reader.Read(Instant{})), UnorderedElementsAre(10, 11, 12));
}

TEST(SnapshotReader, KeepsAProcessWhoseParentEnded) {
  FakeTree proc;
  proc.PutProcess({.pid = 10, .children = "11"});
  proc.PutProcess({.pid = 11, .parent = 10, .children = "12"});
  proc.PutProcess({.pid = 12, .parent = 11});
  SnapshotReader reader({.proc = proc.root(), .roots = {10}});
  reader.Read(Instant{});
  proc.Remove("/11");
  proc.PutProcess({.pid = 10, .children = ""});
  proc.PutProcess({.pid = 12, .parent = 1});
  EXPECT_THAT(Pids(reader.Read(Instant{})), UnorderedElementsAre(10, 12));
}

TEST(SnapshotReader, DoesNotTakeAnotherProcessThatGotTheNumberOfAnEndedOne) {
  FakeTree proc;
  proc.PutProcess({.pid = 10, .children = "11"});
  proc.PutProcess({.pid = 11, .parent = 10, .start = 200});
  SnapshotReader reader({.proc = proc.root(), .roots = {10}});
  reader.Read(Instant{});
  proc.PutProcess({.pid = 10, .children = ""});
  proc.PutProcess({.pid = 11, .parent = 1, .start = 900});
  EXPECT_THAT(Pids(reader.Read(Instant{})), ElementsAre(10));
}

TEST(SnapshotReader, TellsEngineThreadsByTheirNameAndPrefersNanoseconds) {
  FakeTree proc;
  proc.PutProcess({.pid = 10});
  proc.Put("/10/task/21/stat", StatLine({.pid = 21, .name = "engine-0", .user = 3, .system = 1, .start = 7}));
  proc.Put("/10/task/21/schedstat", "41234567 5 9\n");
  proc.Put("/10/task/22/stat", StatLine({.pid = 22, .name = "engine-1", .user = 3, .system = 1}));
  proc.Put("/10/task/23/stat", StatLine({.pid = 23, .name = "decode-0", .user = 3}));
  SnapshotReader reader({.proc = proc.root(), .roots = {10}, .scope = SnapshotReader::Scope::kEngineApart});
  const Snapshot snapshot = reader.Read(Instant{});
  ASSERT_EQ(snapshot.engine_threads.size(), 2u);
  EXPECT_EQ(snapshot.engine_threads[0].cpu, 41234567ns);
  EXPECT_EQ(snapshot.engine_threads[0].start_ticks, 7u);
  EXPECT_EQ(snapshot.engine_threads[1].cpu, 40ms);
}

TEST(SnapshotReader, WaitsForAThreadToTakeItsOwnName) {
  FakeTree proc;
  proc.PutProcess({.pid = 10, .children = "99"});
  proc.Put("/10/task/21/stat", StatLine({.pid = 21, .name = "engine-0", .user = 3}));
  proc.Put("/10/task/22/stat", StatLine({.pid = 22, .name = "main", .user = 3}));
  SnapshotReader reader({.proc = proc.root(), .roots = {10}, .scope = SnapshotReader::Scope::kEngineApart});
  reader.Read(Instant{});
  proc.Put("/10/task/21/stat", StatLine({.pid = 21, .name = "decode-0", .user = 4}));
  proc.Put("/10/task/22/stat", StatLine({.pid = 22, .name = "engine-1", .user = 5}));
  const Snapshot snapshot = reader.Read(Instant{});
  ASSERT_EQ(snapshot.engine_threads.size(), 1u);
  EXPECT_EQ(snapshot.engine_threads[0].tid, 22);
  EXPECT_THAT(Pids(snapshot), ElementsAre(10));
}

TEST(SnapshotReader, LeavesOutWhatIsNotThere) {
  FakeTree proc;
  proc.PutProcess({.pid = 10});
  SnapshotReader reader({.proc = proc.root(), .roots = {10}});
  const Snapshot snapshot = reader.Read(Instant{});
  EXPECT_FALSE(snapshot.machine);
  EXPECT_FALSE(snapshot.memory);
  EXPECT_FALSE(snapshot.network);
  EXPECT_FALSE(snapshot.cpu_pressure);
  EXPECT_FALSE(snapshot.cgroup.memory_bytes);
  EXPECT_FALSE(snapshot.processes[0].io);
}

TEST(SnapshotReader, ReadsTheMachineAfreshEachTime) {
  FakeTree proc;
  proc.PutProcess({.pid = 10});
  proc.Put("/stat", "cpu 100 0 0 900 0 0 0 0\n");
  proc.Put("/pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n");
  SnapshotReader reader({.proc = proc.root(), .roots = {10}});
  EXPECT_EQ(reader.Read(Instant{}).machine->busy, 1s);
  proc.Put("/stat", "cpu 150 0 0 950 0 0 0 0\n");
  EXPECT_EQ(reader.Read(Instant{}).machine->busy, 1500ms);
  EXPECT_EQ(reader.Read(Instant{}).io_pressure, 5us);
}

TEST(SnapshotReader, SaysThatAnEndedProcessHoldsNoMemory) {
  FakeTree proc;
  proc.PutProcess({.pid = 10, .state = 'Z', .user = 5});
  SnapshotReader reader({.proc = proc.root(), .roots = {10}});
  const Snapshot snapshot = reader.Read(Instant{});
  EXPECT_EQ(snapshot.processes[0].cpu, 50ms);
  EXPECT_FALSE(snapshot.processes[0].resident_bytes);
}

TEST(WholeDisks, AreThoseWithHardwareBehindThem) {
  FakeTree sys;
  sys.Put("/block/vda/device/vendor", "0x1af4");
  sys.Put("/block/vda/vda1/partition", "1");
  sys.Put("/block/nvme0n1/device/model", "x");
  sys.Put("/block/dm-0/dm/name", "x");
  sys.Put("/block/loop0/size", "0");
  EXPECT_THAT(WholeDisks(sys.root()), UnorderedElementsAre("vda", "nvme0n1"));
  EXPECT_THAT(WholeDisks(sys.root() + "/none"), ElementsAre());
}

TEST(SnapshotReader, AddsUpTheMachinesDisks) {
  FakeTree tree;
  tree.PutProcess({.pid = 10});
  tree.Put("/block/vda/device/vendor", "0x1af4");
  tree.Put("/diskstats", "254 0 vda 1 0 4 0 1 0 6 0 0 0 0\n254 1 vda1 1 0 4 0 1 0 6 0 0 0 0\n");
  SnapshotReader reader({.proc = tree.root(), .sys = tree.root(), .roots = {10}});
  EXPECT_EQ(reader.Read(Instant{}).disks->read, 2048);
  EXPECT_EQ(reader.Read(Instant{}).disks->written, 3072);
}

TEST(SnapshotReader, TellsTheNetworkOfTheContainerThatTheProcessIsIn) {
  const auto line = [](int bytes) {
    return fmt::format("  eth0: {0} 1 0 0 0 0 0 0 {0} 1 0 0 0 0 0 0\n", bytes);
  };
  FakeTree proc;
  for (const int pid : {10, 11}) proc.PutProcess({.pid = pid});
  proc.Put("/net/dev", line(7));
  proc.Put("/10/net/dev", line(5));
  EXPECT_EQ(SnapshotReader({.proc = proc.root(), .roots = {10}}).Read(Instant{}).network->received, 5);
  EXPECT_EQ(SnapshotReader({.proc = proc.root(), .roots = {11}}).Read(Instant{}).network->received, 7);
}

TEST(SnapshotReader, TellsThreadsAndPeaksOfWhatLives) {
  FakeTree proc;
  proc.PutProcess({.pid = 10, .threads = 7, .children = "11"});
  proc.PutProcess({.pid = 11, .parent = 10, .state = 'Z', .threads = 1});
  proc.Put("/10/status", "Name:\tx\nVmHWM:\t    12 kB\n");
  SnapshotReader plain({.proc = proc.root(), .roots = {10}});
  SnapshotReader with_peaks({.proc = proc.root(), .roots = {10}, .peaks = true});
  EXPECT_FALSE(plain.Read(Instant{}).processes[0].peak_resident_bytes);
  const Snapshot snapshot = with_peaks.Read(Instant{});
  EXPECT_EQ(snapshot.processes[0].peak_resident_bytes, 12 * 1024);
  EXPECT_EQ(snapshot.processes[0].threads, 7);
  EXPECT_EQ(snapshot.processes[1].threads, 0);
}

// A child that nothing in /proc/stat tells of stands for the work that is saved.
TEST(SnapshotReader, LooksForChildrenOnlyWhereSomethingBegan) {
  FakeTree proc;
  proc.PutProcess({.pid = 10});
  proc.Put("/stat", "cpu 1 0 0 1 0 0 0 0\nprocesses 100\n");
  SnapshotReader reader({.proc = proc.root(), .roots = {10}});
  reader.Read(Instant{});
  proc.PutProcess({.pid = 10, .children = "11"});
  proc.PutProcess({.pid = 11, .parent = 10});
  EXPECT_THAT(Pids(reader.Read(Instant{})), ElementsAre(10));
  proc.Put("/stat", "cpu 1 0 0 1 0 0 0 0\nprocesses 101\n");
  EXPECT_THAT(Pids(reader.Read(Instant{})), UnorderedElementsAre(10, 11));
  EXPECT_THAT(Pids(reader.Read(Instant{})), UnorderedElementsAre(10, 11)) << "and keeps them";
}

TEST(SnapshotReader, DoesNotTrustACountOfForksThatIsNone) {
  FakeTree proc;
  proc.PutProcess({.pid = 10});
  proc.Put("/stat", "cpu 1 0 0 1 0 0 0 0\nprocesses 0\n");
  SnapshotReader reader({.proc = proc.root(), .roots = {10}});
  reader.Read(Instant{});
  proc.PutProcess({.pid = 10, .children = "11"});
  proc.PutProcess({.pid = 11, .parent = 10});
  EXPECT_THAT(Pids(reader.Read(Instant{})), UnorderedElementsAre(10, 11));
}

TEST(SnapshotReader, LooksThroughALargeTreeAtEveryTenthReading) {
  FakeTree proc;
  proc.PutProcess({.pid = 10, .threads = 500});
  int forks = 100;
  const auto fork = [&] { proc.Put("/stat", fmt::format("cpu 1 0 0 1 0 0 0 0\nprocesses {}\n", ++forks)); };
  fork();
  SnapshotReader reader({.proc = proc.root(), .roots = {10}});
  reader.Read(Instant{});
  proc.PutProcess({.pid = 10, .threads = 500, .children = "11"});
  proc.PutProcess({.pid = 11, .parent = 10});
  for (int reading = 1; reading < 10; ++reading) {
    fork();
    EXPECT_THAT(Pids(reader.Read(Instant{})), ElementsAre(10)) << reading;
  }
  EXPECT_THAT(Pids(reader.Read(Instant{})), UnorderedElementsAre(10, 11))
      << "also where it was the last fork";
}

TEST(SnapshotReader, FindsANewEngineThreadAndForgetsOneThatEnded) {
  FakeTree proc;
  const auto put = [&](int forks, int threads) {
    proc.Put("/stat", fmt::format("cpu 1 0 0 1 0 0 0 0\nprocesses {}\n", forks));
    proc.PutProcess({.pid = 10, .threads = threads});
  };
  const auto tids = [](const Snapshot& snapshot) {
    std::vector<int> tids;
    for (const ThreadUse& use : snapshot.engine_threads) tids.push_back(use.tid);
    return tids;
  };
  put(100, 2);
  proc.Put("/10/task/21/stat", StatLine({.pid = 21, .name = "engine-0"}));
  SnapshotReader reader({.proc = proc.root(), .roots = {10}, .scope = SnapshotReader::Scope::kEngineApart});
  EXPECT_THAT(tids(reader.Read(Instant{})), ElementsAre(21));
  EXPECT_THAT(tids(reader.Read(Instant{})), ElementsAre(21));
  put(101, 3);
  proc.Put("/10/task/22/stat", StatLine({.pid = 22, .name = "engine-1"}));
  EXPECT_THAT(tids(reader.Read(Instant{})), ElementsAre(21, 22));
  proc.Remove("/10/task/21");
  put(101, 2);
  EXPECT_THAT(tids(reader.Read(Instant{})), ElementsAre(22));
}

// The cost of a reading does not grow with the threads: to open a file for each of 500 would take several
// times this.
TEST(SnapshotReader, ReadsAProcessOfManyThreadsCheaply) {
  std::atomic<bool> over = false;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 500; ++i) {
    threads.push_back(StartThread("worker", [&](std::stop_token) { over.wait(false); }));
  }
  for (const auto scope : {SnapshotReader::Scope::kTrees, SnapshotReader::Scope::kEngineApart}) {
    SnapshotReader reader({.roots = {::getpid()}, .scope = scope});
    for (int look = 0; look < 3; ++look) EXPECT_GE(reader.Read(Instant{}).processes.at(0).threads, 501);
    constexpr int kReadings = 100;
    const Duration before = ThreadCpuTime();
    for (int i = 0; i < kReadings; ++i) reader.Read(Instant{});
    const double microseconds = Microseconds(ThreadCpuTime() - before) / kReadings;
    EXPECT_LT(microseconds, 1500);
    RecordProperty(scope == SnapshotReader::Scope::kTrees ? "tree_us" : "itself_us",
                   fmt::format("{:.0f}", microseconds));
  }
  over = true;
  over.notify_all();
}

}  // namespace
}  // namespace weir::monitor
