#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "launch/testing/process.h"

namespace weir::launch {
namespace {

using testing::HasSubstr;

class ProcessTest : public testing::Test {
 protected:
  std::unique_ptr<Launched> Start(const std::string& script) {
    auto process = StartProcess({.command = {"sh", "-c", script}}, clock_);
    EXPECT_TRUE(process.has_value()) << process.error().message;
    return std::move(*process);
  }
  // Waits until the program has said `word`.
  Status WaitFor(Launched& process, const std::string& word) {
    return WaitUntilReady(
        process, [&] { return process.LastWords().find(word) != std::string::npos; }, clock_.Now() + 60s,
        clock_);
  }
  // Waits until process `pid`, which is not our child, is gone or a zombie that nobody has reaped yet.
  bool IsGone(int pid) {
    for (const Instant until = clock_.Now() + 60s; clock_.Now() < until; SleepUntil(clock_.Now() + 1ms)) {
      std::string stat;
      std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/stat"), stat);
      if (stat.empty() || stat.find(") Z ") != std::string::npos) return true;
    }
    return false;
  }

  const SteadyClock clock_;
};

TEST_F(ProcessTest, EndsAtTheFirstAsking) {
  const auto process = Start("trap 'echo bye; exit 0' TERM; echo up; sleep 1000 & wait");
  ASSERT_TRUE(WaitFor(*process, "up").has_value());
  EXPECT_FALSE(process->WaitForEnd(clock_.Now()).has_value());
  EXPECT_EQ(process->Stop(60s), Ending{});
  EXPECT_TRUE(process->LastWords().ends_with("bye\n")) << process->LastWords();
  EXPECT_EQ(process->Stop(60s), Ending{}) << "again: the same";
}

TEST_F(ProcessTest, IsKilledWhenItDoesNotHeed) {
  const auto process = Start("trap '' TERM; echo up; while :; do sleep 0.01; done");
  ASSERT_TRUE(WaitFor(*process, "up").has_value());
  EXPECT_EQ(process->Stop(10ms), (Ending{.exit_status = 137, .signal = SIGKILL}));
}

TEST_F(ProcessTest, TellsOfAnEarlyEndWithItsLastWords) {
  const auto process = Start("echo port 8000 is taken >&2; exit 1");
  const auto ready = WaitUntilReady(*process, [] { return false; }, clock_.Now() + 60s, clock_);
  ASSERT_FALSE(ready.has_value());
  EXPECT_EQ(ready.error().code, ErrorCode::kIo);
  EXPECT_EQ(ready.error().ending, Ending{.exit_status = 1});
  EXPECT_EQ(ready.error().message,
            "sh ended with exit status 1 before it was ready, its last words:\nport 8000 is taken");
}

TEST_F(ProcessTest, IsNotWaitedForBeyondTheDeadline) {
  const auto process = Start("sleep 1000");
  const Status ready = WaitUntilReady(*process, [] { return false; }, clock_.Now() + 20ms, clock_);
  ASSERT_FALSE(ready.has_value());
  EXPECT_EQ(ready.error().code, ErrorCode::kDeadline);
  EXPECT_THAT(ready.error().message, HasSubstr("sh was not ready within"));
  EXPECT_THAT(ready.error().message, HasSubstr("and said nothing"));
}

TEST_F(ProcessTest, KeepsTheLastOfMuchOutput) {
  const auto process = Start("seq 1 100000; echo end");
  ASSERT_TRUE(process->WaitForEnd(clock_.Now() + 60s).has_value());
  EXPECT_EQ(process->LastWords().size(), 8192U);
  EXPECT_TRUE(process->LastWords().ends_with("99999\n100000\nend\n"));
}

TEST_F(ProcessTest, TakesItsWholeGroupAlong) {
  const auto process = Start("sleep 1000 & echo child=$!; wait");
  ASSERT_TRUE(WaitFor(*process, "\n").has_value());
  const int grandchild = std::atoi(process->LastWords().substr(6).c_str());
  ASSERT_GT(grandchild, 0);
  process->Stop(60s);
  EXPECT_TRUE(IsGone(grandchild));
}

TEST_F(ProcessTest, DoesNotOutliveItsHolder) {
  int pid = 0;
  {
    const auto process = Start("trap '' TERM; echo up; while :; do sleep 0.01; done");
    ASSERT_TRUE(WaitFor(*process, "up").has_value());
    pid = process->pid();
  }
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST_F(ProcessTest, DoesNotOutliveAKilledParent) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {  // a parent of its own, which is killed
    const auto process = StartProcess({.command = {"sleep", "1000"}}, clock_);
    const int pid = process ? (*process)->pid() : -1;
    if (::write(ends[1], &pid, sizeof pid) == sizeof pid) ::pause();
    ::_exit(1);
  }
  int pid = 0;
  ASSERT_EQ(::read(ends[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
  ::close(ends[0]), ::close(ends[1]);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  ASSERT_GT(pid, 0);
  EXPECT_TRUE(IsGone(pid));
}

TEST_F(ProcessTest, BlocksNoSignalThatItsParentBlocks) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto process = Start("echo up; sleep 1000");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(WaitFor(*process, "up").has_value());
  EXPECT_EQ(process->Stop(60s), (Ending{.exit_status = 143, .signal = SIGTERM}));
}

TEST_F(ProcessTest, RunsInItsFolderAndIsReachedHere) {
  const auto process = StartProcess({.command = {"pwd"}, .working_folder = "/usr"}, clock_);
  ASSERT_TRUE(process.has_value());
  EXPECT_EQ((*process)->WaitForEnd(clock_.Now() + 60s), Ending{});
  EXPECT_EQ((*process)->LastWords(), "/usr\n");
  EXPECT_EQ((*process)->address(), "127.0.0.1");
  EXPECT_EQ((*process)->name(), "pwd");
}

TEST_F(ProcessTest, NamesTheFolderThatIsNotThere) {
  const auto process = StartProcess({.command = {"pwd"}, .working_folder = "/no-such-folder"}, clock_);
  ASSERT_FALSE(process.has_value());
  EXPECT_EQ(process.error().message, "cannot start pwd: working folder: No such file or directory");
  EXPECT_FALSE(StartProcess({}, clock_).has_value());
}

}  // namespace
}  // namespace weir::launch
