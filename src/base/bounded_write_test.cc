#include "base/bounded_write.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace weir {
namespace {

using ::testing::HasSubstr;

struct Ends {
  UniqueFd reader, writer;
};
Ends MakePipe() {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// Writes until there is no more room.
size_t Fill(BoundedWriter& writer) {
  const std::string text(10'000, 'x');
  size_t all = 0;
  while (const size_t put = *writer.WriteSome(text, 0ms)) all += put;
  return all;
}

TEST(BoundedWriter, GivesUpOnAPipeThatNobodyReads) {
  const Ends ends = MakePipe();
  BoundedWriter writer(ends.writer.get());
  EXPECT_GT(Fill(writer), 4096u);
  EXPECT_EQ(*writer.WriteSome("more", 0ms), 0u);
  EXPECT_EQ(writer.WriteAll("more", 1ms).error().code, ErrorCode::kDeadline);
}

TEST(BoundedWriter, LeavesTheSharedFlagsAlone) {
  const Ends ends = MakePipe();
  BoundedWriter writer(ends.writer.get());
  Fill(writer);
  EXPECT_EQ(::fcntl(ends.writer.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(BoundedWriter, GoesOnOnceSomebodyReads) {
  const Ends ends = MakePipe();
  BoundedWriter writer(ends.writer.get());
  Fill(writer);
  std::string read(8192, '\0');
  ASSERT_EQ(::read(ends.reader.get(), read.data(), read.size()), 8192);
  EXPECT_TRUE(writer.WriteAll("more", 10s).has_value());
}

TEST(BoundedWriter, TellsThatTheReaderIsGone) {
  ::signal(SIGPIPE, SIG_IGN);
  Ends ends = MakePipe();
  BoundedWriter before(ends.writer.get());
  ends.reader = UniqueFd();
  EXPECT_THAT(before.WriteSome("x", 0ms).error().message, HasSubstr("pipe"));
  BoundedWriter after(ends.writer.get());
  EXPECT_THAT(after.WriteSome("x", 0ms).error().message, HasSubstr("pipe"));
}

TEST(BoundedWriter, TellsThatTheDiskIsFull) {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full.valid());
  BoundedWriter writer(full.get());
  EXPECT_THAT(writer.WriteAll("x", 1s).error().message, HasSubstr("No space left"));
}

TEST(BoundedWriter, GivesUpOnASocketThatNobodyReads) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd reader(ends[0]), own(ends[1]);
  BoundedWriter writer(own.get());
  EXPECT_GT(Fill(writer), 0u);
  EXPECT_EQ(*writer.WriteSome("more", 0ms), 0u);
}

}  // namespace
}  // namespace weir
