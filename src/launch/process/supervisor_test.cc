#include "launch/process/supervisor.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/process/launched.h"
#include "launch/process/orphans.h"
#include "launch/testing/processes.h"

namespace weir::launch {
namespace {

using ::testing::HasSubstr;
using testing::IsGone;
using testing::NumberAfter;

class KeeperTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<KeptProgram>> TryStart(const std::string& script, const std::string& shell = "sh",
                                                KeptProgram::Options options = {}, Duration silence = {}) {
    const Kept kept{.command = {"sh", "-c", script}, .mark = MakeMark(clock_.Now()), .silence = silence};
    options.name = "script";
    return KeptProgram::Start(std::move(options), {.arguments = KeeperArguments(kept, shell)}, clock_);
  }
  std::unique_ptr<KeptProgram> Start(const std::string& script, const std::string& shell = "sh",
                                     KeptProgram::Options options = {}, Duration silence = {}) {
    auto program = TryStart(script, shell, std::move(options), silence);
    EXPECT_TRUE(program.has_value()) << program.error().message;
    return std::move(*program);
  }
  // The number that the program says after `word`, once it has.
  int WaitForNumber(Launched& program, const std::string& word) {
    const std::function<bool()> said = [&] {
      const std::string words = program.LastWords();
      return words.find(word) != std::string::npos && words.find('\n', words.find(word)) != std::string::npos;
    };
    const Status ready = WaitUntilReady(program, said, clock_.Now() + 60s, clock_);
    EXPECT_TRUE(ready.has_value()) << ready.error().message;
    return NumberAfter(program.LastWords(), word);
  }

  const SteadyClock clock_;
};

// Each shell that may be found on a node.
class KeeperInShell : public KeeperTest, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Shells, KeeperInShell, ::testing::Values("sh", "bash"));

TEST_P(KeeperInShell, TellsHowTheCommandEnded) {
  EXPECT_EQ(Start("exit 0", GetParam())->WaitForEnd(clock_.Now() + 60s), Ending{});
  EXPECT_EQ(Start("exit 3", GetParam())->WaitForEnd(clock_.Now() + 60s), (Ending{.exit_status = 3}));
  EXPECT_EQ(Start("kill -s KILL $$", GetParam())->WaitForEnd(clock_.Now() + 60s),
            (Ending{.exit_status = 137, .signal = SIGKILL}));
}

TEST_P(KeeperInShell, PassesOnTheSignalThatEndsIt) {
  const auto program =
      Start("trap 'echo bye; exit 4' TERM; echo up=$$; while :; do sleep 0.01; done", GetParam());
  WaitForNumber(*program, "up=");
  EXPECT_EQ(program->Stop(60s), (Ending{.exit_status = 4}));
  EXPECT_TRUE(program->LastWords().ends_with("bye\n")) << program->LastWords();
  EXPECT_EQ(program->Stop(60s), (Ending{.exit_status = 4})) << "again: the same";
}

TEST_P(KeeperInShell, LetsTheCommandHearAnInterrupt) {
  const auto program = Start("trap 'exit 5' INT; echo up=$$; while :; do sleep 0.01; done", GetParam(),
                             {.stop_signal = SIGINT});
  WaitForNumber(*program, "up=");
  EXPECT_EQ(program->Stop(60s), (Ending{.exit_status = 5}));
}

// As nginx and many Python servers do: the mark in the environment is gone then.
TEST_P(KeeperInShell, PassesTheSignalToAProgramThatWritesItsTitleOverItsEnvironment) {
  const auto program = Start(
      R"(exec perl -e '$SIG{TERM} = sub { exit 7 }; $0 = "titled" x 4000; $| = 1; print "up=$$\n"; sleep 1000')",
      GetParam());
  WaitForNumber(*program, "up=");
  EXPECT_EQ(program->Stop(60s), (Ending{.exit_status = 7}));
}

TEST_P(KeeperInShell, KillsWhatDoesNotHeed) {
  const auto program = Start("trap '' TERM; echo up=$$; while :; do sleep 0.01; done", GetParam());
  const int pid = WaitForNumber(*program, "up=");
  EXPECT_EQ(program->Stop(50ms), (Ending{.exit_status = 137, .signal = SIGKILL}));
  EXPECT_TRUE(IsGone(pid));
}

TEST_P(KeeperInShell, TakesAlongWhatHasLeftItsProcessGroup) {
  const auto program = Start(
      "setsid sh -c 'trap \"\" TERM HUP; echo away=$$; while :; do sleep 0.01; done' & wait", GetParam());
  const int away = WaitForNumber(*program, "away=");
  ASSERT_GT(away, 0);
  program->Stop(50ms);
  EXPECT_TRUE(IsGone(away));
}

