#include "launch/leftovers.h"

#include <gmock/gmock.h>

#include "launch/command.h"
#include "launch/process.h"

namespace weir::launch {
namespace {

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

TEST(RemoveLeftovers, LeavesWhatLivesAndKillsWhatHasNoOwner) {
  const SteadyClock clock;
  const auto mine = StartProcess({.command = {"sleep", "1000"}}, clock);
  const auto orphan = StartProcess({.command = {"env", "WEIR_OWNER=1-1", "sleep", "1000"}}, clock);
  ASSERT_TRUE(mine.has_value() && orphan.has_value());
  const auto orphaned = [&] {
    return RunWell({.arguments = {"cat", "/proc/" + std::to_string((*orphan)->pid()) + "/environ"}}, clock)
               .value_or("")
               .find("WEIR_OWNER=1-1") != std::string::npos;
  };
  ASSERT_TRUE(WaitUntilReady(**orphan, orphaned, clock.Now() + 60s, clock).has_value());
  EXPECT_THAT(RemoveLeftovers(clock),
              testing::Contains(testing::HasSubstr("which process 1 had left running")));
  EXPECT_EQ((*orphan)->WaitForEnd(clock.Now() + 60s), (Ending{.exit_status = 137, .signal = 9}));
  EXPECT_FALSE((*mine)->WaitForEnd(clock.Now()).has_value());
}

}  // namespace
}  // namespace weir::launch
