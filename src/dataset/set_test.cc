#include "dataset/set.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/file.h"
#include "base/json.h"
#include "dataset/hash.h"
#include "dataset/set_text.h"
#include "dataset/set_writer.h"
#include "dataset/source.h"

namespace weir::dataset {
namespace {

using ::testing::HasSubstr;

SetFacts RawFacts() {
  SetFacts facts;
  facts.format = SetFormat::kRaw;
  facts.size = Size{30, 50};
  return facts;
}

class SetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        ::testing::TempDir() + "set_test_" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::string Record(int index) { return std::string(4500, static_cast<char>('a' + index)); }
  static SetWriter::Picture PictureOf(std::string_view bytes) {
    return {.source = bytes.substr(0, 1), .bytes = std::as_bytes(std::span(bytes)), .extension = "png"};
  }

  // A raw set of `count` records, three in a shard.
  void WriteRaw(int count) {
    SetFacts facts = RawFacts();
    facts.geometry = Geometry{.resize = Size{30, 50}};
    facts.classes = {"cat", "dog"};
    SetWriter writer = SetWriter::Create(folder_, facts, 3 * 8192 + kShardHeaderBytes).value();
    for (int i = 0; i < count; ++i) {
      const std::string record = Record(i);
      SetWriter::Picture picture = PictureOf(record);
      picture.label = i % 2;
      ASSERT_TRUE(writer.Add(picture));
    }
    ASSERT_TRUE(writer.AddReject("caf\xe9.jpg", {image::RejectReason::kDamaged, "cut"}));
    ASSERT_TRUE(writer.Finish());
  }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  Error OpeningFails() const {
    const auto set = PreparedSet::Open(folder_);
    return set ? Error{ErrorCode::kInternal, "opened"} : set.error();
  }

  std::string folder_;
};

TEST_F(SetTest, RawRecordsComeBackFromTheirShards) {
  WriteRaw(7);
  EXPECT_TRUE(PreparedSet::IsSet(folder_));
  const auto set = PreparedSet::Open(folder_ + "/").value();
  EXPECT_EQ(set->folder(), folder_);
  EXPECT_EQ(set->facts().images, 7);
  EXPECT_EQ(set->facts().bytes, 7 * 4500);
  EXPECT_EQ(set->facts().size, (Size{30, 50}));
  EXPECT_EQ(set->facts().geometry, (Geometry{.resize = Size{30, 50}}));
  EXPECT_EQ(set->facts().records_per_shard, 3);
  EXPECT_THAT(set->facts().classes, ::testing::ElementsAre("cat", "dog"));
  EXPECT_EQ(set->facts().rejected.at("damaged"), 1);
  for (int i = 0; i < 7; ++i) {
    const auto record = *set->ReadRecord(i);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(record.data()), record.size()), Record(i));
    EXPECT_EQ(set->entries()[i].record, i);
    EXPECT_EQ(set->entries()[i].label, i % 2);
    EXPECT_EQ(set->entries()[i].hash, HashOf(record.span()));
  }
  EXPECT_EQ(set->entries()[6].path, "shards/000002.raw");
  EXPECT_EQ(std::filesystem::file_size(Path("shards/000000.raw")), 4096 + 3 * 8192u);
  EXPECT_EQ(std::filesystem::file_size(Path("shards/000002.raw")), 4096 + 8192u);
  const Json reject = ParseJson(ReadTextFile(Path("rejects.jsonl")).value()).value();
  EXPECT_EQ(reject["source"], "caf\\xE9.jpg");
  EXPECT_EQ(reject["reason"], "damaged");
}

