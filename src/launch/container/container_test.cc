#include "launch/container/container.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/process/orphans.h"
#include "launch/testing/fake_program.h"
#include "launch/testing/processes.h"

namespace weir::launch {
namespace {

using ::testing::ElementsAre;

TEST(RunArguments, AskForTheHostsNetworkAndNothingElseByDefault) {
  EXPECT_THAT(
      RunArguments({.program = "podman"}, {.image = "localhost/weir"}, "weir-1-2-3"),
      ElementsAre("podman", "run", "--rm", "--name=weir-1-2-3", "--label=" + OwnerLabel(), "--pull=never",
                  "--log-driver=none", "--no-healthcheck", "--network=host", "localhost/weir"));
}

TEST(RunArguments, HoldWhatTheToolNeedsHereAndWhatWasAskedFor) {
  const ContainerTool tool{
      .program = "podman", .global_options = {"--runtime=runc"}, .run_options = {"--ulimit=nproc=9:9"}};
  const ContainerOptions options{.image = "server",
                                 .command = {"--model-repository", "/models"},
                                 .environment = {"A=b c"},
                                 .mounts = {{.from = "/data/made", .to = "/models"}},
                                 .cpu_list = {0, 2},
                                 .cpus = 1.5,
                                 .memory_bytes = 512 << 20};
  EXPECT_THAT(
      RunArguments(tool, options, "n"),
      ElementsAre("podman", "--runtime=runc", "run", "--rm", "--name=n", "--label=" + OwnerLabel(),
                  "--pull=never", "--log-driver=none", "--no-healthcheck", "--network=host",
                  "--ulimit=nproc=9:9", "--env=A=b c", "--volume=/data/made:/models:ro", "--cpuset-cpus=0,2",
                  "--cpus=1.5", "--memory=536870912b", "server", "--model-repository", "/models"));
}

TEST(ToolsToTry, BeginWithTheToolsOwnDefaults) {
  const auto tools = ToolsToTry("podman", 20000, 96365);
  ASSERT_EQ(tools.size(), 6U);
  EXPECT_THAT(tools[0].global_options, ElementsAre());
  EXPECT_THAT(tools[0].run_options, ElementsAre());
  EXPECT_THAT(tools[1].run_options, ElementsAre("--ulimit=nofile=20000:20000", "--ulimit=nproc=32768:32768"));
  EXPECT_THAT(tools[3].global_options, ElementsAre("--runtime=runc"));
  EXPECT_EQ(ToolsToTry("docker", 20000, 100).size(), 2U) << "docker's runtimes are its daemon's affair";
  EXPECT_THAT(ToolsToTry("docker", 20000, 100)[1].run_options,
              ElementsAre("--ulimit=nofile=20000:20000", "--ulimit=nproc=100:100"));
}

// A tool whose container heeds no SIGTERM.
constexpr char kDeafTool[] = R"sh(#!/bin/sh
case $1 in
  run) trap "" TERM; echo $$ > "$0.pid.new"; mv "$0.pid.new" "$0.pid"; while :; do sleep 0.02; done ;;
  inspect) cat "$0.pid" ;;
  kill) echo "$@" >> "$0.calls"; kill -s KILL "$(cat "$0.pid")" ;;
  rm) echo "$@" >> "$0.calls" ;;
esac
)sh";

TEST(StartContainer, LeavesNothingWhenItsHolderIsKilled) {
  const SteadyClock clock;
  const testing::FakeProgram tool("podman", kDeafTool);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const auto container = StartContainer({.program = "podman"}, {.image = "x"}, clock);
    const int pid = container ? (*container)->pid() : 0;
    if (::write(ends[1], &pid, sizeof pid) == sizeof pid) ::pause();
    ::_exit(1);
  }
  int pid = 0;
  ASSERT_EQ(::read(ends[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
  ::close(ends[0]), ::close(ends[1]);
  ASSERT_GT(pid, 0);
  EXPECT_EQ(tool.Calls(), "");
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  EXPECT_TRUE(testing::IsGone(pid));
  EXPECT_THAT(tool.Calls(), ::testing::StartsWith("kill --signal=KILL weir-" + std::to_string(holder)));
}

TEST(StartContainer, StopsWhatDoesNotHeed) {
  const SteadyClock clock;
  const testing::FakeProgram tool("podman", kDeafTool);
  const auto container = StartContainer({.program = "podman"}, {.image = "x"}, clock);
  ASSERT_TRUE(container.has_value()) << container.error().message;
  const int pid = (*container)->pid();
  EXPECT_EQ((*container)->Stop(20ms), (Ending{.exit_status = 137}));
  EXPECT_TRUE(testing::IsGone(pid));
}

}  // namespace
}  // namespace weir::launch
