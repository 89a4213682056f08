#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/seed.h"
#include "base/thread.h"

namespace weir {
namespace {

Result<int> Half(int x) {
  if (x % 2 != 0) return Fail(ErrorCode::kInvalidArgument, "odd");
  return x / 2;
}
Result<int> Quarter(int x) { return TRY(Half(TRY_CONTEXT(Half(x), "first"))); }

TEST(Error, TryPassesTheErrorOnWithItsContext) {
  EXPECT_EQ(Quarter(8), 2);
  EXPECT_EQ(Quarter(3).error().message, "first: odd");
  EXPECT_EQ(Quarter(6).error().message, "odd");
}

TEST(Seed, StreamsAreReproducibleAndApart) {
  const Seed seed(7);
  EXPECT_EQ(seed.Stream("a").value(), Seed(7).Stream("a").value());
  EXPECT_NE(seed.Stream("a").value(), seed.Stream("b").value());
  EXPECT_NE(seed.Stream(uint64_t{0}).value(), seed.Stream(uint64_t{1}).value());
}

TEST(Random, HasTheMomentsOfItsDistributions) {
  Random random = Seed(1).MakeRandom();
  double sum = 0, squares = 0;
  constexpr int kCount = 200000;
  for (int i = 0; i < kCount; ++i) {
    const double x = random.Normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.01);
  EXPECT_NEAR(squares / kCount, 1, 0.02);
  for (int i = 0; i < 1000; ++i) {
    const int64_t n = random.Integer(-2, 2);
    EXPECT_GE(n, -2);
    EXPECT_LE(n, 2);
  }
}

TEST(Bytes, ASliceSharesTheMemory) {
  Bytes bytes = Bytes::Copy("hello world");
  const Bytes part = bytes.Slice(6, 5);
  bytes.mutable_data()[6] = std::byte{'W'};
  EXPECT_EQ(part.text(), "World");
}

TEST(Json, EscapedNamesComeBackAsTheSameBytes) {
  const std::string name = "caf\xe9 \\x41 写真 \xff\xfe\xc0\x80\xed\xa0\x80.jpg";
  const std::string text = EscapeBytes(name);
  EXPECT_EQ(ParseJson(DumpJson(text)).value(), text);
  EXPECT_EQ(UnescapeBytes(text).value(), name);
  EXPECT_EQ(EscapeBytes("plain 写真.jpg"), "plain 写真.jpg");
  EXPECT_FALSE(UnescapeBytes("\\q"));
}

TEST(Json, WordsForATerminalHaveNoControlCharacters) {
  EXPECT_EQ(EscapeForTerminal("two\nlines, a\ttab, 写真, \xC2\xA0"), "two\nlines, a\ttab, 写真, \xC2\xA0");
  EXPECT_EQ(EscapeForTerminal("\x1b[2J\r\x7f"), "\\x1B[2J\\x0D\\x7F");
  EXPECT_EQ(EscapeForTerminal("\xC2\x9b"
                              "2J\xff\\"),
            "\\xC2\\x9B2J\\xFF\\\\");
  EXPECT_EQ(EscapeForTerminal("\xC2"), "\\xC2");
}

class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    folder_ = std::filesystem::temp_directory_path() / ("weir_file_test_" + std::to_string(::getpid()));
  }
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(FileTest, WritesWholeAndReadsBack) {
  const std::string path = folder_ / "a";
  ASSERT_TRUE(WriteFileWhole(path, "one"));
  ASSERT_TRUE(WriteFileWhole(path, "two", Durability::kSynced));
  EXPECT_EQ(ReadFile(path, 100)->text(), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(FileTest, RefusesWhatIsNotAFileAndWhatIsTooLarge) {
  const std::string pipe = folder_ / "pipe.jpg";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(ReadFile(pipe, 100).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ReadFile(folder_, 100).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ReadFile(folder_ / "none", 100).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(WriteFileWhole(folder_ / "big", std::string(101, 'x')));
  EXPECT_EQ(ReadFile(folder_ / "big", 100).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(FileTest, SaysBeforehandWhetherAFileCanBeWrittenAndChangesNothing) {
  const std::string old = folder_ / "old", pipe = folder_ / "pipe";
  ASSERT_TRUE(WriteFileWhole(old, "kept"));
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& good : {old, pipe, (folder_ / "new").string(), std::string("/dev/null")}) {
    const Status writable = CheckWritable(good);
    EXPECT_TRUE(writable) << writable.error().message;
  }
  EXPECT_EQ(CheckWritable(folder_).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(CheckWritable(folder_.string() + "/").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(CheckWritable(folder_ / "none/new").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(CheckWritable(old + "/new"));
  EXPECT_EQ(CheckWritable(folder_ / std::string(250, 'x')).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ReadFile(old, 100)->text(), "kept");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2);
}

TEST_F(FileTest, RemovesWhatProcessesThatAreGoneHaveLeftOfTheSameFile) {
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(gone, nullptr, 0), gone);
  const std::string path = folder_ / "a", dead = std::to_string(gone), alive = std::to_string(::getppid());
  const std::vector<std::string> kept = {path + "." + alive + ".tmp", path + "." + dead + ".tmp2",
                                         path + "." + dead + "x.tmp", path + ".tmp",
                                         path + "b." + dead + ".tmp"};
  for (const std::string& file : kept) std::ofstream(file) << "x";
  std::ofstream(path + "." + dead + ".tmp") << "x";
  ASSERT_TRUE(WriteFileWhole(path, "one"));
  for (const std::string& file : kept) EXPECT_TRUE(std::filesystem::exists(file)) << file;
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), std::ssize(kept) + 1);
}

TEST(Clock, ManualTimeStandsStillUntilMoved) {
  ManualClock clock;
  const Instant start = clock.Now();
  clock.Advance(5ms);
  EXPECT_EQ(clock.Now() - start, 5ms);
}

TEST(Thread, OtherProcessesSeeItsRole) {
  const auto name_of = [](auto... arguments) {
    std::array<char, 16> name{};
    StartThread(arguments..., [&](std::stop_token) {
      ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    }).join();
    return std::string(name.data());
  };
  EXPECT_EQ(RoleOfThread(name_of(ThreadRole::kRecogniser, "0")), ThreadRole::kRecogniser);
  EXPECT_EQ(RoleOfThread(name_of(ThreadRole::kApplication, "0")), ThreadRole::kApplication);
  EXPECT_EQ(RoleOfThread(name_of("decode-0")), ThreadRole::kApplication);
}

TEST(Thread, RunUntilGivesTheStatusOfWorkThatEnds) {
  const auto status = RunUntil({}, "work", [] { return Fail(ErrorCode::kIo, "disk full"); });
  ASSERT_TRUE(status);
  EXPECT_EQ(status->error().message, "disk full");
}

}  // namespace
}  // namespace weir
