#include "launch/ssh/ssh.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/file.h"
#include "launch/process/command.h"
#include "launch/process/free_port.h"
#include "launch/process/ready.h"
#include "launch/server.h"
#include "launch/ssh/ssh_server.h"
#include "launch/ssh/ssh_watch.h"
#include "launch/testing/fake_ssh.h"
#include "launch/testing/process.h"
#include "launch/testing/processes.h"
#include "launch/testing/small_server.h"
#include "launch/testing/temporary_folder.h"

namespace weir::launch {
namespace {

using launch::testing::FakeSsh;
using launch::testing::IsGone;
using launch::testing::kSmallServer;
using launch::testing::NumberAfter;
using launch::testing::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(SshArguments, AskNoQuestionAndNoticeALostConnection) {
  EXPECT_THAT(SshArguments({.destination = "me@node"}).value(),
              ElementsAre("ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o",
                          "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "-o",
                          "ClearAllForwardings=yes", "-o", "LogLevel=ERROR", "--", "me@node"));
}

TEST(SshArguments, HoldThePortTheKeyAndTheUsersOptionsFirst) {
  const auto arguments = SshArguments({.destination = "node",
                                       .port = 2222,
                                       .identity = "/keys/a b",
                                       .options = {"BatchMode=no"},
                                       .connect_timeout = 3s});
  ASSERT_TRUE(arguments.has_value());
  EXPECT_EQ((*arguments)[3], "BatchMode=no") << "ssh heeds the first of two";
  EXPECT_THAT(*arguments, ::testing::IsSupersetOf({"ConnectTimeout=3", "-p", "2222", "-i", "/keys/a b"}));
}

TEST(SshArguments, RefuseWhatSshWouldTakeForAnOption) {
  for (const char* name : {"", "me@", "-oProxyCommand=x", "me@-oProxyCommand=x", "a host"}) {
    const auto arguments = SshArguments({.destination = name});
    ASSERT_FALSE(arguments.has_value()) << name;
    EXPECT_EQ(arguments.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(arguments.error().message, HasSubstr("wanted is user@host"));
  }
}

TEST(SshHost, IsReachedAtItsNameOrWhereItIsSaid) {
  EXPECT_EQ(SshHost{.destination = "me@node"}.Address(), "node");
  EXPECT_EQ(SshHost{.destination = "node"}.Address(), "node");
  EXPECT_EQ((SshHost{.destination = "me@node", .address = "10.0.0.7"}.Address()), "10.0.0.7");
}

TEST(PortsIn, AreThoseOfThisNodesOwnEnd) {
  // As the kernel writes it: 0x1F90 is 8080, 0x0016 is 22; the second address of a line is the other end's.
  EXPECT_THAT(PortsIn("  sl  local_address rem_address   st\n"
                      "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000\n"
                      "   1: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A\n"
                      "junk\n"),
              ElementsAre(8080, 22));
}

// Processes there that this one has started; other tests may have theirs on the same machine.
int64_t CountOnHost(const SshHost& host, const Clock& clock) {
  const auto there = ListStartedOn(host, clock);
  EXPECT_TRUE(there.has_value()) << there.error().message;
  return std::ranges::count(*there, ThisProcess(), &StartedThere::owner);
}

class SshTest : public ::testing::Test {
 protected:
  const FakeSsh ssh_;
  const SshHost host_{.destination = "me@localhost"};
  const SteadyClock clock_;
};

TEST_F(SshTest, NamesTheHostAndTheRemedyWhereItCannotBeReached) {
  const auto ports = FreePortsOn({.destination = "me@unreachable"}, 1, clock_);
  ASSERT_FALSE(ports.has_value());
  EXPECT_EQ(ports.error().code, ErrorCode::kIo);
  EXPECT_THAT(
      ports.error().message,
      HasSubstr("ssh me@unreachable: ssh: connect to host me@unreachable port 22: Connection refused; "
                "\"ssh me@unreachable true\" must work from here without a question"));
}

TEST_F(SshTest, CopiesAFolderAndWhatItsLinksPointTo) {
  const TemporaryFolder here, there;
  std::filesystem::create_directories(here.path() + "/model/1");
  std::ofstream(here.path() + "/weights") << std::string(3'000'000, 'w');
  std::ofstream(here.path() + "/model/it's a name") << "one";
  std::filesystem::create_symlink(here.path() + "/weights", here.path() + "/model/1/model.onnx");
  const std::string to = there.path() + "/a folder/that is new";
  for (int i = 0; i < 2; ++i) {  // again: replaced
    const Status copied = CopyOverSsh(host_, {.from = here.path() + "/model", .to_folder = to}, clock_);
    ASSERT_TRUE(copied.has_value()) << copied.error().message;
  }
  EXPECT_EQ(ReadTextFile(to + "/model/it's a name"), "one");
  EXPECT_EQ(std::filesystem::symlink_status(to + "/model/1/model.onnx").type(),
            std::filesystem::file_type::regular);
  EXPECT_EQ(ReadTextFile(to + "/model/1/model.onnx"), std::string(3'000'000, 'w'));
  const Status file = CopyOverSsh(host_, {.from = here.path() + "/weights", .to_folder = to}, clock_);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(std::filesystem::file_size(to + "/weights"), 3'000'000U);
}

TEST_F(SshTest, SaysWhyACopyFailed) {
  const TemporaryFolder here;
  std::ofstream(here.path() + "/file") << "x";
  const auto message = [&](const SshHost& host, const CopyOptions& options) {
    const Status copied = CopyOverSsh(host, options, clock_);
    return copied ? "" : copied.error().message;
  };
  EXPECT_EQ(message(host_, {.from = "/no/such", .to_folder = here.path()}),
            "/no/such: No such file or directory");
  const std::string below = here.path() + "/file/below";
  EXPECT_THAT(message(host_, {.from = here.path() + "/file", .to_folder = below}),
              HasSubstr("to me@localhost: there: exit status 1: mkdir"));
  EXPECT_THAT(message({.destination = "unreachable"}, {.from = here.path() + "/file", .to_folder = "x"}),
              HasSubstr("ssh unreachable: ssh: connect"));
}

TEST_F(SshTest, FindsPortsThatAreFree) {
  const auto ports = FreePortsOn(host_, 3, clock_);
  ASSERT_TRUE(ports.has_value()) << ports.error().message;
  EXPECT_THAT(ssh_.Calls(), StartsWith("me@localhost -T -o BatchMode=yes"));
  EXPECT_EQ(std::set<int>(ports->begin(), ports->end()).size(), 3U);
  for (const int port : *ports) EXPECT_TRUE(port >= 20000 && port < 32768) << port;
}

TEST_F(SshTest, StartsAServerThatEndsWithItsHolder) {
  ServerCommand command{.command = {"python3", "-c", kSmallServer, "{http_port}", "0"},
                        .host = SshHost{.destination = "me@localhost", .address = "127.0.0.1"}};
  auto server = StartServer(command, clock_);
  ASSERT_TRUE(server.has_value()) << server.error().message;
  EXPECT_EQ(server->launched->name(), "python3 on me@localhost");
  const int child = NumberAfter(server->launched->LastWords(), "child=");
  ASSERT_GT(child, 0) << server->launched->LastWords();

  const auto there = ListStartedOn(host_, clock_);
  ASSERT_TRUE(there.has_value()) << there.error().message;
  const auto is_child = [&](const StartedThere& one) {
    return one.pid == child && one.name == "sleep" && one.owner == ThisProcess();
  };
  EXPECT_TRUE(std::ranges::any_of(*there, is_child));

  EXPECT_EQ(server->launched->Stop(60s), Ending{});
  EXPECT_THAT(server->launched->LastWords(), HasSubstr("bye"));
  EXPECT_TRUE(IsGone(child));
  EXPECT_EQ(CountOnHost(host_, clock_), 0);
}

TEST_F(SshTest, TellsTheEndingOfAServerThatIsNotThere) {
  const auto started = StartServer(
      {.command = {"no-such-server"}, .host = SshHost{.destination = "me@localhost", .address = "127.0.0.1"}},
      clock_);
  ASSERT_FALSE(started.has_value());
  EXPECT_EQ(started.error().ending, Ending{.exit_status = 127}) << started.error().message;
}

TEST_F(SshTest, LeavesNothingThereWhenTheConnectionIsLost) {
  ServerCommand command{.command = {"python3", "-c", kSmallServer, "{http_port}", "0"},
                        .host = SshHost{.destination = "me@localhost", .address = "127.0.0.1"}};
  auto server = StartServer(command, clock_);
  ASSERT_TRUE(server.has_value()) << server.error().message;
  const int child = NumberAfter(server->launched->LastWords(), "child=");
  ASSERT_GT(child, 0);
  ::kill(-server->launched->pid(), SIGKILL);  // the ssh program here
  EXPECT_TRUE(server->launched->WaitForEnd(clock_.Now() + 60s).has_value());
  EXPECT_TRUE(IsGone(child));
}

TEST_F(SshTest, LeavesNothingThereWhenItsHolderIsKilled) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    auto server = StartServer({.command = {"python3", "-c", kSmallServer, "{http_port}", "0"},
                               .host = SshHost{.destination = "me@localhost", .address = "127.0.0.1"}},
                              clock_);
    int child = server ? NumberAfter(server->launched->LastWords(), "child=") : 0;
    if (::write(ends[1], &child, sizeof child) == sizeof child) ::pause();
    ::_exit(1);
  }
  int child = 0;
  ASSERT_EQ(::read(ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  ::close(ends[0]), ::close(ends[1]);
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  ASSERT_GT(child, 0);
  EXPECT_TRUE(IsGone(child));
}

constexpr char kFakeWeir[] = R"sh(#!/bin/sh
cat >/dev/null  # until its standard input ends
echo "{\"wall_s\": 1, \"resources\": {\"gpu_label\": \"$*\", \"wall_s\": 1, \"samples\": 1, \"period_ms\": 100}}"
)sh";

TEST_F(SshTest, WatchesWhatRunsThereUntilItIsToldToStop) {
  const testing::FakeProgram weir("weir", kFakeWeir);
  const SshHost host{.destination = "me@localhost", .address = "127.0.0.1"};
  EXPECT_EQ(SshWatch::Start(host, clock_).error().code, ErrorCode::kNotFound);
  auto server =
      StartServer({.command = {"python3", "-c", kSmallServer, "{http_port}", "0"}, .host = host}, clock_);
  ASSERT_TRUE(server.has_value()) << server.error().message;
  auto watch = SshWatch::Start(host, clock_);
  ASSERT_TRUE(watch.has_value()) << watch.error().message;
  const auto used = (*watch)->Stop();
  ASSERT_TRUE(used.has_value()) << used.error().message;
  EXPECT_THAT(used->gpu_label, StartsWith("monitor --until-eof --json - --pid "));
  EXPECT_TRUE(SshWatch::Start(host, clock_).has_value()) << "one that nobody stops ends with its object";
}

TEST_F(SshTest, SaysThatANodeHasNoWeir) {
  const testing::FakeProgram weir("weir", "#!/bin/sh\nexit 127\n");
  const SshHost host{.destination = "me@localhost", .address = "127.0.0.1"};
  auto server =
      StartServer({.command = {"python3", "-c", kSmallServer, "{http_port}", "0"}, .host = host}, clock_);
  ASSERT_TRUE(server.has_value()) << server.error().message;
  const auto used = SshWatch::Start(host, clock_).value()->Stop();
  EXPECT_EQ(used.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(used.error().message, HasSubstr("install it there"));
}

TEST_F(SshTest, AsksTheNodeForTheAddressAtWhichItWasReached) {
  EXPECT_EQ(AddressThere({.destination = "me@node", .address = "10.0.0.9"}, clock_), "10.0.0.9");
  ::setenv("SSH_CONNECTION", "10.0.0.1 50000 10.0.0.2 22", 1);  // as sshd does
  EXPECT_EQ(AddressThere({.destination = "me@node"}, clock_), "10.0.0.2");
  ::setenv("SSH_CONNECTION", "fe80::1 50000 fe80::2%eth0 22", 1);
  EXPECT_EQ(AddressThere({.destination = "me@node"}, clock_), "node");
  ::unsetenv("SSH_CONNECTION");
  EXPECT_EQ(AddressThere({.destination = "me@node"}, clock_), "node");
}

TEST_F(SshTest, ShowsSshsWordsWhereAServerCannotBeStarted) {
  const auto started = StartOverSsh({.destination = "unreachable"},
                                    {.command = {"x"}, .mark = MakeMark(clock_.Now())}, SIGTERM, clock_);
  ASSERT_TRUE(started.has_value());
  const std::function<bool()> never = [] { return false; };
  EXPECT_THAT(
      WaitUntilReady(**started, never, clock_.Now() + 60s, clock_).error().message,
      HasSubstr("x on unreachable ended with exit status 255 before it was ready, its last words:\nssh: "
                "connect to host unreachable"));
}

// The real program, where it is here.
TEST(RealSsh, TakesOurOptionsAndTellsThatNobodyListens) {
  const SteadyClock clock;
  if (!RunCommand({.arguments = {"ssh", "-V"}}, clock)) GTEST_SKIP() << "there is no ssh in PATH";
  const auto ports = FreePortsOn({.destination = "nobody@127.0.0.1", .port = 1}, 1, clock);
  ASSERT_FALSE(ports.has_value());
  EXPECT_EQ(ports.error().code, ErrorCode::kIo);
  EXPECT_THAT(ports.error().message,
              HasSubstr("ssh nobody@127.0.0.1: ssh: connect to host 127.0.0.1 port 1: "
                        "Connection refused; \"ssh nobody@127.0.0.1 true\" must work"));
}

// A server of ssh for this user alone, on a free port of the loopback, with keys of its own.
class RealSshTest : public ::testing::Test {
 protected:
  void SetUp() override {
    constexpr char kSshd[] = "/usr/sbin/sshd";
    if (::access(kSshd, X_OK) != 0) GTEST_SKIP() << kSshd << " is not here: install openssh-server";
    if (::geteuid() == 0 && ::access("/run/sshd", X_OK) != 0)
      GTEST_SKIP() << "sshd as root wants the folder /run/sshd: make it, or start the service once";
    const std::string& folder = folder_.path();
    for (const char* key : {"/host", "/mine"})
      ASSERT_TRUE(RunWell({.arguments = {"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder + key}},
                          clock_));
    const int port = FreePorts(1).value().front();
    std::ofstream(folder + "/config") << "Port " << port << "\nListenAddress 127.0.0.1\nHostKey " << folder
                                      << "/host\nAuthorizedKeysFile " << folder
                                      << "/mine.pub\nPidFile none\nStrictModes no\nUsePAM no\n"
                                         "PasswordAuthentication no\nPermitRootLogin yes\n";
    std::ofstream(folder + "/known") << "[127.0.0.1]:" << port << " "
                                     << ReadTextFile(folder + "/host.pub").value();
    auto sshd = StartProcess({.command = {kSshd, "-D", "-e", "-f", folder + "/config"}}, clock_);
    ASSERT_TRUE(sshd.has_value()) << sshd.error().message;
    sshd_ = std::move(*sshd);
    const std::function<Status()> listens = [&] {
      return AskReady("tcp://127.0.0.1:" + std::to_string(port), 1s);
    };
    const Status ready = WaitUntilReady(*sshd_, listens, clock_.Now() + 60s, clock_);
    ASSERT_TRUE(ready.has_value()) << ready.error().message;
    host_ = {.destination = "127.0.0.1",
             .port = port,
             .identity = folder + "/mine",
             .options = {"UserKnownHostsFile=" + folder + "/known", "IdentitiesOnly=yes"}};
    const auto in = FreePortsOn(host_, 1, clock_);
    if (!in) GTEST_SKIP() << "sshd does not let this user in: " << in.error().message << sshd_->LastWords();
  }

  const SteadyClock clock_;
  const TemporaryFolder folder_;
  std::unique_ptr<Launched> sshd_;
  SshHost host_;
};

TEST_F(RealSshTest, CopiesServesAndLeavesNothing) {
  std::ofstream(folder_.path() + "/weights") << std::string(3'000'000, 'w');
  const Status copied = CopyOverSsh(
      host_, {.from = folder_.path() + "/weights", .to_folder = folder_.path() + "/there"}, clock_);
  ASSERT_TRUE(copied.has_value()) << copied.error().message;
  EXPECT_EQ(ReadTextFile(folder_.path() + "/there/weights"), std::string(3'000'000, 'w'));

  auto server =
      StartServer({.command = {"python3", "-c", kSmallServer, "{http_port}", "0"}, .host = host_}, clock_);
  ASSERT_TRUE(server.has_value()) << server.error().message;
  const int stopped = NumberAfter(server->launched->LastWords(), "child=");
  EXPECT_EQ(server->launched->Stop(60s), Ending{});
  EXPECT_TRUE(IsGone(stopped));

  auto lost =
      StartServer({.command = {"python3", "-c", kSmallServer, "{http_port}", "0"}, .host = host_}, clock_);
  ASSERT_TRUE(lost.has_value()) << lost.error().message;
  const int left = NumberAfter(lost->launched->LastWords(), "child=");
  ::kill(-lost->launched->pid(), SIGKILL);  // the ssh program here
  EXPECT_TRUE(IsGone(left));
  EXPECT_EQ(CountOnHost(host_, clock_), 0);
}

}  // namespace
}  // namespace weir::launch