TEST_F(SetTest, ASetWhoseMakingWasBrokenOffIsNoData) {
  WriteRaw(4);
  std::filesystem::remove(Path("set.json"));  // the last that is written
  EXPECT_TRUE(PreparedSet::IsUnfinished(folder_));
  EXPECT_EQ(ListInputs({folder_}).error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(SetWriter::Create(folder_, {}).error().message, HasSubstr("broken off"));
}

TEST_F(SetTest, ARawRecordIsAnInput) {
  WriteRaw(4);
  const Listing listing = ListInputs({folder_}).value();
  ASSERT_EQ(listing.inputs.size(), 4u);
  EXPECT_EQ(listing.inputs[3].relative_name(), "shards/000001.raw#3");
  const auto bytes = LoadInput(listing, listing.inputs[3]);
  EXPECT_EQ(bytes->text(), listing.sets[0]->ReadRecord(3)->text());
}

TEST_F(SetTest, FilesKeepTheirBytesAndAreNumberedAsTheyCame) {
  SetWriter writer = SetWriter::Create(folder_, {}).value();
  for (int i = 0; i < 1001; ++i) ASSERT_TRUE(writer.Add(PictureOf(std::to_string(i))));
  ASSERT_TRUE(writer.Finish());
  const auto set = PreparedSet::Open(folder_).value();
  EXPECT_EQ(set->entries()[1000].path, "pictures/00001/00001000.png");
  EXPECT_EQ(ReadTextFile(Path(set->entries()[1000].path)), "1000");
  EXPECT_FALSE(set->facts().geometry);
}

TEST_F(SetTest, RepeatsAreRealCopies) {
  SetWriter writer = SetWriter::Create(folder_, RawFacts()).value();
  const std::string record = Record(3);
  const SetEntry entry = writer.Add(PictureOf(record)).value();
  ASSERT_TRUE(writer.Repeat(entry));
  ASSERT_TRUE(writer.Finish());
  const auto set = PreparedSet::Open(folder_).value();
  EXPECT_EQ(set->entries()[1].hash, entry.hash);
  EXPECT_EQ(set->entries()[1].source, entry.source);
  EXPECT_EQ(HashOf(set->ReadRecord(1)->span()), entry.hash);
}

TEST_F(SetTest, ASetMayHaveMoreShardsThanFilesMayBeOpen) {
  SetWriter writer = SetWriter::Create(folder_, RawFacts(), 1).value();  // a record in each shard
  const std::string record = Record(1);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(writer.Add(PictureOf(record)));
  ASSERT_TRUE(writer.Finish());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 64, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto set = PreparedSet::Open(folder_);
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set.value()->ReadRecord(99)->text(), record);
}

TEST_F(SetTest, AnEmptySetIsASet) {
  WriteRaw(0);
  EXPECT_EQ(PreparedSet::Open(folder_).value()->facts().images, 0);
}

TEST_F(SetTest, AnUnfinishedSetStaysAndIsNoSet) {
  {
    SetWriter writer = SetWriter::Create(folder_, {}).value();
    ASSERT_TRUE(writer.Add(PictureOf("x")));
    ASSERT_TRUE(writer.Flush());
  }
  EXPECT_TRUE(PreparedSet::IsUnfinished(folder_));
  EXPECT_FALSE(PreparedSet::IsSet(folder_));
  EXPECT_EQ(PreparedSet::Open(folder_).error().code, ErrorCode::kNotFound);
}

TEST_F(SetTest, AFolderInUseIsRefused) {
  WriteRaw(1);
  EXPECT_THAT(SetWriter::Create(folder_, {}).error().message, HasSubstr("a finished set is there"));
  std::filesystem::remove(Path("set.json"));
  std::filesystem::remove(Path("rejects.jsonl"));
  EXPECT_THAT(SetWriter::Create(folder_, {}).error().message, HasSubstr("is not an empty folder"));
  EXPECT_THAT(SetWriter::Create(Path("manifest.jsonl"), {}).error().message,
              HasSubstr("is not an empty folder"));
  EXPECT_THAT(SetWriter::Create(folder_ + "2", {.format = SetFormat::kRaw}).error().message,
              HasSubstr("of one size"));
}

TEST_F(SetTest, DamageIsFoundWhenTheSetIsOpened) {
  WriteRaw(4);
  const std::string shard = Path("shards/000001.raw");
  std::filesystem::resize_file(shard, 8000);
  EXPECT_EQ(OpeningFails().code, ErrorCode::kCorrupt);
  EXPECT_THAT(OpeningFails().message, HasSubstr("000001.raw: 8000 bytes, and the manifest tells of 12288"));
  std::filesystem::resize_file(shard, 12288);
  EXPECT_EQ(OpeningFails().message, "opened");
  std::fstream(shard).write("weirraw1", 8);
  EXPECT_THAT(OpeningFails().message, HasSubstr("its header is not the one"));
  std::filesystem::remove(shard);
  EXPECT_EQ(OpeningFails().code, ErrorCode::kNotFound);
  std::ofstream(Path("manifest.jsonl"), std::ios::app) << "\n";
  EXPECT_THAT(OpeningFails().message, HasSubstr("is not the one the set was finished with"));
}

