#include "launch/process/command.h"

#include <gmock/gmock.h>
#include <signal.h>

namespace weir::launch {
namespace {

using testing::HasSubstr;

TEST(RunCommand, GivesBothStreamsAndTheEnd) {
  const SteadyClock clock;
  const auto output = RunCommand({.arguments = {"sh", "-c", "echo out; echo err >&2; exit 3"}}, clock);
  ASSERT_TRUE(output.has_value()) << output.error().message;
  EXPECT_EQ(output->out, "out\n");
  EXPECT_EQ(output->err, "err\n");
  EXPECT_EQ(output->ending, (Ending{.exit_status = 3}));
}

TEST(RunCommand, ReadsMoreThanAPipeHolds) {
  const SteadyClock clock;
  const auto output = RunCommand({.arguments = {"head", "-c", "1000000", "/dev/zero"}}, clock);
  ASSERT_TRUE(output.has_value());
  EXPECT_EQ(output->out.size(), 1'000'000U);
}

TEST(RunCommand, DoesNotWaitForWhatTheCommandLeftRunning) {
  const SteadyClock clock;
  const auto output =
      RunCommand({.arguments = {"sh", "-c", "sleep 1000 & echo done"}, .timeout = 100s}, clock);
  ASSERT_TRUE(output.has_value());
  EXPECT_EQ(output->out, "done\n");
}

TEST(RunCommand, KillsWhatTakesTooLong) {
  const SteadyClock clock;
  const auto output =
      RunCommand({.arguments = {"sh", "-c", "trap '' TERM; sleep 1000"}, .timeout = 20ms}, clock);
  ASSERT_FALSE(output.has_value());
  EXPECT_EQ(output.error().code, ErrorCode::kDeadline);
  EXPECT_EQ(output.error().message,
            R"(sh -c 'trap '\'''\'' TERM; sleep 1000' took longer than 0.02 s and was killed)");
}

TEST(RunCommand, NamesAProgramThatIsNotThere) {
  const SteadyClock clock;
  const auto output = RunCommand({.arguments = {"/no/such/program"}}, clock);
  ASSERT_FALSE(output.has_value());
  EXPECT_EQ(output.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(output.error().message, "cannot start /no/such/program: No such file or directory");
}

TEST(RunCommand, NamesAProgramThatMayNotBeStarted) {
  const SteadyClock clock;
  const auto output = RunCommand({.arguments = {"/etc/passwd"}}, clock);
  ASSERT_FALSE(output.has_value());
  EXPECT_EQ(output.error().message, "cannot start /etc/passwd: Permission denied");
}

TEST(RunCommand, PutsItsVariablesOverThoseOfThisProcess) {
  const SteadyClock clock;
  const auto output = RunCommand({.arguments = {"sh", "-c", "echo $HOME-$ADDED-${PATH:+path}"},
                                  .environment = {"HOME=elsewhere", "ADDED=more"}},
                                 clock);
  ASSERT_TRUE(output.has_value());
  EXPECT_EQ(output->out, "elsewhere-more-path\n");
}

TEST(RunCommand, PinsToTheCpusNamed) {
  const SteadyClock clock;
  const auto output = RunCommand({.arguments = {"nproc"}, .cpus = {0}}, clock);
  ASSERT_TRUE(output.has_value());
  EXPECT_EQ(output->out, "1\n");
}

TEST(RunCommand, NamesACpuThatCannotBe) {
  const SteadyClock clock;
  EXPECT_EQ(RunCommand({.arguments = {"true"}, .cpus = {-1}}, clock).error().message, "there is no CPU -1");
  EXPECT_THAT(RunCommand({.arguments = {"true"}, .cpus = {1023}}, clock).error().message,
              HasSubstr("true: CPU list"));
}

TEST(RunWell, GivesTheCommandAndItsWordsWhereItFails) {
  const SteadyClock clock;
  EXPECT_EQ(RunWell({.arguments = {"echo", "fine"}}, clock), "fine\n");
  const auto failed = RunWell({.arguments = {"sh", "-c", "echo no room >&2; exit 1"}}, clock);
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().message, "sh -c 'echo no room >&2; exit 1': exit status 1: no room");
}

TEST(ToShell, QuotesWhatAShellWouldChange) {
  EXPECT_EQ(ToShell({"tc", "--rate=5gbit", "a b", "", "it's", "$x"}),
            R"(tc --rate=5gbit 'a b' '' 'it'\''s' '$x')");
}

TEST(Ending, IsSaidAsPeopleSayIt) {
  EXPECT_EQ(Ending{.exit_status = 2}.ToString(), "exit status 2");
  EXPECT_EQ((Ending{.exit_status = 137, .signal = SIGKILL}.ToString()), "signal 9 (Killed)");
}

}  // namespace
}  // namespace weir::launch
