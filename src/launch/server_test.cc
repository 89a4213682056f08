#include "launch/server.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "launch/network/network_link.h"
#include "launch/process/free_port.h"
#include "launch/process/orphans.h"
#include "launch/process/ready.h"
#include "launch/testing/processes.h"
#include "launch/testing/small_server.h"
#include "launch/testing/temporary_folder.h"

namespace weir::launch {
namespace {

using launch::testing::IsGone;
using launch::testing::kSmallServer;
using launch::testing::NumberAfter;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Places kPlaces{.ports = {.http = 1000, .grpc = 1001, .metrics = 1002},
                     .address = "10.0.0.1",
                     .model_repository = "/data/models"};

TEST(FillIn, PutsTheValuesIn) {
  EXPECT_EQ(FillIn("--http-port={http_port}", kPlaces), "--http-port=1000");
  EXPECT_EQ(FillIn("http://{address}:{http_port}/x{grpc_port}{metrics_port}", kPlaces),
            "http://10.0.0.1:1000/x10011002");
  EXPECT_EQ(FillIn(std::vector<std::string>{"serve", "{model_repository}/a"}, kPlaces),
            (std::vector<std::string>{"serve", "/data/models/a"}));
}

TEST(FillIn, LeavesOtherBracesAlone) {
  for (const char* text : {"", "{}", "{\"a\":{\"b\":1}}", "${HOME}", "{ print }", "{a", "a}", "{{}}", "{1}"})
    EXPECT_EQ(FillIn(text, kPlaces), text);
  EXPECT_EQ(FillIn("awk '{{print}}' {http_port}", kPlaces), "awk '{print}' 1000");
  EXPECT_EQ(FillIn("{{http_port}}", kPlaces), "{http_port}");
}

TEST(FillIn, NamesAWordThatStandsForNothing) {
  const auto filled = FillIn("--port={htp_port}", kPlaces);
  ASSERT_FALSE(filled.has_value());
  EXPECT_EQ(filled.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(filled.error().message,
            "--port={htp_port}: {htp_port} stands for nothing; known are {http_port}, {grpc_port}, "
            "{metrics_port}, {address} and {model_repository}, and {{htp_port}} is written for the braces "
            "themselves");
}

class ServerTest : public ::testing::Test {
 protected:
  ServerCommand Small(const std::string& busy = "0") {
    return {.command = {"python3", "-c", kSmallServer, "{http_port}", busy, "{address}"},
            .start_timeout = 60s};
  }
  const SteadyClock clock_;
};

TEST_F(ServerTest, RunsUntilItIsLetGoWithAllThatItStarted) {
  int child = 0;
  {
    auto server = StartServer(Small("3"), clock_);
    ASSERT_TRUE(server.has_value()) << server.error().message;
    EXPECT_TRUE(AskHttp(server->http() + "/v2/health/ready", 10s).has_value());
    EXPECT_GT(server->start, Duration::zero());
    EXPECT_NE(server->ports.grpc, server->ports.metrics);
    std::string name;
    std::getline(std::ifstream("/proc/" + std::to_string(server->launched->pid()) + "/comm"), name);
    EXPECT_EQ(name, "python3") << "the server itself is what is watched";
    child = NumberAfter(server->launched->LastWords(), "child=");
    ASSERT_GT(child, 0);
    EXPECT_EQ(server->launched->Stop(60s), Ending{});
    EXPECT_THAT(server->launched->LastWords(), HasSubstr("bye"));
    EXPECT_TRUE(IsGone(child)) << "it was in a session of its own";
    EXPECT_FALSE(AskHttp(server->http(), 10s).has_value());
  }
  {
    auto server = StartServer(Small(), clock_);
    ASSERT_TRUE(server.has_value()) << server.error().message;
    child = NumberAfter(server->launched->LastWords(), "child=");
  }
  EXPECT_TRUE(IsGone(child)) << "let go without a word";
}

TEST_F(ServerTest, IsGoneAfterAKillOfItsHolder) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    auto server = StartServer(Small(), clock_);
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

TEST_F(ServerTest, SaysWhatItSaidLastWhereItIsNotReady) {
  ServerCommand loading = Small("1000000");
  loading.ready = "tcp://{address}:{http_port}";
  const auto other = StartServer(loading, clock_);
  ASSERT_TRUE(other.has_value()) << other.error().message;
  const auto started =
      StartServer(ServerCommand{.command = {"sh", "-c", "echo reading weights; exec sleep 1000"},
                                .ready = other->http() + "/v2/health/ready",
                                .start_timeout = 3s},
                  clock_);
  ASSERT_FALSE(started.has_value());
  EXPECT_EQ(started.error().code, ErrorCode::kDeadline);
  EXPECT_THAT(started.error().message, ::testing::StartsWith("sh was not ready within"));
  EXPECT_THAT(started.error().message, HasSubstr("/v2/health/ready: answered HTTP/1.0 503"));
  EXPECT_THAT(started.error().message, HasSubstr("still loading"));
  EXPECT_THAT(started.error().message, HasSubstr("its last words:\nreading weights"));
}

TEST_F(ServerTest, SaysWhatItSaidLastWhereItEnds) {
  const auto started =
      StartServer(ServerCommand{.command = {"sh", "-c", "echo no model in {model_repository} >&2; exit 9"},
                                .model_repository = "/data/none"},
                  clock_);
  ASSERT_FALSE(started.has_value());
  EXPECT_EQ(started.error().code, ErrorCode::kIo);
  EXPECT_EQ(started.error().message,
            "sh ended with exit status 9 before it was ready, its last words:\nno model in /data/none");
}

TEST_F(ServerTest, HasThePortsThatItCannotBeTold) {
  const int port = FreePorts(1).value().front();
  ServerCommand server = Small();
  server.command[3] = std::to_string(port);
  server.ports.http = port;
  auto started = StartServer(server, clock_);
  ASSERT_TRUE(started.has_value()) << started.error().message;
  EXPECT_EQ(started->http(), "http://127.0.0.1:" + std::to_string(port));
  EXPECT_NE(started->ports.grpc, 0);
}

TEST_F(ServerTest, RunsBehindALink) {
  const auto link = NetworkLink::Create({}, clock_);
  if (!link) GTEST_SKIP() << link.error().message;
  ServerCommand server = Small();
  server.link = link->get();
  const auto started = StartServer(server, clock_);
  ASSERT_TRUE(started.has_value()) << started.error().message;
  EXPECT_EQ(started->address, (*link)->far_address());
}

TEST_F(ServerTest, NamesWhatCannotBe) {
  const auto message = [&](const ServerCommand& server) {
    const auto started = StartServer(server, clock_);
    return started ? "" : started.error().message;
  };
  EXPECT_EQ(message({}), "the server's command is empty");
  EXPECT_THAT(message({.command = {"x", "{port}"}}),
              HasSubstr("the server's command: {port}: {port} stands for"));
  EXPECT_THAT(message({.command = {"x"}, .ready = "https://{address}/"}), HasSubstr("not an http URL"));
  EXPECT_THAT(message({.command = {"x"}, .ready = "{adress}"}), HasSubstr("the ready URL: {adress}"));
}

// The image that tools/container.sh makes, with a model that needs no file.
class ServerImageTest : public ServerTest {
 protected:
  void SetUp() override {
    tool_ = FindContainerTool("localhost/weir", clock_);
    if (!tool_) GTEST_SKIP() << tool_.error().message;
    std::filesystem::create_directories(folder_.path() + "/same");
    std::filesystem::permissions(folder_.path(),
                                 std::filesystem::perms(0755));  // the image's user is not root
    std::ofstream(folder_.path() + "/same/config.pbtxt")
        << "backend: \"emulated\"\nmax_batch_size: 8\n"
           "input [ { name: \"in\" data_type: TYPE_FP32 dims: [ 4 ] } ]\n"
           "output [ { name: \"out\" data_type: TYPE_FP32 dims: [ 4 ] } ]\n";
  }
  ServerImage Image() {
    return {.container = {.image = "localhost/weir",
                          .command = {"--model-repository", "{model_repository}", "--address", "{address}",
                                      "--http-port", "{http_port}", "--grpc-port", "{grpc_port}",
                                      "--metrics-port", "{metrics_port}"}},
            .model_repository = folder_.path()};
  }
  void RunsAndLeavesNothing(const ServerImage& image) {
    auto server = StartServer(image, *tool_, clock_);
    ASSERT_TRUE(server.has_value()) << server.error().message;
    EXPECT_TRUE(AskHttp(server->http() + "/v2/models/same/ready", 10s).has_value());
    EXPECT_FALSE(StillRunning(ThisProcess(), clock_.Now(), clock_).empty());
    EXPECT_EQ(server->launched->Stop(60s), Ending{}) << server->launched->LastWords();
    EXPECT_TRUE(StillRunning(ThisProcess(), clock_.Now() + 60s, clock_).empty());
  }

  const testing::TemporaryFolder folder_;
  Result<ContainerTool> tool_;
};

TEST_F(ServerImageTest, RunsInThisMachinesNetworkWithPortsThatItIsTold) { RunsAndLeavesNothing(Image()); }

TEST_F(ServerImageTest, IsGoneAfterAKillOfItsHolder) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const auto server = StartServer(Image(), *tool_, clock_);
    const Owner self = ThisProcess();
    if (server && ::write(ends[1], &self, sizeof self) == sizeof self) ::pause();
    ::_exit(1);
  }
  ::close(ends[1]);
  Owner owner;
  ASSERT_EQ(::read(ends[0], &owner, sizeof owner), static_cast<ssize_t>(sizeof owner));
  ::close(ends[0]);
  EXPECT_EQ(StillRunning(owner, clock_.Now(), clock_).size(), 1U) << "the container";
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  EXPECT_TRUE(StillRunning(owner, clock_.Now() + 60s, clock_).empty());
}

TEST_F(ServerImageTest, RunsBehindALink) {
  const auto link = NetworkLink::Create({}, clock_);
  if (!link) GTEST_SKIP() << link.error().message;
  ServerImage image = Image();
  image.container.link = link->get();
  RunsAndLeavesNothing(image);
}

TEST_F(ServerTest, OfAnImageThatIsNotHereSaysSo) {
  const auto started =
      StartServer(ServerImage{.container = {.image = "localhost/no-such-image"}},
                  ContainerTool{.program = "sh", .global_options = {"-c", "exit 125"}}, clock_);
  ASSERT_FALSE(started.has_value());
  EXPECT_THAT(started.error().message,
              HasSubstr("container localhost/no-such-image ended with exit status 125"));
}

}  // namespace
}  // namespace weir::launch
