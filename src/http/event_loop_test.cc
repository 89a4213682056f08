#include "http/event_loop.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

namespace weir::http {
namespace {

struct Pair {
  Pair() {
    int fds[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    ours = UniqueFd(fds[0]);
    theirs = UniqueFd(fds[1]);
  }
  void Say(std::string_view text) const {
    CHECK(write(theirs.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  UniqueFd ours, theirs;
};

class Told : public EventLoop::Watcher {
 public:
  explicit Told(std::function<void(EventLoop::Readiness)> then) : then_(std::move(then)) {}
  void OnReady(EventLoop::Readiness ready) override { then_(ready); }

 private:
  const std::function<void(EventLoop::Readiness)> then_;
};

class EventLoopTest : public ::testing::Test {
 protected:
  void RunAll() {
    while (loop_->PollOne()) continue;
  }
  void RunUntil(const bool& done) {
    while (!done) loop_->RunOne();
  }
  EventLoop::Work Note(char c) {
    return [this, c] { said_ += c; };
  }
  const SteadyClock clock_;
  const std::unique_ptr<EventLoop> loop_ = *EventLoop::Create(clock_);
  std::string said_;
};

TEST_F(EventLoopTest, PostedWorkRunsInItsTurn) {
  EXPECT_FALSE(loop_->PollOne());
  loop_->Post([this] {
    EXPECT_TRUE(loop_->InLoop());
    loop_->Post(Note('c'));
    said_ += 'a';
  });
  loop_->Post(Note('b'));
  EXPECT_TRUE(loop_->PollOne());
  EXPECT_EQ(said_, "a");
  RunAll();
  EXPECT_EQ(said_, "abc");
  EXPECT_FALSE(loop_->InLoop());
}

TEST_F(EventLoopTest, WorkFromAnotherThreadWakesIt) {
  for (int i = 0; i < 100; ++i) {
    std::jthread other([this] { loop_->Post(Note('x')); });
    loop_->RunOne();
    EXPECT_EQ(said_.size(), static_cast<size_t>(i + 1));
  }
}

TEST_F(EventLoopTest, ManyThreadsMayPost) {
  int sum = 0;
  {
    std::vector<std::jthread> others;
    for (int i = 0; i < 4; ++i) {
      others.emplace_back([&] {
        for (int k = 0; k < 1000; ++k) loop_->Post([&sum] { ++sum; });
      });
    }
    while (sum < 4000) loop_->RunOne();
  }
  EXPECT_EQ(sum, 4000);
  EXPECT_FALSE(loop_->PollOne());
}

TEST_F(EventLoopTest, TimersRunWhenTheyAreDueTheEarlierFirst) {
  bool over = false;
  const Instant now = clock_.Now();
  loop_->At(now + 3ms, [&] {
    EXPECT_GE(clock_.Now(), now + 3ms);
    over = true;
  });
  loop_->At(now + 2ms, Note('b'));
  loop_->At(now + 1ms, Note('a'));
  loop_->At(now + 2ms, Note('c'));
  loop_->At(now + 1h, Note('!'));
  RunUntil(over);
  EXPECT_EQ(said_, "abc");
}

TEST_F(EventLoopTest, ATimerOfThePastRunsAtOnceButNotFromWithinAt) {
  loop_->At(Instant{}, Note('a'));
  loop_->At(Instant(-1s), Note('b'));
  EXPECT_EQ(said_, "");
  loop_->RunOne();
  loop_->RunOne();
  EXPECT_EQ(said_, "ba");
}

TEST_F(EventLoopTest, ACancelledTimerDoesNotRunThoughItWasDue) {
  const EventLoop::Timer second = loop_->At(Instant(2ns), Note('!'));
  const EventLoop::Timer first = loop_->At(Instant(1ns), [&] { loop_->Cancel(second); });
  bool over = false;
  loop_->At(clock_.Now() + 1ms, [&] { over = true; });
  RunUntil(over);
  EXPECT_EQ(said_, "");
  loop_->Cancel(first);  // it has run
}

TEST_F(EventLoopTest, ATimerSetByATimerIsNotForgotten) {
  bool over = false;
  loop_->At(clock_.Now() + 1ms, [&] { loop_->At(clock_.Now() + 1ms, [&] { over = true; }); });
  RunUntil(over);
}

TEST_F(EventLoopTest, ASocketIsToldOfWhatIsNewOnce) {
  const Pair pair;
  int readable = 0;
  ASSERT_TRUE(loop_->Watch(pair.ours.get(), std::make_shared<Told>([&](EventLoop::Readiness ready) {
                             readable += ready.readable ? 1 : 0;
                             EXPECT_TRUE(ready.writable);
                             EXPECT_FALSE(ready.ended);
                           })));
  RunAll();
  EXPECT_EQ(readable, 0);
  pair.Say("one");
  RunAll();
  EXPECT_EQ(readable, 1);
  RunAll();  // unread, and nothing new
  EXPECT_EQ(readable, 1);
  pair.Say("two");
  RunAll();
  EXPECT_EQ(readable, 2);
}

TEST_F(EventLoopTest, BytesOfBeforeAreToldOfAndTheEndWithThem) {
  Pair pair;
  pair.Say("last words");
  pair.theirs = UniqueFd();
  int told = 0;
  ASSERT_TRUE(loop_->Watch(pair.ours.get(), std::make_shared<Told>([&](EventLoop::Readiness ready) {
                             ++told;
                             EXPECT_TRUE(ready.readable);
                             EXPECT_TRUE(ready.ended);
                           })));
  RunAll();
  EXPECT_EQ(told, 1);
}

TEST_F(EventLoopTest, WhoIsForgottenIsToldNothingEvenIfItWasReady) {
  const Pair pairs[2];
  std::weak_ptr<Told> alive[2];
  int told = 0;
  for (int i = 0; i < 2; ++i) {
    const auto watcher = std::make_shared<Told>([&, i](EventLoop::Readiness) {
      ++told;
      for (const Pair& pair : pairs) loop_->Forget(pair.ours.get());
      EXPECT_FALSE(alive[i].expired()) << "while it is told";
    });
    alive[i] = watcher;
    ASSERT_TRUE(loop_->Watch(pairs[i].ours.get(), watcher));
    pairs[i].Say("both are ready");
  }
  RunAll();
  EXPECT_EQ(told, 1);
  for (const auto& each : alive) EXPECT_TRUE(each.expired());
  loop_->Forget(pairs[0].ours.get());  // it is already
}

TEST_F(EventLoopTest, SocketsAreNotKeptWaitingByWorkThatPostsItselfAgain) {
  const Pair pair;
  bool told = false;
  ASSERT_TRUE(loop_->Watch(
      pair.ours.get(), std::make_shared<Told>([&](EventLoop::Readiness ready) { told = ready.readable; })));
  std::function<void()> again = [&] { loop_->Post([&] { again(); }); };
  again();
  pair.Say("here");
  for (int i = 0; i < 10; ++i) loop_->RunOne();
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace weir::http
