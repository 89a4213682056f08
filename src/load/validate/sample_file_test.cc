#include "load/validate/sample_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace weir::load {
namespace {

using ::testing::HasSubstr;

constexpr Instant kStart(100s);
constexpr size_t kRecord = 48;

class SampleFileTest : public ::testing::Test {
 protected:
  SampleFileTest() {
    folder_ =
        std::filesystem::temp_directory_path() / ("weir_sample_file_test_" + std::to_string(::getpid()));
  }
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ / "samples"; }
  int64_t Files() const { return std::distance(std::filesystem::directory_iterator(folder_), {}); }

  std::filesystem::path folder_;
};

Sample SampleAt(Duration at) {
  return {.planned = kStart + at,
          .sent = kStart + at + 1us,
          .first_byte = kStart + at + 2us,
          .done = kStart + at + 3us,
          .request = static_cast<uint32_t>(at / 1us),
          .outcome = static_cast<Outcome>(at / 1us % kOutcomes)};
}

std::vector<Sample> Samples(int count) {
  std::vector<Sample> samples;
  for (int i = 0; i < count; ++i) samples.push_back(SampleAt(i * 1us));
  return samples;
}

std::unique_ptr<SampleFile> Create(const std::string& path) {
  auto file = SampleFile::Create(path, {.start = kStart, .about = {{"levels", {"one", "two"}}}});
  EXPECT_TRUE(file) << file.error().message;
  return *std::move(file);
}

// A file of `count` samples.
std::string Written(const std::string& path, int count) {
  const auto file = Create(path);
  EXPECT_TRUE(file->Write(1, 2, Samples(count)));
  EXPECT_TRUE(file->Finish());
  return std::string(ReadFile(path, 1 << 20)->text());
}

template <typename T>
std::string With(std::string file, size_t offset, T value) {
  std::memcpy(&file.at(offset), &value, sizeof(value));
  return file;
}

// The error of reading all of it.
Error ErrorOf(const std::string& file) {
  auto reader = SampleReader::OpenBytes(Bytes::Copy(file));
  if (!reader) return reader.error();
  std::vector<SampleRecord> records(reader->records());
  const auto read = reader->Next(records);
  EXPECT_FALSE(read);
  return read ? Error{} : read.error();
}

TEST_F(SampleFileTest, WhatWasWrittenIsReadAgain) {
  constexpr int kMany = 50'000;  // more than the buffer holds
  const auto file = Create(path());
  ASSERT_TRUE(file->Write(0, 0, Samples(kMany)));
  const Sample early{.planned = kStart - 5ms, .sent = kStart, .first_byte = kStart, .done = kStart};
  ASSERT_TRUE(file->Write(1, 3, std::span(&early, 1)));
  ASSERT_TRUE(file->Finish());
  auto reader = SampleReader::Open(path());
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(reader->about(), Json({{"levels", {"one", "two"}}}));
  ASSERT_EQ(reader->records(), kMany + 1);
  std::vector<SampleRecord> records(kMany);
  ASSERT_EQ(reader->Next(records), kMany);
  for (int i = 0; i < kMany; ++i) {
    const Sample& sample = records[i].sample;
    ASSERT_EQ(sample.planned, Instant(i * 1us));
    ASSERT_EQ(sample.slip(), 1us);
    ASSERT_EQ(sample.first_byte - sample.sent, 1us);
    ASSERT_EQ(sample.response(), 3us);
    ASSERT_EQ(sample.request, i);
    ASSERT_EQ(sample.outcome, static_cast<Outcome>(i % kOutcomes));
    ASSERT_EQ(records[i].level, 0);
  }
  ASSERT_EQ(reader->Next(records), 1);
  EXPECT_EQ(records[0].sample.planned, Instant(-5ms));
  EXPECT_EQ(records[0].level, 1);
  EXPECT_EQ(records[0].repeat, 3);
  EXPECT_EQ(reader->Next(records), 0);
}

TEST_F(SampleFileTest, HasTheBytesThatItsHeaderPromises) {
  const std::string file = Written(path(), 2);
  const std::string about = R"({"levels":["one","two"]})";
  ASSERT_EQ(file.size(), 32 + about.size() + 2 * kRecord);
  using namespace std::string_literals;
  EXPECT_EQ(file.substr(0, 32), "weirsmpl\1\0\0\0\x30\0\0\0\2\0\0\0\0\0\0\0\x38\0\0\0\0\0\0\0"s);
  EXPECT_EQ(file.substr(32, about.size()), about);
  EXPECT_EQ(file.substr(56 + kRecord),  // 1000, 2000, 3000 and 4000 ns
            "\xe8\x03\0\0\0\0\0\0\xd0\x07\0\0\0\0\0\0\xb8\x0b\0\0\0\0\0\0\xa0\x0f\0\0\0\0\0\0"
            "\1\0\0\0\1\0\0\0\2\0\0\0\1\0\0\0"s);
}

