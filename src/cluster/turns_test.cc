#include "cluster/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/seed.h"

namespace weir::cluster {
namespace {

using testing::HasSubstr;

const ManualClock kClock;

// Words of every kind, for an end that says anything at any time.
std::vector<Word> EveryWord(int64_t n) {
  return {word::Hello{.name = "a", .build = "b", .rank = {}, .world = 0},
          word::Welcome{.rank = 0, .world = 2},
          word::Refuse{.why = "full"},
          word::Ping{.n = n},
          word::Pong{.n = n, .at = 5},
          word::Call{.id = n, .verb = "x", .payload = {}},
          word::Answer{.id = n, .payload = {}},
          word::Fault{.id = n, .code = ErrorCode::kIo, .message = "m"},
          word::Stop{},
          word::Arrive{.step = n, .last = false},
          word::Release{.step = n, .last = false, .waited_ns = 0},
          word::Beat{},
          word::Bye{}};
}

AgentTurns Welcomed() {
  AgentTurns turns(std::nullopt, 0);
  EXPECT_TRUE(turns.Take(word::Welcome{.rank = 0, .world = 2}, kClock.Now()));
  return turns;
}

TEST(Words, ComeBackFromTheirMessages) {
  for (const Word& word : EveryWord(7)) {
    const auto read = WordFrom(ToMessage(word));
    ASSERT_TRUE(read) << KindOf(word) << ": " << read.error().message;
    EXPECT_EQ(KindOf(*read), KindOf(word));
    EXPECT_EQ(DumpJson(ToMessage(*read).body), DumpJson(ToMessage(word).body));
  }
}

TEST(Words, OfAnotherTypeOrRangeAreRefusedByName) {
  const char* const kWrong[] = {
      R"({"kind":"release","step":"x","last":false,"waited_ns":0})",
      R"({"kind":"release","step":1,"last":1,"waited_ns":0})",
      R"({"kind":"release","step":1,"last":false,"waited_ns":-1})",
      R"({"kind":"arrive","step":0,"last":[]})",
      R"({"kind":"arrive","step":1.5,"last":true})",
      R"({"kind":"welcome","rank":0,"world":0})",
      R"({"kind":"welcome","rank":4294967296,"world":4294967297})",
      R"({"kind":"welcome","rank":2,"world":2})",
      R"({"kind":"hello","name":"a","build":"b","world":-1})",
      R"({"kind":"hello","name":"a","build":"b","world":0,"rank":4294967296})",
      R"({"kind":"hello","name":7,"build":"b","world":0})",
      R"({"kind":"pong","n":0,"at":9223372036854775807})",
      R"({"kind":"call","id":0,"verb":{},"body":{}})",
      R"({"kind":"call","id":0,"verb":"x"})",
      R"({"kind":"fault","id":0,"code":99,"message":"m"})",
      R"({"kind":["bye"]})",
      R"({"kind":"shutdown"})",
      R"({})",
  };
  for (const char* text : kWrong) {
    const auto read = WordFrom({.body = ParseJson(text).value(), .block = ""});
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt) << text;
  }
  EXPECT_FALSE(WordFrom({.body = {{"kind", "beat"}}, .block = "x"}));
}

TEST(AgentTurns, TakeNothingBeforeTheirWelcome) {
  for (const Word& word : EveryWord(0)) {
    AgentTurns turns(std::nullopt, 0);
    const bool may =
        std::holds_alternative<word::Welcome>(word) || std::holds_alternative<word::Refuse>(word);
    EXPECT_EQ(turns.Take(word, kClock.Now()).has_value(), may) << KindOf(word);
  }
}

TEST(AgentTurns, RefuseAnotherPlaceThanTheyWereStartedFor) {
  EXPECT_FALSE(AgentTurns(1, 0).Take(word::Welcome{.rank = 0, .world = 2}, kClock.Now()));
  EXPECT_FALSE(AgentTurns(std::nullopt, 3).Take(word::Welcome{.rank = 0, .world = 2}, kClock.Now()));
  EXPECT_TRUE(AgentTurns(1, 2).Take(word::Welcome{.rank = 1, .world = 2}, kClock.Now()));
}

TEST(AgentTurns, TakeOneCallAtATimeEachOfANewNumber) {
  AgentTurns turns = Welcomed();
  ASSERT_TRUE(turns.Take(word::Call{.id = 3, .verb = "x", .payload = {}}, kClock.Now()));
  EXPECT_FALSE(turns.Take(word::Call{.id = 4, .verb = "x", .payload = {}}, kClock.Now()));
  turns.EndCall();
  EXPECT_FALSE(turns.Take(word::Call{.id = 3, .verb = "x", .payload = {}}, kClock.Now()));
  EXPECT_TRUE(turns.Take(word::Call{.id = 5, .verb = "x", .payload = {}}, kClock.Now()));
}

TEST(AgentTurns, PassTheStepsTheyCameToInOrder) {
  ManualClock clock;
  AgentTurns turns = Welcomed();
  EXPECT_FALSE(turns.Take(word::Release{.step = 0, .last = false, .waited_ns = 0}, clock.Now()));
  turns.Arrive(0, clock.Now());
  turns.Arrive(1, clock.Now());
  clock.Advance(5ms);
  const auto turn = turns.Take(word::Release{.step = 0, .last = true, .waited_ns = 2'000'000}, clock.Now());
  ASSERT_TRUE(turn);
  const PassedStep step = std::get<PassedStep>(*turn);
  EXPECT_EQ(step.step, 0);
  EXPECT_TRUE(step.last);
  EXPECT_EQ(step.cost, 3ms);
  // The release of a run that has ended may be under way; no other may.
  turns.EndSteps();
  EXPECT_TRUE(turns.Take(word::Release{.step = 1, .last = false, .waited_ns = 0}, clock.Now()));
  const auto again = turns.Take(word::Release{.step = 1, .last = false, .waited_ns = 0}, clock.Now());
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("\"release\" out of order"));
}

