#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "serve/failure_log.h"
#include "serve/log_line.h"
#include "serve/log_queue.h"
#include "serve/logger.h"

namespace weir::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Instant kStart(100s);

TEST(LogLine, EscapesWhateverCouldForgeALineOrATerminal) {
  EXPECT_EQ(LogText("plain, \xC3\xA4"), "plain, \xC3\xA4");
  EXPECT_EQ(LogText("a\nb\r\tc"), "a\\x0Ab\\x0D\\x09c");
  EXPECT_EQ(LogText("\x1b[31m\x7f"), "\\x1B[31m\\x7F");
  EXPECT_EQ(LogText("\xFF\xC2\x9B"), "\\xFF\\xC2\\x9B");
  EXPECT_EQ(LogText("a\xE2\x80\xA8z"), "a\\xE2\\x80\\xA8z");  // U+2028, a line's end
  EXPECT_EQ(LogText("a\xE2\x80\xAEz"), "a\\xE2\\x80\\xAEz");  // U+202E, right to left
  EXPECT_EQ(LogText("a\xE2\x80\xA6z"), "a\xE2\x80\xA6z");     // U+2026, an ellipsis
  EXPECT_EQ(LogText(std::string("a\0b", 3)), "a\\x00b");
}

TEST(LogLine, CutsLongTextHoweverItIsEscaped) {
  EXPECT_LT(LogText(std::string(60 << 20, 'x')).size(), 3 * kMaxLogText);
  EXPECT_LT(LogText(std::string(60 << 20, '\n')).size(), 3 * kMaxLogText);
  EXPECT_THAT(LogText(std::string(1 << 20, 'x')), HasSubstr("bytes left out"));
}

TEST(LogLine, TellsTheLevel) {
  EXPECT_EQ(LogLine("T", LogLevel::kInfo, "m"), "T m\n");
  EXPECT_EQ(LogLine("T", LogLevel::kWarning, "m"), "T warning: m\n");
  EXPECT_EQ(LogLine("T", LogLevel::kError, "m"), "T error: m\n");
}

// Returns the lines of the queue as one text.
std::string TakeAll(LogQueue& queue, Instant now = kStart) {
  std::string all;
  while (queue.ready(now)) all += queue.Take("T", now).text;
  return all;
}

TEST(LogQueue, GivesLinesInTheirOrder) {
  LogQueue queue;
  EXPECT_FALSE(queue.ready(kStart));
  queue.Offer(LogLevel::kInfo, "a", "T1", kStart);
  queue.Offer(LogLevel::kError, "b", "T2", kStart);
  EXPECT_EQ(TakeAll(queue), "T1 a\nT2 error: b\n");
  EXPECT_FALSE(queue.ready(kStart));
}

TEST(LogQueue, DropsWhatFindsNoRoomAndTellsHowMany) {
  LogQueue queue({.max_lines = 2});
  for (const char* message : {"a", "b", "c", "d", "e"}) queue.Offer(LogLevel::kInfo, message, "T", kStart);
  EXPECT_EQ(queue.dropped(), 3u);
  EXPECT_EQ(TakeAll(queue),
            "T a\nT b\nT warning: 3 lines of this log were dropped: they came faster than they were read\n");
  EXPECT_EQ(queue.dropped(), 3u);
}

TEST(LogQueue, HasABoundInBytes) {
  LogQueue queue({.max_bytes = 1000});
  for (int i = 0; i < 100; ++i)
    queue.Offer(LogLevel::kInfo, std::string(100, static_cast<char>('a' + i % 2)), "T", kStart);
  EXPECT_GE(queue.dropped(), 90u);
}

TEST(LogQueue, GivesPiecesThatAPipeTakesWhole) {
  LogQueue queue;
  for (int i = 0; i < 100; ++i)
    queue.Offer(LogLevel::kInfo, std::to_string(i) + std::string(200, 'x'), "T", kStart);
  uint64_t lines = 0;
  while (queue.ready(kStart)) {
    const LogQueue::Chunk chunk = queue.Take("T", kStart);
    EXPECT_LE(chunk.text.size(), LogQueue::kMaxChunk);
    lines += chunk.lines;
  }
  EXPECT_EQ(lines, 100u);
}

TEST(LogQueue, CountsWhatIsRepeated) {
  LogQueue queue;
  for (int i = 0; i < 1000; ++i) queue.Offer(LogLevel::kInfo, "same", "T", kStart);
  queue.Offer(LogLevel::kInfo, "other", "T", kStart);
  EXPECT_EQ(TakeAll(queue), "T same\nT the message before came 999 more times\nT other\n");
  EXPECT_EQ(queue.dropped(), 0u);
}

TEST(LogQueue, TellsRepetitionsAfterTenSecondsWithoutAnotherLine) {
  LogQueue queue;
  queue.Offer(LogLevel::kInfo, "same", "T", kStart);
  queue.Offer(LogLevel::kInfo, "same", "T", kStart + 1s);
  EXPECT_EQ(TakeAll(queue), "T same\n");
  EXPECT_FALSE(queue.ready(kStart + 9s));
  EXPECT_EQ(queue.due(), kStart + 10s);
  EXPECT_EQ(TakeAll(queue, kStart + 10s), "T the message before came 1 more times\n");
  queue.Offer(LogLevel::kInfo, "same", "T", kStart + 11s);
  EXPECT_EQ(TakeAll(queue, kStart + 11s), "T same\n");
}