TEST_F(SampleFileTest, IsNotThereBeforeItIsFinished) {
  {
    const auto file = Create(path());
    ASSERT_TRUE(file->Write(0, 0, Samples(50'000)));
    EXPECT_FALSE(std::filesystem::exists(path()));
  }
  EXPECT_EQ(Files(), 0);
  Written(path(), 3);
  EXPECT_EQ(Files(), 1);
  Create(path());  // and broken off: the old one stays
  EXPECT_EQ(SampleReader::Open(path())->records(), 3);
  EXPECT_EQ(Files(), 1);
}

TEST_F(SampleFileTest, MayBeEmpty) {
  Written(path(), 0);
  auto reader = SampleReader::Open(path());
  ASSERT_TRUE(reader);
  SampleRecord record;
  EXPECT_EQ(reader->Next(std::span(&record, 1)), 0);
}

TEST_F(SampleFileTest, AFullDiskIsAnErrorAndLeavesNothing) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  const auto file = Create(path());
  // The temporary file beside the path is opened again as a device that is always full.
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    if (!target.starts_with(path())) continue;
    const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
    ASSERT_GE(::dup2(full.get(), std::stoi(entry.path().filename())), 0);
    break;
  }
  EXPECT_FALSE(file->Write(0, 0, Samples(50'000)));
  EXPECT_FALSE(file->Write(0, 0, {}));
  EXPECT_FALSE(file->Finish());
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(SampleFileTest, RefusesAPlaceThatIsNoFile) {
  EXPECT_EQ(SampleFile::Create(folder_, {}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(SampleFile::Create("/dev/null", {}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(SampleFile::Create(folder_ / "none" / "samples", {}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(SampleReader::Open(folder_).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(SampleReader::Open(folder_ / "none").error().code, ErrorCode::kNotFound);
}

TEST_F(SampleFileTest, ALinkStaysAndItsTargetIsReplaced) {
  Written(path(), 1);
  std::filesystem::create_symlink(path(), folder_ / "link");
  Written(folder_ / "link", 2);
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
  EXPECT_EQ(SampleReader::Open(path())->records(), 2);
}

TEST_F(SampleFileTest, ReaderRefusesAHeaderThatLies) {
  const std::string file = Written(path(), 2);
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_EQ(ErrorOf(file.substr(0, size)).code, ErrorCode::kCorrupt) << size;
  EXPECT_EQ(ErrorOf(file + "x").code, ErrorCode::kCorrupt);
  EXPECT_EQ(ErrorOf(With(file, 0, 'W')).code, ErrorCode::kCorrupt);
  EXPECT_EQ(ErrorOf(With(file, 8, uint32_t{2})).code, ErrorCode::kUnsupported);
  EXPECT_EQ(ErrorOf(With(file, 12, uint32_t{64})).code, ErrorCode::kCorrupt);
  EXPECT_THAT(ErrorOf(With(file, 16, uint64_t{3})).message, HasSubstr("3 records"));
  EXPECT_EQ(ErrorOf(With(file, 16, UINT64_MAX / kRecord + 3)).code, ErrorCode::kCorrupt);
  for (const uint64_t header : {uint64_t{0}, uint64_t{31}, uint64_t{1000}, UINT64_MAX})
    EXPECT_EQ(ErrorOf(With(file, 24, header)).code, ErrorCode::kCorrupt) << header;
  EXPECT_THAT(ErrorOf(With(file, 32, '[')).message, HasSubstr("what was measured"));
}

TEST_F(SampleFileTest, ReaderNamesTheRecordThatCannotBe) {
  const std::string file = Written(path(), 2);
  const size_t second = file.size() - kRecord;
  const auto message = [&](size_t offset, auto value) {
    return ErrorOf(With(file, second + offset, value)).message;
  };
  EXPECT_EQ(message(24, int64_t{1999}), "record 1: done at 1999 ns, 1 ns before it was sent");
  EXPECT_EQ(message(44, uint32_t{8}), "record 1: there is no outcome 8");
  EXPECT_EQ(message(36, UINT32_MAX), "record 1: there is no level 4294967295");
  EXPECT_EQ(message(40, UINT32_MAX), "record 1: there is no repeat 4294967295");
  EXPECT_THAT(message(0, INT64_MIN), HasSubstr("record 1: moment"));
  EXPECT_THAT(message(24, INT64_MAX), HasSubstr("record 1: moment"));
}

}  // namespace
}  // namespace weir::load
