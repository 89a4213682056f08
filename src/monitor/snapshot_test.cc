#include "monitor/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace weir::monitor
