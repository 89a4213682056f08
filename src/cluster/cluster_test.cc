#include "cluster/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <future>

#include "base/thread.h"
#include "cluster/agent.h"

namespace weir::cluster {
namespace {

using testing::HasSubstr;

constexpr char kToken[] = "0123456789abcdef";

// Agents on threads of this process, each behind a pair of sockets.
class Hosts {
 public:
  explicit Hosts(int world) : cluster(world, clock) {
    for (int rank = 0; rank < world; ++rank) {
      int ends[2];
      CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
      threads_.push_back(StartThread("agent", [this, rank, fd = ends[0]](const std::stop_token& stop) {
        auto connection = Connection::Open(UniqueFd(fd), Side::kListener, kToken, clock.Now() + 60s, clock);
        CHECK(connection.has_value());
        (void)ServeSession(
            **connection, {.name = "host", .build = "test", .rank = rank, .world = 0},
            [] { return MakeVerbs(); }, clock, stop);
      }));
      auto connection = Connection::Open(UniqueFd(ends[1]), Side::kCaller, kToken, clock.Now() + 60s, clock);
      CHECK(connection.has_value());
      CHECK(cluster.Add(*std::move(connection), std::string(1, static_cast<char>('a' + rank)), rank,
                        clock.Now() + 60s));
    }
  }

  SteadyClock clock;
  std::vector<std::jthread> threads_;
  Cluster cluster;

 private:
  static Verbs MakeVerbs() {
    Verbs verbs;
    verbs["echo"] = [calls = 0](const Message& request, CallContext& context) mutable -> Result<Message> {
      return Message{
          .body = {{"rank", context.rank()}, {"calls", ++calls}, {"word", request.body.value("word", "")}},
          .block = request.block};
    };
    verbs["steps"] = [](const Message& request, CallContext& context) -> Result<Message> {
      const auto steps = request.body["steps"].get<int64_t>();
      std::promise<int64_t> done;
      int64_t passed = 0;
      context.OnStep([&](const PassedStep& step) {
        CHECK(step.step == passed++);
        if (step.step + 1 == steps)
          done.set_value(passed);
        else
          CHECK(context.Arrive(step.step + 1, step.step + 2 == steps));
      });
      TRY_STATUS(context.Arrive(0, false));
      const int64_t count = done.get_future().get();
      context.OnStep({});
      return Message{.body = {{"passed", count}}, .block = ""};
    };
    verbs["die"] = [](const Message& request, CallContext& context) -> Result<Message> {
      if (context.rank() == request.body["rank"].get<int>()) {
        ::shutdown(context.connection(), SHUT_RDWR);
        return Fail(ErrorCode::kInternal, "dead");
      }
      std::promise<void> stopped;
      const std::stop_callback asked(context.stop(), [&] { stopped.set_value(); });
      stopped.get_future().get();
      return Fail(ErrorCode::kCancelled, "stopped");
    };
    return verbs;
  }
};

TEST(Cluster, CallsEachAgentAndTakesItsAnswer) {
  Hosts hosts(2);
  for (int call = 1; call <= 2; ++call) {
    const auto answers = hosts.cluster.CallAll(
        "echo", Message{.body = {{"word", "x"}}, .block = std::string(100'000, 'b')}, {});
    ASSERT_TRUE(answers) << answers.error().message;
    for (int rank = 0; rank < 2; ++rank) {
      const Message& answer = (*answers)[static_cast<size_t>(rank)];
      EXPECT_EQ(answer.body["rank"], rank);
      EXPECT_EQ(answer.body["calls"], call);
      EXPECT_EQ(answer.body["word"], "x");
      EXPECT_EQ(answer.block.size(), 100'000);
    }
  }
}

TEST(Cluster, FindsTheOffsetOfAClockThatIsTheSame) {
  Hosts hosts(2);
  ASSERT_TRUE(hosts.cluster.Synchronise());
  for (const Host& host : hosts.cluster.hosts()) {
    ASSERT_TRUE(host.clock);
    EXPECT_LE(std::chrono::abs(host.clock->offset), host.clock->error);
  }
}

TEST(Cluster, HoldsEveryRankAtTheBarrier) {
  Hosts hosts(3);
  const auto answers = hosts.cluster.CallAll("steps", Message{.body = {{"steps", 100}}, .block = ""}, {});
  ASSERT_TRUE(answers) << answers.error().message;
  for (const Message& answer : *answers) EXPECT_EQ(answer.body["passed"], 100);
}

TEST(Cluster, NamesALostHostAndStopsTheOthers) {
  Hosts hosts(2);
  const auto answers =
      hosts.cluster.CallAll("die", std::vector<Message>(2, Message{.body = {{"rank", 1}}, .block = ""}), {});
  EXPECT_EQ(answers[0].error().code, ErrorCode::kCancelled);
  EXPECT_EQ(answers[1].error().code, ErrorCode::kIo);
  EXPECT_EQ(hosts.cluster.LostText(), "b (rank 1): closed the connection");
  const auto again = hosts.cluster.CallAll("echo", Message(), {});
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("b (rank 1)"));
}

TEST(Cluster, NamesAVerbThatAnAgentLacks) {
  Hosts hosts(1);
  const auto answers = hosts.cluster.CallAll("exec", Message(), {});
  ASSERT_FALSE(answers);
  EXPECT_EQ(answers.error().code, ErrorCode::kUnsupported);
}

TEST(TokenFor, WantsATokenBeyondThisMachine) {
  EXPECT_EQ(TokenFor({"10.0.0.1", 1}, kToken), kToken);
  EXPECT_EQ(TokenFor({"127.0.0.1", 1}, kToken), kToken);
  const auto open = TokenFor({"0.0.0.0", 1}, "");
  ASSERT_FALSE(open);
  EXPECT_THAT(open.error().message, HasSubstr("--token-file"));
}

}  // namespace
}  // namespace weir::cluster
