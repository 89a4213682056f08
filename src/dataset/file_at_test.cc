#include "dataset/file_at.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "dataset/append_file.h"
#include "dataset/hash.h"

namespace weir::dataset {
namespace {

class FileAtTest : public ::testing::Test {
 protected:
  FileAtTest()
      : path_(::testing::TempDir() + "file_at_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::ofstream(path_) << "0123456789";
  }
  ~FileAtTest() override { std::filesystem::remove(path_); }

  const std::string path_;
};

TEST_F(FileAtTest, ReadsWhereItIsToldAndNoFurtherThanTheEnd) {
  const OpenedFile file = OpenRegularFile(path_).value();
  EXPECT_EQ(file.bytes, 10);
  std::array<char, 4> text{};
  const auto into = std::as_writable_bytes(std::span(text));
  EXPECT_EQ(ReadAt(file.fd, path_, into, 3), 4u);
  EXPECT_EQ(std::string_view(text.data(), 4), "3456");
  EXPECT_EQ(ReadAt(file.fd, path_, into, 8), 2u);
  EXPECT_EQ(ReadAt(file.fd, path_, into, 10), 0u);
  EXPECT_EQ(ReadAt(UniqueFd(), path_, into, 0).error().code, ErrorCode::kIo);
}

TEST_F(FileAtTest, AFolderIsNoFile) {
  EXPECT_EQ(OpenRegularFile(::testing::TempDir()).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(OpenRegularFile(path_ + ".none").error().code, ErrorCode::kNotFound);
}

TEST_F(FileAtTest, AFileThatLacksBytesIsNotLengthened) {
  for (const auto hashed : {AppendFile::Hashed::kNo, AppendFile::Hashed::kYes}) {
    EXPECT_EQ(AppendFile::Open(path_, 11, hashed).error().code, ErrorCode::kCorrupt);
    EXPECT_EQ(std::filesystem::file_size(path_), 10u);
    ASSERT_TRUE(AppendFile::Open(path_, 10, hashed));
  }
  AppendFile file = AppendFile::Open(path_, 4, AppendFile::Hashed::kYes).value();
  ASSERT_TRUE(file.Add("x"));
  ASSERT_TRUE(file.Flush());
  EXPECT_EQ(std::filesystem::file_size(path_), 5u);
  EXPECT_EQ(file.Hash(), HashOfFile(path_));
}

}  // namespace
}  // namespace weir::dataset