TEST(RankTurns, TakeAHelloFirstAndOnce) {
  for (const Word& word : EveryWord(0))
    EXPECT_EQ(RankTurns().Take(word).has_value(), std::holds_alternative<word::Hello>(word)) << KindOf(word);
  RankTurns turns;
  ASSERT_TRUE(turns.Take(EveryWord(0).front()));
  EXPECT_FALSE(turns.Take(EveryWord(0).front()));
}

TEST(RankTurns, TakeAnswersAndArrivalsOfAnOpenCallOnly) {
  RankTurns turns;
  ASSERT_TRUE(turns.Take(EveryWord(0).front()));
  EXPECT_FALSE(turns.Take(word::Arrive{.step = 0, .last = false}));
  turns.Call(7);
  EXPECT_TRUE(turns.Take(word::Arrive{.step = 0, .last = false}));
  EXPECT_FALSE(turns.Take(word::Answer{.id = 6, .payload = {}}));
  EXPECT_TRUE(turns.Take(word::Answer{.id = 7, .payload = {}}));
  EXPECT_FALSE(turns.Take(word::Answer{.id = 7, .payload = {}}));
  EXPECT_FALSE(turns.called());
}

TEST(RankTurns, TakeEachPingsAnswerOnce) {
  RankTurns turns;
  ASSERT_TRUE(turns.Take(EveryWord(0).front()));
  EXPECT_FALSE(turns.Take(word::Pong{.n = 1, .at = 0}));
  const int64_t first = turns.Ping(), second = turns.Ping();
  // Nobody waits for the first any more.
  EXPECT_TRUE(std::holds_alternative<std::monostate>(*turns.Take(word::Pong{.n = first, .at = 0})));
  EXPECT_TRUE(std::holds_alternative<word::Pong>(*turns.Take(word::Pong{.n = second, .at = 0})));
  EXPECT_FALSE(turns.Take(word::Pong{.n = second, .at = 0}));
}

// A word that is accepted is always one that the state before allowed.
TEST(Turns, KeepTheirOrderWhateverComes) {
  Random random(11);
  for (int round = 0; round < 2000; ++round) {
    AgentTurns agent(std::nullopt, 0);
    RankTurns rank;
    bool welcomed = false, greeted = false;
    int open_calls = 0;
    for (int i = 0; i < 30; ++i) {
      const auto words = EveryWord(static_cast<int64_t>(random.Next() % 4));
      const Word& word = words[random.Next() % words.size()];
      const auto turn = agent.Take(word, kClock.Now());
      if (turn && std::holds_alternative<word::Welcome>(*turn)) {
        EXPECT_FALSE(std::exchange(welcomed, true));
      }
      if (turn && std::holds_alternative<word::Call>(*turn)) {
        EXPECT_TRUE(welcomed && ++open_calls == 1);
      }
      if (random.Next() % 3 == 0) agent.Arrive(static_cast<int64_t>(random.Next() % 4), kClock.Now());
      if (random.Next() % 5 == 0) {
        agent.EndSteps();
        agent.EndCall();
        open_calls = 0;
      }
      if (const auto other = rank.Take(word)) {
        if (std::holds_alternative<word::Hello>(*other)) {
          EXPECT_FALSE(std::exchange(greeted, true));
        }
        EXPECT_TRUE(greeted);
      }
      if (random.Next() % 4 == 0) rank.Call(static_cast<int64_t>(random.Next() % 4));
      if (random.Next() % 4 == 0) rank.Ping();
    }
  }
}

}  // namespace
}  // namespace weir::cluster
