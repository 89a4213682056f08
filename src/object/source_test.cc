#include "object/source.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "object/mirror.h"
#include "object/read_ahead.h"

namespace weir::object {
namespace {

// A store in memory whose answers come at once, and which can be made to fail.
class MemorySource final : public ObjectSource {
 public:
  std::string NameOf(std::string_view key) const override { return "mem/" + std::string(key); }
  void Start(Read read, Done done) override {
    reads.push_back(read.key);
    done(Answer(read));
  }
  Result<ObjectFacts> Facts(const std::string& key, const std::stop_token&) override {
    if (!objects.contains(key)) return Fail(ErrorCode::kNotFound, key);
    return ObjectFacts{std::ssize(objects[key]), "\"" + ETag(key) + "\""};
  }
  Result<std::vector<ListedObject>> List(const std::string& prefix, const std::stop_token&) override {
    std::vector<ListedObject> all;
    for (const auto& [key, contents] : objects) {
      if (key.starts_with(prefix)) all.push_back({key, std::ssize(contents), "\"" + ETag(key) + "\""});
    }
    return all;
  }
  Status Write(const std::string& key, Bytes contents, const std::stop_token&) override {
    MutexLock lock(mutex);
    writes.push_back(key);
    objects[key] = contents.text();
    return {};
  }
  Status WriteFile(const std::string& key, const std::string& path, const std::stop_token& stop) override {
    return Write(key, TRY(ReadFile(path, 1 << 30)), stop);
  }

  std::string ETag(const std::string& key) { return ToHex(Md5(objects[key])); }

  std::map<std::string, std::string> objects;
  std::vector<std::string> reads, writes;
  int changes_after = -1;  // reads until the ETag changes

 private:
  Result<Response> Answer(const Read& read) {
    if (!objects.contains(read.key)) return Fail(ErrorCode::kNotFound, read.key);
    if (changes_after-- == 0) objects[read.key] += "x";
    const std::string whole = objects[read.key], etag = "\"" + ETag(read.key) + "\"";
    if (!read.etag.empty() && read.etag != etag) return Fail(ErrorCode::kCorrupt, "changed");
    const Range range = read.range.value_or(Range{0, std::ssize(whole)});
    return Response{
        .status = 200,
        .body = Bytes::Copy(whole.substr(static_cast<size_t>(range.offset), static_cast<size_t>(range.size))),
        .etag = etag,
        .total = std::ssize(whole)};
  }

  Mutex mutex;
};

std::string LongText(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7 + i / 4096);
  return text;
}

TEST(ReadWhole, JoinsTheRangesOfALargeObject) {
  MemorySource source;
  source.objects["a"] = LongText(kPartBytes * 2 + 5);
  const auto bytes = ReadWhole(source, {.key = "a"});
  ASSERT_TRUE(bytes) << bytes.error().message;
  EXPECT_TRUE(bytes->text() == source.objects["a"]);
  EXPECT_EQ(source.reads.size(), 3U);
}

TEST(ReadWhole, ASmallObjectOfKnownSizeIsOneRequest) {
  MemorySource source;
  source.objects["a"] = "abc";
  EXPECT_EQ(ReadWhole(source, {.key = "a", .size = 3})->text(), "abc");
  EXPECT_EQ(source.reads.size(), 1U);
}

TEST(ReadWhole, AnObjectThatChangesBetweenRangesIsNeverMixed) {
  MemorySource source;
  source.objects["a"] = LongText(kPartBytes * 3);
  source.changes_after = 1;
  const auto bytes = ReadWhole(source, {.key = "a"});
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::kCorrupt);
}

TEST(ReadWhole, TheLimitIsToldBeforeTheRestIsRead) {
  MemorySource source;
  source.objects["a"] = LongText(kPartBytes + 1);
  const auto bytes = ReadWhole(source, {.key = "a", .max_bytes = kPartBytes});
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(source.reads.size(), 1U);
}