TEST(LogQueue, CountsWhatCouldNotBeWrittenAndTellsItWithTheNextLine) {
  LogQueue queue;
  for (const char* message : {"a", "b", "c"}) queue.Offer(LogLevel::kInfo, message, "T", kStart);
  const LogQueue::Chunk chunk = queue.Take("T", kStart);
  queue.Lost(chunk, 1, "no space");
  EXPECT_EQ(queue.dropped(), 2u);
  EXPECT_FALSE(queue.ready(kStart)) << "a reader that takes nothing is not tried again and again";
  queue.Offer(LogLevel::kInfo, "d", "T", kStart);
  const LogQueue::Chunk next = queue.Take("T", kStart);
  EXPECT_EQ(next.text, "T d\nT warning: 2 lines of this log were dropped: no space\n");
  queue.Lost(next, 0, "no space");
  EXPECT_EQ(queue.dropped(), 3u);
  queue.Offer(LogLevel::kInfo, "e", "T", kStart);
  EXPECT_THAT(queue.Take("T", kStart).text, HasSubstr("3 lines of this log were dropped"));
}

// A reader that a test holds closed, or breaks.
class Reader {
 public:
  LogSink Sink() {
    return [this](std::string_view text, Duration) -> Result<size_t> {
      MutexLock lock(mutex_);
      if (broken_) return Fail(ErrorCode::kIo, "broken");
      const size_t put = std::min(text.size(), at_once_);
      text_ += text.substr(0, put);
      return put;
    };
  }
  void Set(size_t at_once, bool broken = false) {
    MutexLock lock(mutex_);
    at_once_ = at_once;
    broken_ = broken;
  }
  std::string text() const {
    MutexLock lock(mutex_);
    return text_;
  }

 private:
  mutable Mutex mutex_;
  size_t at_once_ GUARDED_BY(mutex_) = 1 << 20;
  bool broken_ GUARDED_BY(mutex_) = false;
  std::string text_ GUARDED_BY(mutex_);
};

TEST(Logger, WritesAllBeforeItEnds) {
  const SteadyClock clock;
  Reader reader;
  {
    Logger logger(reader.Sink(), clock);
    reader.Set(7);  // pieces of lines
    for (int i = 0; i < 50; ++i) logger.function()(LogLevel::kInfo, "line " + std::to_string(i));
    logger.Write(LogLevel::kInfo, "line 49");
  }
  const std::string text = reader.text();
  EXPECT_THAT(text, HasSubstr("Z line 0\n"));
  EXPECT_THAT(text, HasSubstr("Z line 49\n"));
  EXPECT_THAT(text, HasSubstr("came 1 more times\n"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 51);
}

TEST(Logger, NeitherWaitsForAReaderThatTakesNothingNorEndsLater) {
  const SteadyClock clock;
  Reader reader;
  reader.Set(0);
  Logger logger(reader.Sink(), clock, {.queue = {.max_lines = 10}, .close_patience = 0s});
  for (int i = 0; i < 100; ++i) logger.Write(LogLevel::kInfo, std::to_string(i));
  EXPECT_GE(logger.dropped(), 70u);
}

TEST(Logger, CountsWhatAFullDiskRefusesAndGoesOnBehindIt) {
  const SteadyClock clock;
  Reader reader;
  reader.Set(0, true);
  Logger logger(reader.Sink(), clock);
  logger.Write(LogLevel::kInfo, "lost");
  while (logger.dropped() == 0) std::this_thread::yield();
  reader.Set(1 << 20);
  logger.Write(LogLevel::kInfo, "kept");
  while (reader.text().empty()) std::this_thread::yield();
  EXPECT_THAT(reader.text(), HasSubstr("kept\n"));
  EXPECT_THAT(reader.text(), Not(HasSubstr("lost\n")));
}

struct Told {
  std::vector<std::string> lines;
  Log Function() {
    return [this](LogLevel, const std::string& line) { lines.push_back(line); };
  }
};

class FailureLogTest : public ::testing::Test {
 protected:
  void Fails(const std::string& message, const std::string& id = "",
             ErrorCode code = ErrorCode::kInvalidArgument) {
    failures_.Tell({code, message}, id);
  }

  ManualClock clock_;
  Told told_;
  FailureLog failures_{clock_, told_.Function()};
};

TEST_F(FailureLogTest, CountsTheSameFailureAndTellsItOnce) {
  for (int i = 0; i < 100; ++i) Fails("no such input", "id " + std::to_string(i));
  EXPECT_THAT(told_.lines, ElementsAre("request id 0 failed: invalid argument: no such input"));
  clock_.Advance(10s);
  failures_.TellCounts();
  EXPECT_THAT(told_.lines,
              ElementsAre(HasSubstr("no such input"), "99 more requests failed in 10 s (invalid argument)"));
  failures_.TellCounts();
  EXPECT_EQ(told_.lines.size(), 2u);
}

TEST_F(FailureLogTest, TellsFiveOfAKindInTenSeconds) {
  for (int i = 0; i < 8; ++i) Fails("fault " + std::to_string(i));
  Fails("of another kind", "", ErrorCode::kDeadline);
  EXPECT_EQ(told_.lines.size(), 6u);
  clock_.Advance(10s);
  Fails("fault 9");
  ASSERT_EQ(told_.lines.size(), 8u);
  EXPECT_THAT(told_.lines[6], HasSubstr("3 more requests failed"));
  EXPECT_EQ(told_.lines[7], "a request failed: invalid argument: fault 9");
}

TEST_F(FailureLogTest, CutsIdsAndMessages) {
  Fails(std::string(60 << 20, 'x'), std::string(60 << 20, 'y'));
  EXPECT_LT(told_.lines.at(0).size(), 4096u);
}

}  // namespace
}  // namespace weir::serve