TEST_P(KeeperInShell, LeavesNothingWhenTheCommandEndsByItself) {
  const auto program =
      Start("(setsid sh -c 'echo away=$$; exec sleep 1000 >&2' &) | head -n 1; exit 6", GetParam());
  EXPECT_EQ(program->WaitForEnd(clock_.Now() + 60s), (Ending{.exit_status = 6}));
  const int away = NumberAfter(program->LastWords(), "away=");
  ASSERT_GT(away, 0) << program->LastWords();
  EXPECT_TRUE(IsGone(away));
}

TEST_P(KeeperInShell, LeavesNothingWhenItsHolderIsKilled) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const auto program = TryStart(
        "trap '' TERM HUP; setsid sh -c 'echo away=$$; exec sleep 1000' & echo here=$$; "
        "while :; do sleep 0.01; done",
        GetParam());
    int pids[2] = {program ? WaitForNumber(**program, "here=") : 0,
                   program ? WaitForNumber(**program, "away=") : 0};
    if (::write(ends[1], pids, sizeof pids) == sizeof pids) ::pause();
    ::_exit(1);
  }
  int pids[2] = {};
  ASSERT_EQ(::read(ends[0], pids, sizeof pids), static_cast<ssize_t>(sizeof pids));
  ::close(ends[0]), ::close(ends[1]);
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  for (const int pid : pids) {
    ASSERT_GT(pid, 0);
    EXPECT_TRUE(IsGone(pid));
  }
}

TEST_F(KeeperTest, TellsTheNumberOfTheCommandAndNotItsOwn) {
  const Kept kept{.command = {"sh", "-c", "echo up=$$; sleep 1000; true"}, .mark = MakeMark(clock_.Now())};
  const auto program =
      KeptProgram::Start({.name = "script", .mark = kept.mark}, {.arguments = KeeperArguments(kept)}, clock_);
  ASSERT_TRUE(program.has_value()) << program.error().message;
  const int number = WaitForNumber(**program, "up=");  // before it runs there is the supervisor's only
  EXPECT_EQ((*program)->pid(), number);
}

TEST_F(KeeperTest, MayItselfBeKilled) {
  const auto program = Start("echo up=$$; exec sleep 1000");
  const int pid = WaitForNumber(*program, "up=");
  ::kill(program->pid(), SIGKILL);
  ASSERT_TRUE(program->WaitForEnd(clock_.Now() + 60s).has_value());
  EXPECT_TRUE(IsGone(pid)) << "it was in the supervisor's process group";
}

TEST_F(KeeperTest, EndsWhatHeardNothingForTooLongWhereTheShellCanTell) {
  const auto silent = Start("echo up=$$; exec sleep 1000", "bash", {}, 1s);
  EXPECT_EQ(silent->WaitForEnd(clock_.Now() + 60s), (Ending{.exit_status = 137, .signal = SIGKILL}));
  const auto heard = Start("sleep 2.5; exit 7", "bash", {.beat = 100ms}, 1s);
  EXPECT_EQ(heard->WaitForEnd(clock_.Now() + 60s), (Ending{.exit_status = 7}));
}

TEST_F(KeeperTest, GivesTheCommandItsEnvironmentAndFolderAndNoInput) {
  const Kept kept{.command = {"sh", "-c", "echo \"$A|$B\"; pwd; cat; echo end"},
                  .environment = {"A=one two", "B='$HOME'"},
                  .working_folder = "/usr",
                  .mark = MakeMark(clock_.Now())};
  const auto program = KeptProgram::Start({.name = "x"}, {.arguments = KeeperArguments(kept)}, clock_);
  ASSERT_TRUE(program.has_value()) << program.error().message;
  EXPECT_EQ((*program)->WaitForEnd(clock_.Now() + 60s), Ending{});
  EXPECT_EQ((*program)->LastWords(), "one two|'$HOME'\n/usr\nend\n");
}

TEST_F(KeeperTest, NamesAProgramOrAFolderThatIsNotThere) {
  const auto words = [&](const Kept& kept) {
    const auto program = KeptProgram::Start({.name = "x"}, {.arguments = KeeperArguments(kept)}, clock_);
    EXPECT_TRUE(program.has_value());
    const auto ending = (*program)->WaitForEnd(clock_.Now() + 60s);
    EXPECT_NE(ending.value_or(Ending{}), Ending{});
    return (*program)->LastWords();
  };
  EXPECT_THAT(words({.command = {"/no/such/server"}, .mark = MakeMark(clock_.Now())}),
              HasSubstr("/no/such/server"));
  EXPECT_THAT(words({.command = {"true"}, .working_folder = "/no/such", .mark = MakeMark(clock_.Now())}),
              HasSubstr("/no/such"));
}

}  // namespace
}  // namespace weir::launch