class ReadAheadTest : public testing::Test {
 protected:
  ReadAheadTest() {
    for (int i = 0; i < 1000; ++i) {
      const std::string key = std::to_string(i);
      source->objects[key] = "contents " + key;
      items.push_back({.key = key, .size = std::ssize(source->objects[key])});
    }
  }
  std::shared_ptr<MemorySource> source = std::make_shared<MemorySource>();
  std::vector<ReadAhead::Item> items;
};

TEST_F(ReadAheadTest, InOrderEachObjectIsReadOnce) {
  ReadAhead ahead(source, items, {.ahead = 10});
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(ahead.Load(i, 100)->text(), "contents " + std::to_string(i));
  EXPECT_EQ(source->reads.size(), 1000U);
}

TEST_F(ReadAheadTest, TheFirstReadBeginsOthers) {
  ReadAhead ahead(source, items, {.ahead = 10});
  ASSERT_TRUE(ahead.Load(0, 100));
  EXPECT_EQ(source->reads.size(), 11U);
}

TEST_F(ReadAheadTest, AReaderThatJumpsCausesNoOtherReads) {
  ReadAhead ahead(source, items, {.ahead = 10});
  ASSERT_TRUE(ahead.Load(0, 100));
  source->reads.clear();
  for (const int i : {300, 600, 900, 200, 500})
    EXPECT_EQ(ahead.Load(i, 100)->text(), "contents " + std::to_string(i));
  EXPECT_EQ(source->reads.size(), 5U);
}

TEST_F(ReadAheadTest, AnObjectMayBeReadAgain) {
  ReadAhead ahead(source, items, {.ahead = 10});
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(ahead.Load(i, 100));
  EXPECT_EQ(ahead.Load(3, 100)->text(), "contents 3");
}

TEST_F(ReadAheadTest, TheBytesAheadAreBounded) {
  ReadAhead ahead(source, items, {.ahead = 100, .ahead_bytes = 50});
  ASSERT_TRUE(ahead.Load(0, 100));
  EXPECT_LE(source->reads.size(), 5U);
}

TEST_F(ReadAheadTest, AnErrorIsOfItsObjectAlone) {
  source->objects.erase("5");
  ReadAhead ahead(source, items, {.ahead = 10});
  ASSERT_TRUE(ahead.Load(4, 100));
  EXPECT_EQ(ahead.Load(5, 100).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(ahead.Load(6, 100));
}

class MirrorTest : public testing::Test {
 protected:
  void Put(const std::string& name, std::string_view contents) {
    const std::string path = folder.path() + "/" + name;
    ASSERT_TRUE(MakeFolders(path.substr(0, path.rfind('/'))));
    ASSERT_TRUE(WriteFileWhole(path, contents));
  }
  std::string Got(const std::string& name) {
    return ReadTextFile(folder.path() + "/" + name).value_or("(none)");
  }
  TemporaryFolder folder = *TemporaryFolder::Make("weir-mirror");
  MemorySource source;
};

TEST_F(MirrorTest, BringsWhatIsBelowThePrefix) {
  source.objects = {{"s/a", "1"}, {"s/b/c", "22"}, {"s/empty", ""}, {"t/x", "3"}, {"s/folder/", ""}};
  const auto report = Download(source, "s/", folder.path());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->objects, 3);
  EXPECT_EQ(report->bytes, 3);
  EXPECT_EQ(Got("a"), "1");
  EXPECT_EQ(Got("b/c"), "22");
  EXPECT_EQ(Got("empty"), "");
}

TEST_F(MirrorTest, ReadsAgainOnlyWhatChangedAndRemovesWhatIsGone) {
  source.objects = {{"a", "1"}, {"b", "2"}, {"c", "3"}};
  ASSERT_TRUE(Download(source, "", folder.path()));
  source.objects["b"] = "4";
  source.objects.erase("c");
  source.reads.clear();
  const auto report = Download(source, "", folder.path());
  ASSERT_TRUE(report);
  EXPECT_EQ(source.reads, std::vector<std::string>{"b"});
  EXPECT_EQ(Got("a") + Got("b") + Got("c"), "14(none)");
}

