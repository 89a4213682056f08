#include "record/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

namespace weir::record {
namespace {

class JournalTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "journal_test." + std::to_string(::getpid());
    ASSERT_TRUE(MakeFolders(folder_));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/journal.jsonl"; }
  void Write(std::string_view text) { ASSERT_TRUE(WriteFileWhole(path(), text)); }
  std::string Text() { return *ReadTextFile(path()); }
  Journal::Opened Open() {
    auto opened = Journal::Open(path(), Durability::kNone);
    CHECK(opened.has_value());
    return std::move(*opened);
  }

 private:
  std::string folder_;
};

TEST_F(JournalTest, KeepsLinesInTheirOrderFromOneRunToTheNext) {
  ASSERT_TRUE(Open().journal.Append({{"trial", 1}}));
  ASSERT_TRUE(Open().journal.Append({{"trial", 2}}));
  EXPECT_EQ(Text(), "{\"trial\":1}\n{\"trial\":2}\n");
  EXPECT_THAT(Open().contents.entries, testing::ElementsAre(Json{{"trial", 1}}, Json{{"trial", 2}}));
}

TEST_F(JournalTest, CutAtAnyByteOpensWithExactlyTheWholeLinesBefore) {
  const std::string text = "{\"name\":\"\\\\xFF\"}\n{\"deep\":{\"list\":[1,2,{}]}}\n{\"n\":123}\n{}\n";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    Write(text.substr(0, cut));
    const Journal::Opened opened = Open();
    const size_t whole = text.substr(0, cut).rfind('\n') + 1;  // npos + 1 is 0
    EXPECT_EQ(opened.contents.entries.size(),
              static_cast<size_t>(std::count(text.begin(), text.begin() + cut, '\n')));
    EXPECT_EQ(opened.contents.torn_bytes, cut - whole);
    EXPECT_EQ(Text(), text.substr(0, whole)) << "cut at byte " << cut;
  }
}

TEST_F(JournalTest, GoesOnAfterARepairAsIfTheTornLineHadNeverBeen) {
  Write("{\"a\":1}\n{\"b\":");
  ASSERT_TRUE(Open().journal.Append({{"c", 3}}));
  EXPECT_EQ(Text(), "{\"a\":1}\n{\"c\":3}\n");
}

TEST_F(JournalTest, TakesALastLineOfZerosForATornOne) {
  Write(std::string("{\"a\":1}\n") + std::string(512, '\0') + "\n");
  EXPECT_EQ(Open().contents.torn_bytes, 513u);
  EXPECT_EQ(Text(), "{\"a\":1}\n");
}

TEST_F(JournalTest, NamesACorruptLineAndLeavesTheFileAlone) {
  for (const std::string_view text :
       {"{\"a\":1}\n{\"b\":\n{\"c\":3}\n", "{\"a\":1}\n{\"b\":\n", "{\"a\":1}\n17\n", "{\"a\":1}\n\n"}) {
    Write(text);
    const auto opened = Journal::Open(path());
    ASSERT_FALSE(opened) << text;
    EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(opened.error().message, testing::HasSubstr("journal.jsonl: line 2: not "));
    EXPECT_THAT(opened.error().message, testing::HasSubstr("delete it"));
    EXPECT_EQ(Text(), text);
  }
}

TEST_F(JournalTest, DoesNotCutOffTheOnlyLineOfAFileThatIsNoJournal) {
  Write("a note to myself");
  EXPECT_EQ(Journal::Open(path()).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(Text(), "a note to myself");
}

TEST_F(JournalTest, HoldsObjectsOnly) {
  EXPECT_THAT(ParseJournal("{}\n17\n{}\n").error().message, testing::StartsWith("line 2: not an object"));
  EXPECT_EQ(ParseJournal("{}\n\n{}\n").error().code, ErrorCode::kCorrupt);
}

TEST_F(JournalTest, RefusesASecondWriter) {
  const Journal::Opened first = Open();
  const auto second = Journal::Open(path());
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, testing::HasSubstr("another run is writing to it"));
}

TEST_F(JournalTest, IsReadByOthersWhileItIsWritten) {
  Journal::Opened opened = Open();
  ASSERT_TRUE(opened.journal.Append({{"a", 1}}));
  EXPECT_EQ(ReadJournal(path())->entries.size(), 1u);
}

TEST_F(JournalTest, IsNoPlaceForANamedPipe) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_FALSE(Journal::Open(path()));
}

TEST_F(JournalTest, CarriesNamesThatAreNoTextEscaped) {
  const std::string name = "caf\xe9\\\xff.jpg";
  ASSERT_TRUE(Open().journal.Append({{"file", EscapeBytes(name)}}));
  EXPECT_EQ(UnescapeBytes(Open().contents.entries[0]["file"].get<std::string>()), name);
}

TEST_F(JournalTest, LeavesNoPartOfALineThatFoundNoRoom) {
  Journal::Opened opened = Open();
  ASSERT_TRUE(opened.journal.Append({{"a", 1}}));
  // A file-size limit stands in for the full disk: the write is short, and the next one is refused.
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{.rlim_cur = 20, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = opened.journal.Append({{"text", std::string(100, 'x')}});
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_FALSE(status);
  EXPECT_EQ(Text(), "{\"a\":1}\n");
  EXPECT_TRUE(opened.journal.Append({{"b", 2}}));
  EXPECT_EQ(Text(), "{\"a\":1}\n{\"b\":2}\n");
}

}  // namespace
}  // namespace weir::record
