// Behaviour that every format of a prepared set shares: writing, resuming, reading, checking.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/file.h"
#include "dataset/hash.h"
#include "dataset/line_reader.h"
#include "dataset/set.h"
#include "dataset/set_text.h"
#include "dataset/set_writer.h"
#include "dataset/shard_format.h"
#include "dataset/source.h"
#include "dataset/tar.h"
#include "dataset/verify.h"

namespace weir::dataset {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::map<std::string, std::string> ReadAll(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file())
      files[entry.path().lexically_relative(folder)] = ReadTextFile(entry.path()).value();
  }
  return files;
}

class SetFormatsTest : public ::testing::TestWithParam<SetFormat> {
 protected:
  static constexpr int64_t kShardBytes = 3 * 8192 + 4096;

  void SetUp() override {
    std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::ranges::replace(name, '/', '_');
    folder_ = ::testing::TempDir() + "set_formats_" + name;
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static bool HasShards() { return GetParam() != SetFormat::kFiles; }
  static SetFacts Facts() {
    SetFacts facts;
    facts.format = GetParam();
    facts.size = Size{30, 50};
    facts.geometry = Geometry{.resize = Size{30, 50}};
    facts.classes = {"cat", "dog"};
    facts.options = R"({"quality":90})";
    facts.inputs = 7;
    facts.inputs_hash = std::string(32, 'a');
    return facts;
  }
  // Begins as a PNG does, and is as long as a raw record.
  static std::string Picture(int index) {
    return "\x89PNG\r\n\x1A\n" + std::string(4492, static_cast<char>('a' + index));
  }
  static Status AddOne(SetWriter& writer, int index) {
    const std::string bytes = Picture(index);
    const std::string source = "s" + std::to_string(index) + "\xff";
    SetWriter::Picture picture{.source = source,
                               .input = index,
                               .label = {},
                               .bytes = std::as_bytes(std::span(bytes)),
                               .extension = "png",
                               .hash = {},
                               .width = 30,
                               .height = 50,
                               .sha256 = {},
                               .source_hash = "00112233445566778899aabbccddeeff",
                               .source_sha256 = {},
                               .source_bytes = 12};
    if (index != 2) picture.label = index % 2;
    TRY(writer.Add(picture));
    return {};
  }
  // Pictures [first, end), and a reject behind each third.
  static void AddSome(SetWriter& writer, int first, int end) {
    for (int i = first; i < end; ++i) {
      ASSERT_TRUE(AddOne(writer, i));
      if (i % 3 == 2) {
        ASSERT_TRUE(writer.AddReject("r", 100 + i, "damaged", "cut"));
      }
    }
  }
  void Write(const std::string& folder, int count) {
    SetWriter writer = SetWriter::Create(folder, Facts(), kShardBytes).value();
    AddSome(writer, 0, count);
    ASSERT_TRUE(writer.Finish());
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  VerifyReport Verify(const std::string& name) const { return VerifySet(Path(name), {}).value(); }

  std::string folder_;
};

TEST_P(SetFormatsTest, PicturesComeBackThroughTheListing) {
  Write(Path("a"), 7);
  const Listing listing = ListInputs({Path("a")}).value();
  ASSERT_EQ(listing.inputs.size(), 7u);
  for (int i = 0; i < 7; ++i) {
    const Input& input = listing.inputs[static_cast<size_t>(i)];
    EXPECT_EQ(LoadInput(listing, input)->text(), Picture(i));
    EXPECT_EQ(input.label, i == 2 ? std::nullopt : std::optional(i % 2));
  }
  const SetEntry& entry = listing.sets[0]->entries()[5];
  EXPECT_EQ(entry.source, "s5\\xFF");
  EXPECT_EQ(entry.input, 5);
  EXPECT_EQ(entry.source_bytes, 12);
  const std::string picture = Picture(5);
  EXPECT_EQ(entry.hash, HashOf(std::as_bytes(std::span(picture))));
  EXPECT_EQ(ReadEntry(Path("a"), entry)->text(), Picture(5));
  EXPECT_EQ(listing.sets[0]->facts().options, R"({"quality":90})");
  EXPECT_EQ(listing.sets[0]->facts().inputs, 7);
}

// The writer is dropped after any number of pictures, with more written behind the point than it tells of,
// and another goes on from there.
TEST_P(SetFormatsTest, GoingOnFromAnyPointGivesTheSameBytes) {
  Write(Path("whole"), 11);
  const auto whole = ReadAll(Path("whole"));
  for (int stop = 0; stop <= 11; ++stop) {
    for (const int more : {0, 1, 5}) {
      const std::string name = "broken" + std::to_string(stop) + "_" + std::to_string(more);
      SetPoint point;
      {
        SetWriter writer = SetWriter::Create(Path(name), Facts(), kShardBytes).value();
        AddSome(writer, 0, stop);
        point = writer.Flush().value();
        Unsettled unsettled = writer.TakeUnsettled().value();
        ASSERT_TRUE(Settle(unsettled));
        AddSome(writer, stop, std::min(11, stop + more));
        ASSERT_TRUE(writer.Flush());
        if (stop + more > 11) {
          ASSERT_TRUE(writer.Finish());
        }
        std::ofstream(Path(name + "/set.json.123.tmp")) << "{";  // as a kill leaves it
      }
      const SetPoint again = SetPoint::FromValue(point.ToValue()).value();
      EXPECT_EQ(again, point);
      ASSERT_TRUE(SetWriter::CanResume(Path(name), Facts(), again));
      SetWriter writer = SetWriter::Resume(Path(name), Facts(), kShardBytes, again).value();
      EXPECT_FALSE(PreparedSet::IsSet(Path(name)));
      AddSome(writer, stop, 11);
      ASSERT_TRUE(writer.Finish());
      EXPECT_TRUE(ReadAll(Path(name)) == whole) << stop << " and " << more;
    }
  }
}

TEST_P(SetFormatsTest, NothingIsGoneOnWithThatIsNotThere) {
  SetPoint point;
  {
    SetWriter writer = SetWriter::Create(Path("a"), Facts(), kShardBytes).value();
    AddSome(writer, 0, 5);
    point = writer.Flush().value();
  }
  EXPECT_TRUE(SetWriter::CanResume(Path("a"), Facts(), point) || HasShards());  // no shard has its name yet
  std::filesystem::resize_file(Path("a/manifest.jsonl"), 10);
  EXPECT_FALSE(SetWriter::CanResume(Path("a"), Facts(), point));
  EXPECT_FALSE(SetWriter::Resume(Path("a"), Facts(), kShardBytes, point));
}

TEST_P(SetFormatsTest, AnyByteThatIsChangedIsFound) {
  Write(Path("a"), 4);
  EXPECT_EQ(Verify("a").faults, 0) << Verify("a").examples.front();
  EXPECT_EQ(Verify("a").images, 4);
  for (const auto& [name, text] : ReadAll(Path("a"))) {
    // Some of the pictures' many bytes, and all that lie about them.
    const size_t step = text.size() > 2000 ? 97 : 1;
    for (size_t at = 0; at < text.size(); at += step) {
      std::string changed = text;
      changed[at] = static_cast<char>(changed[at] ^ 0x04);
      std::ofstream(Path("a/" + name)) << changed;
      const auto report = VerifySet(Path("a"), {});
      // A class's name may be any: set.json is not hashed by anything.
      const bool seen = !report || report->faults > 0;
      EXPECT_TRUE(seen || name == "set.json") << name << ", byte " << at;
    }
    std::ofstream(Path("a/" + name)) << text + "x";
    EXPECT_TRUE(!VerifySet(Path("a"), {}) || Verify("a").faults > 0) << name << " is longer";
    std::ofstream(Path("a/" + name)) << text.substr(0, text.size() - 1);  // of a list: its last newline
    EXPECT_TRUE(!VerifySet(Path("a"), {}) || Verify("a").faults > 0) << name << " is shorter";
    std::ofstream(Path("a/" + name)) << text;
  }
  EXPECT_EQ(Verify("a").faults, 0);
  for (const auto& [name, text] : ReadAll(Path("a"))) {
    std::filesystem::remove(Path("a/" + name));
    const auto report = VerifySet(Path("a"), {});
    EXPECT_TRUE(!report || report->faults > 0) << name;
    std::ofstream(Path("a/" + name)) << text;
  }
}

TEST_P(SetFormatsTest, ACopyOfAnEntryIsAsGood) {
  Write(Path("a"), 4);
  SetWriter writer = SetWriter::Create(Path("b"), Facts(), kShardBytes).value();
  LineReader lines = LineReader::Open(Path("a/manifest.jsonl")).value();
  while (const auto line = lines.Next().value()) {
    const SetEntry entry = ParseSetEntry(*line).value();
    ASSERT_TRUE(writer.Copy(entry, ReadEntry(Path("a"), entry)->span()));
  }
  ASSERT_TRUE(writer.AddReject("r", 102, "damaged", "cut"));
  ASSERT_TRUE(writer.Finish());
  EXPECT_TRUE(ReadAll(Path("b")) == ReadAll(Path("a")));
}

std::string NameOfParam(const ::testing::TestParamInfo<SetFormat>& info) {
  return std::string(ToString(info.param));
}
INSTANTIATE_TEST_SUITE_P(All, SetFormatsTest,
                         ::testing::Values(SetFormat::kFiles, SetFormat::kTar, SetFormat::kTfrecord,
                                           SetFormat::kRaw),
                         NameOfParam);

TEST(ShardFormat, ATarRecordIsTheMembersOfOneKey) {
  SetFacts facts;
  facts.format = SetFormat::kTar;
  facts.classes = {"cat", "dog"};
  const SetEntry entry{.source = "in/a.jpg", .record = 12, .label = 1, .hash = std::string(32, '0')};
  const std::string picture = "\xff\xd8\xff";
  const Frame frame = MakeFrame(facts, entry, std::as_bytes(std::span(picture)), "jpg");
  const std::string archive = frame.before + picture + frame.after;
  EXPECT_EQ(archive.size() % 512, 0u);
  std::vector<std::string> members;
  const TarRead read = [&](int64_t offset, int64_t size) -> Result<std::string> {
    return archive.substr(static_cast<size_t>(offset), static_cast<size_t>(size));
  };
  ASSERT_TRUE(ScanTar(read, std::ssize(archive), [&](const TarMember& member) -> Status {
    members.push_back(member.name + " " +
                      archive.substr(static_cast<size_t>(member.offset), static_cast<size_t>(member.size)));
    return {};
  }));
  EXPECT_THAT(members, ElementsAre("00000012.jpg \xff\xd8\xff", "00000012.cls 1",
                                   R"(00000012.json {"source":"in/a.jpg","label":1,"class":"dog","hash":")" +
                                       std::string(32, '0') + "\"}"));
}

// Protocol buffers' wire format by hand: field and kind, length, contents.
TEST(ShardFormat, ATfrecordHoldsATfExample) {
  SetFacts facts;
  facts.format = SetFormat::kTfrecord;
  const SetEntry entry{.source = "a", .record = 0, .label = 300};
  const std::string picture = "PIC";
  const Frame frame = MakeFrame(facts, entry, std::as_bytes(std::span(picture)), "jpg");
  const std::string record = frame.before + picture + frame.after;
  const std::string example = record.substr(12, record.size() - 16);
  using namespace std::string_literals;
  EXPECT_EQ(example.substr(0, 2), "\x0a"s + static_cast<char>(example.size() - 2));
  EXPECT_THAT(example, HasSubstr("\x0a\x11image/class/label\x12\x06\x1a\x04\x0a\x02\xac\x02"s));
  EXPECT_THAT(example, HasSubstr("\x0a\x18\x0a\x0dimage/encoded\x12\x07\x0a\x05\x0a\x03PIC"s));
  EXPECT_THAT(example, HasSubstr("\x0a\x0cimage/format\x12\x08\x0a\x06\x0a\x04JPEG"s));
  EXPECT_EQ(static_cast<unsigned char>(record[0]), example.size());
  const uint32_t crc = MaskCrc32c(Crc32c(std::as_bytes(std::span(example))));
  EXPECT_EQ(record.substr(record.size() - 4), std::string(reinterpret_cast<const char*>(&crc), 4));
}

TEST(LineReader, GivesEveryLineOnce) {
  const std::string path = ::testing::TempDir() + "line_reader_test";
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "line " + std::to_string(i) + (i == 99'999 ? "" : "\n");
  std::ofstream(path) << text;
  LineReader lines = LineReader::Open(path).value();
  for (int i = 0; i < 100'000; ++i) ASSERT_EQ(*lines.Next().value(), "line " + std::to_string(i));
  EXPECT_FALSE(lines.Next().value());
  EXPECT_EQ(lines.line(), 100'000);
  std::ofstream(path) << std::string(3 << 20, 'x');
  LineReader long_line = LineReader::Open(path).value();
  EXPECT_EQ(long_line.Next().error().code, ErrorCode::kCorrupt);
}

// The newline may come with the same piece that passes the limit.
TEST(LineReader, NoLineIsLongerThanTheLimitWhereverItEnds) {
  const std::string path = ::testing::TempDir() + "line_reader_limit_test";
  for (const char* end : {"", "\n", "\nmore"}) {
    std::ofstream(path) << std::string(LineReader::kMaxLine, 'x') << end;
    LineReader good = LineReader::Open(path).value();
    EXPECT_EQ(good.Next().value()->size(), LineReader::kMaxLine);
    std::ofstream(path) << "short\n" << std::string(LineReader::kMaxLine + 1, 'x') << end;
    LineReader bad = LineReader::Open(path).value();
    EXPECT_EQ(*bad.Next().value(), "short");
    const auto line = bad.Next();
    ASSERT_FALSE(line);
    EXPECT_THAT(line.error().message, HasSubstr("line 2 is over"));
  }
}

}  // namespace
}  // namespace weir::dataset