TEST_F(SetTest, FactsAreNotBelieved) {
  WriteRaw(1);
  const std::string text = ReadTextFile(Path("set.json")).value();
  ASSERT_TRUE(ParseSetFacts(text));
  EXPECT_EQ(FormatSetFacts(ParseSetFacts(text).value()), text);
  const std::vector<std::pair<std::string, Json>> wrong = {{"weir_set", "1"},
                                                           {"split", "../a"},
                                                           {"format", "zip"},
                                                           {"images", -1},
                                                           {"images", "1"},
                                                           {"bytes", 1.5},
                                                           {"geometry_hash", "0"},
                                                           {"size", 3},
                                                           {"size", {{"width", 0}, {"height", 1}}},
                                                           {"channels", 2},
                                                           {"record_stride", 4096},
                                                           {"classes", {1}},
                                                           {"records_per_shard", 0},
                                                           {"manifest_hash", "x"},
                                                           {"rejected", {{"a", -1}}},
                                                           {"rejected", 1}};
  for (const auto& [key, value] : wrong) {
    Json json = ParseJson(text).value();
    json[key] = value;
    const auto facts = ParseSetFacts(DumpJson(json));
    ASSERT_FALSE(facts) << key;
    EXPECT_EQ(facts.error().code, ErrorCode::kCorrupt) << key;
  }
}

TEST_F(SetTest, AnotherVersionOfASetIsNamedWithTheRemedy) {
  WriteRaw(1);
  const std::string text = ReadTextFile(Path("set.json")).value();
  for (const auto& [version, remedy] :
       {std::pair(2, "or a newer one"), std::pair(0, "prepare the set again")}) {
    Json json = ParseJson(text).value();
    json["weir_set"] = version;
    std::ofstream(Path("set.json")) << DumpJson(json);
    const Error error = ListInputs({folder_}).error();
    EXPECT_EQ(error.code, ErrorCode::kUnsupported);
    EXPECT_THAT(error.message, HasSubstr(fmt::format("{}/set.json: version {} of a prepared set, and this "
                                                     "program reads version 1",
                                                     folder_, version)));
    EXPECT_THAT(error.message, HasSubstr(remedy));
  }
}

TEST_F(SetTest, NamesOfSplitsAreNamesOfFolders) {
  for (const char* good : {"train", "val_2", "a.b", "-x"}) EXPECT_TRUE(IsSplitName(good)) << good;
  for (const char* bad : {"", ".", "..", ".a", "a/b", "a b", "part-1", "caf\xe9", "a=b"})
    EXPECT_FALSE(IsSplitName(bad)) << bad;
}

TEST_F(SetTest, AnEntryIsReadBackWhileTheSetIsWritten) {
  SetWriter writer = SetWriter::Create(folder_, {}).value();
  const std::string name(3000, 'n');
  ASSERT_TRUE(writer.Add(PictureOf("x")));
  const int64_t at = writer.manifest_bytes();
  ASSERT_TRUE(writer.Add({.source = name, .bytes = std::as_bytes(std::span("y", 1)), .extension = "png"}));
  EXPECT_EQ(writer.EntryAt(at)->source, name);
  EXPECT_EQ(writer.EntryAt(0)->source, "x");
  EXPECT_EQ(writer.EntryAt(writer.manifest_bytes()).error().code, ErrorCode::kCorrupt);
}

TEST_F(SetTest, ManifestPathsStayInTheSet) {
  SetEntry entry{.source = "a", .path = "pictures/a.jpg", .hash = std::string(32, '0'), .bytes = 1};
  EXPECT_EQ(ParseSetEntry(FormatSetEntry(entry))->path, entry.path);
  for (const char* path : {"", "/etc/passwd", "../a", "a/../../b", "a//b", ".", "a/."}) {
    entry.path = path;
    EXPECT_EQ(ParseSetEntry(FormatSetEntry(entry)).error().code, ErrorCode::kCorrupt) << path;
  }
  entry.path = std::string(5000, 'a');
  EXPECT_EQ(ParseSetEntry(FormatSetEntry(entry)).error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace weir::dataset
