#include "launch/process/orphans.h"

#include <gmock/gmock.h>
#include <net/if.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "launch/network/network_link.h"
#include "launch/process/command.h"
#include "launch/ssh/ssh_server.h"
#include "launch/testing/fake_program.h"
#include "launch/testing/fake_ssh.h"
#include "launch/testing/process.h"

namespace weir::launch {
namespace {

using launch::testing::FakeProgram;
using launch::testing::FakeSsh;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Owner, IsThisProcessAndLives) {
  const Owner self = ThisProcess();
  EXPECT_GT(self.start_ticks, 0U);
  EXPECT_TRUE(self.Lives());
}

TEST(Owner, IsDeadWhenItsNumberBelongsToAnother) {
  Owner other = ThisProcess();
  --other.start_ticks;
  EXPECT_FALSE(other.Lives());
  EXPECT_FALSE((Owner{.pid = 1 << 30, .start_ticks = 5}.Lives()));
}

TEST(OwnerOfName, FindsTheOwnerInAName) {
  EXPECT_EQ(OwnerOfName(MakeName(Instant(7ns))), ThisProcess());
  EXPECT_EQ(OwnerOfName("weir-12-3456-789"), (Owner{.pid = 12, .start_ticks = 3456}));
}

TEST(OwnerOfName, LeavesOtherNamesAlone) {
  for (const char* name :
       {"", "weir", "weir-", "weir-server", "weir-12", "weir-12-", "weir-0-5", "weir--1-5", "other-1-2-3"})
    EXPECT_FALSE(OwnerOfName(name).has_value()) << name;
}

TEST(OwnerOfMark, FindsTheOwnerInAMarkOfThisMachineAlone) {
  EXPECT_EQ(OwnerOfMark(MakeMark(Instant(7ns))), ThisProcess());
  EXPECT_EQ(OwnerOfMark(MarkPrefix() + "weir-12-3456-789"), (Owner{.pid = 12, .start_ticks = 3456}));
  EXPECT_FALSE(OwnerOfMark("WEIR_KEPT=00000000-0000-0000-0000-000000000000:weir-12-3456-789").has_value())
      << "another boot, or another machine: its numbers mean nothing here";
  EXPECT_FALSE(OwnerOfMark("WEIR_OWNER=12-3456").has_value());
}

// Those of `all` that bear this owner, as text.
std::vector<std::string> Of(const Owner& owner, const std::vector<Started>& all) {
  std::vector<std::string> names;
  for (const Started& one : all)
    if (one.owner == owner) names.push_back(one.ToString());
  return names;
}

TEST(StillRunning, TellsWhatThisProcessHasStartedUntilItIsGone) {
  const SteadyClock clock;
  EXPECT_TRUE(StillRunning(ThisProcess(), clock.Now(), clock).empty());
  auto process = StartProcess({.command = {"sleep", "1000"}}, clock);
  ASSERT_TRUE(process.has_value());
  const auto running = StillRunning(ThisProcess(), clock.Now(), clock);
  EXPECT_EQ(Of(ThisProcess(), running),
            std::vector<std::string>{"process " + std::to_string((*process)->pid()) + " (sleep)"});
  process->reset();
  EXPECT_TRUE(StillRunning(ThisProcess(), clock.Now() + 60s, clock).empty());
}

TEST(StillRunning, TellsOfContainersByTheirLabel) {
  const SteadyClock clock;
  const std::string name = MakeName(clock.Now());
  const FakeProgram podman("podman",
                           "#!/bin/sh\necho \"$@\" >> \"$0.calls\"\n[ $1 = ps ] && echo " + name + "\n");
  EXPECT_THAT(Of(ThisProcess(), StillRunning(ThisProcess(), clock.Now(), clock)),
              Contains("container " + name));
  EXPECT_EQ(podman.Calls(), "ps --all --filter=label=weir.owner --format={{.Names}}\n");
}

TEST(ListStarted, HoldsNetworkLinksUntilTheyAreGone) {
  const SteadyClock clock;
  auto link = NetworkLink::Create({}, clock);
  if (!link) GTEST_SKIP() << link.error().message;
  const auto a_link = StartsWith("network link weir");
  EXPECT_THAT(Of(ThisProcess(), ListStarted(clock)), Contains(a_link));
  EXPECT_TRUE(StillRunning(ThisProcess(), clock.Now(), clock).empty()) << "a link is no trial's";
  link->reset();
  EXPECT_THAT(Of(ThisProcess(), ListStarted(clock)), Not(Contains(a_link)));
}

// The kernel takes it away, with what runs behind it.
TEST(ListStarted, HoldsNoLinkOfAHolderThatWasKilled) {
  const SteadyClock clock;
  if (const auto link = NetworkLink::Create({}, clock); !link) GTEST_SKIP() << link.error().message;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const auto link = NetworkLink::Create({}, clock);
    const auto process = StartProcess({.command = {"sleep", "1000"}, .link = link->get()}, clock);
    if (process && ::write(ends[1], "x", 1) == 1) ::pause();
    ::_exit(1);
  }
  char made = 0;
  ASSERT_EQ(::read(ends[0], &made, 1), 1);
  ::close(ends[0]), ::close(ends[1]);
  const auto of_holder = [&] {
    auto all = ListStarted(clock);
    std::erase_if(all, [&](const Started& one) { return one.owner.pid != holder; });
    return all;
  };
  EXPECT_EQ(of_holder().size(), 2U) << "a process and a link";
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  const Instant until = clock.Now() + 60s;
  while (!of_holder().empty() && clock.Now() < until) SleepUntil(clock.Now() + 10ms);
  EXPECT_TRUE(of_holder().empty());
}