TEST_F(MirrorTest, AFileThatIsOfAnotherSizeIsBroughtAgain) {
  source.objects = {{"a", "123"}};
  ASSERT_TRUE(Download(source, "", folder.path()));
  Put("a", "12");
  ASSERT_TRUE(Download(source, "", folder.path()));
  EXPECT_EQ(Got("a"), "123");
}

TEST_F(MirrorTest, LargeObjectsComeInRanges) {
  source.objects = {{"a", LongText(kPartBytes * 2 + 1)}};
  ASSERT_TRUE(Download(source, "", folder.path()));
  EXPECT_TRUE(Got("a") == source.objects["a"]);
  EXPECT_EQ(source.reads.size(), 3U);
}

TEST_F(MirrorTest, KeysThatLeadOutOfTheFolderAreRefused) {
  for (const char* key : {"s/../a", "s//a", "s/./a", "s//", "s/.weir-objects"}) {
    source.objects = {{key, "1"}};
    if (std::string(key).ends_with('/')) source.objects[std::string(key) + "b"] = "1";
    const auto report = Download(source, "s/", folder.path());
    ASSERT_FALSE(report) << key;
    EXPECT_EQ(report.error().code, ErrorCode::kInvalidArgument) << key;
  }
}

TEST_F(MirrorTest, AnEmptyPrefixIsNotFound) {
  EXPECT_EQ(Download(source, "none/", folder.path()).error().code, ErrorCode::kNotFound);
}

TEST_F(MirrorTest, AFailureLeavesNoHalfFile) {
  source.objects = {{"a", LongText(kPartBytes * 2)}};
  source.changes_after = 1;
  ASSERT_FALSE(Download(source, "", folder.path()));
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    EXPECT_TRUE(entry.path().filename().string().starts_with(".weir-objects")) << entry.path();
}

TEST_F(MirrorTest, WritesSetJsonLastAndNothingTwice) {
  Put("set.json", "{}");
  Put("zzz", "1");
  Put("pictures/a.jpg", "2");
  ASSERT_TRUE(Upload(source, folder.path(), "p/"));
  ASSERT_EQ(source.writes.size(), 3U);
  EXPECT_EQ(source.writes.back(), "p/set.json");
  EXPECT_EQ(source.objects["p/pictures/a.jpg"], "2");
  const auto again = Upload(source, folder.path(), "p/");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->copied, 0);
  EXPECT_EQ(source.writes.size(), 3U);
}

TEST_F(MirrorTest, TheETagOfPartsIsTheHashOfTheirHashes) {
  const std::string text = LongText(kPartBytes + 3);
  Put("a", text);
  Put("b", "abc");
  EXPECT_EQ(*ETagOfFile(folder.path() + "/b"), "900150983cd24fb0d6963f7d28e17f72");  // RFC 1321
  EXPECT_EQ(*ETagOfFile(folder.path() + "/a"),
            ToHex(Md5(Md5(text.substr(0, kPartBytes)) + Md5(text.substr(kPartBytes)))) + "-2");
}

TEST_F(MirrorTest, FilesAreASourceToo) {
  Put("d/a", "abcdef");
  const auto files = MakeFileSource(folder.path());
  const auto facts = files->Facts("d/a");
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->size, 6);
  EXPECT_EQ(ReadRange(*files, {.key = "d/a", .range = Range{2, 10}})->body.text(), "cdef");
  EXPECT_EQ(files->List("d/")->at(0).key, "d/a");
  ASSERT_TRUE(files->Write("e/b", Bytes::Copy("xy")));
  EXPECT_EQ(Got("e/b"), "xy");
  EXPECT_EQ(ReadRange(*files, {.key = "d/a", .etag = "\"other\""}).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(files->Facts("none").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace weir::object
