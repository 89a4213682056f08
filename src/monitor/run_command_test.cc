#include "monitor/run_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace weir::monitor {
namespace {

Result<CommandUsage> RunScript(const std::string& script) {
  const SteadyClock clock;
  return RunAndMonitor({"sh", "-c", script}, clock);
}

TEST(RunAndMonitor, TellsTheExitStatus) {
  EXPECT_EQ(RunScript("exit 7")->exit_status, 7);
  const auto killed = RunScript("kill -TERM $$");
  EXPECT_EQ(killed->exit_status, 128 + SIGTERM);
  EXPECT_EQ(killed->signal, SIGTERM);
}

TEST(RunAndMonitor, KnowsTheCpuTimeOfACommandShorterThanAPeriod) {
  const auto usage = RunScript("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done");
  ASSERT_TRUE(usage && usage->resources.app_cpu);
  const double cpu = usage->user_s + usage->system_s;
  EXPECT_GT(cpu, 0.001);
  EXPECT_NEAR(usage->resources.app_cpu->mean * usage->resources.wall_s, cpu, 0.02);
}

TEST(RunAndMonitor, KnowsTheMemoryOfACommand) {
  const auto usage = RunScript("i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done");
  ASSERT_TRUE(usage && usage->max_resident_bytes && usage->resources.process_memory_bytes);
  EXPECT_GT(*usage->max_resident_bytes, 100 << 10);
  EXPECT_GT(usage->resources.process_memory_bytes->max, 100 << 10);
  EXPECT_FALSE(usage->resources.largest_process_bytes) << "it is told of once";
}

TEST(RunAndMonitor, CountsTheCommandsChildren) {
  const auto usage = RunScript("(i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done) & wait");
  EXPECT_GT(usage->resources.app_cpu->mean * usage->resources.wall_s, 0.02);
}

// The kernel's own account of a process begins with the memory of the one that started it.
TEST(RunAndMonitor, LeavesItsOwnMemoryOutOfTheLargestProcess) {
  constexpr int64_t kOurs = 200 << 20;
  std::vector<char> ours(kOurs);
  for (size_t i = 0; i < ours.size(); i += 4096) ours[i] = 1;
  const auto small = RunScript("i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done");
  ASSERT_TRUE(small && small->max_resident_bytes);
  EXPECT_GT(*small->max_resident_bytes, 200 << 10);
  EXPECT_LT(*small->max_resident_bytes, 50 << 20);
}

TEST(RunAndMonitor, KnowsALargeProcessExactlyHoweverShortItWas) {
  // A block of 300 MB is read into memory and let go, faster than a sample.
  const auto large = RunScript("dd if=/dev/zero of=/dev/null bs=300M count=1 2>&1");
  ASSERT_TRUE(large && large->max_resident_bytes);
  EXPECT_GT(*large->max_resident_bytes, int64_t{300} << 20);
  EXPECT_LT(*large->max_resident_bytes, int64_t{330} << 20);
}

TEST(RunAndMonitor, NamesACommandThatIsNotThere) {
  const SteadyClock clock;
  const auto usage = RunAndMonitor({"no-such-command-here"}, clock);
  ASSERT_FALSE(usage);
  EXPECT_EQ(usage.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(usage.error().message, testing::HasSubstr("cannot start no-such-command-here"));
  EXPECT_FALSE(RunAndMonitor({}, clock));
}

TEST(RunAndMonitor, PassesSignalsOnAndOutlivesThem) {
  const auto usage = RunScript("trap 'exit 5' TERM; kill -TERM $PPID; while :; do :; done");
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->exit_status, 5);
}

TEST(RunAndMonitor, TakesASignalThatCameWithTheCommandsEndForTheCommands) {
  EXPECT_EQ(RunScript("kill -INT $PPID; kill -INT $$")->signal, SIGINT);
}

TEST(RunAndMonitor, LeavesTheSignalMaskAsItWas) {
  RunScript("true");
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, nullptr, &now);
  EXPECT_FALSE(sigismember(&now, SIGINT));
}

}  // namespace
}  // namespace weir::monitor