// One test: another that removed at the same time would take its orphans away.
TEST(RemoveOrphans, TakesAwayWhatHasNoOwnerAndLeavesTheRest) {
  const SteadyClock clock;
  const FakeSsh ssh;
  const FakeProgram podman("podman",
                           "#!/bin/sh\necho \"$@\" >> \"$0.calls\"\n"
                           "case $1 in ps) echo weir-1-1-5 ;; container) exit 1 ;; esac\n");
  const SshHost node{.destination = "me@node"};
  const std::string mark = MarkPrefix() + "weir-1-1-5";  // process 1 did not begin at tick 1
  const auto mine = StartProcess({.command = {"sleep", "1000"}}, clock);
  const auto orphan = StartProcess({.command = {"env", "WEIR_OWNER=1-1", "sleep", "1000"}}, clock);
  const auto there = StartOverSsh(node, {.command = {"sleep", "1000"}, .mark = mark}, SIGTERM, clock);
  ASSERT_TRUE(mine.has_value() && orphan.has_value() && there.has_value());
  const bool links =
      RunWell({.arguments = {"ip", "link", "add", "dev", "weirtest0", "type", "veth"}}, clock) &&
      RunWell({.arguments = {"ip", "link", "set", "weirtest0", "alias", "weir-1-1-6"}}, clock);
  const std::function<bool()> all_there = [&] {
    return std::ranges::count_if(ListStarted(clock), [](const Started& one) {
             return one.kind == Started::Kind::kProcess && one.owner.pid == 1;
           }) == 2;
  };
  ASSERT_TRUE(WaitUntilReady(**orphan, all_there, clock.Now() + 60s, clock).has_value());

  const auto over_ssh = RemoveOrphansOn(node, clock);
  ASSERT_TRUE(over_ssh.has_value()) << over_ssh.error().message;
  EXPECT_THAT(*over_ssh, Contains(HasSubstr("(sleep) on me@node, which process 1 here had left")));
  EXPECT_EQ((*there)->WaitForEnd(clock.Now() + 60s), (Ending{.exit_status = 137, .signal = SIGKILL}));

  const std::vector<std::string> removed = RemoveOrphans(clock);
  EXPECT_THAT(removed, Contains("removed process " + std::to_string((*orphan)->pid()) +
                                " (sleep), which process 1 had left running"));
  EXPECT_THAT(removed, Contains("removed container weir-1-1-5, which process 1 had left behind"));
  EXPECT_THAT(podman.Calls(), HasSubstr("kill --signal=KILL weir-1-1-5\nrm --force weir-1-1-5\n"));
  EXPECT_EQ((*orphan)->WaitForEnd(clock.Now() + 60s), (Ending{.exit_status = 137, .signal = 9}));
  EXPECT_FALSE((*mine)->WaitForEnd(clock.Now()).has_value());
  if (!links) GTEST_SKIP() << "no network device can be made here: the rest is as it should be";
  EXPECT_THAT(removed, Contains("removed network link weirtest0, which process 1 had left behind"));
  EXPECT_EQ(::if_nametoindex("weirtest0"), 0U);
}

}  // namespace
}  // namespace weir::launch
