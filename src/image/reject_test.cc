#include "image/reject.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/temporary_folder.h"

namespace weir::image {
namespace {

namespace fs = std::filesystem;

class RejectOfFile : public ::testing::Test {
 protected:
  RejectReason ReasonFor(const std::string& name, uint64_t max_bytes = 1000) {
    const std::string path = folder_ + "/" + name;
    const auto bytes = ReadFile(path, max_bytes);
    EXPECT_FALSE(bytes) << path;
    if (bytes) return RejectReason::kFailed;
    const Reject reject = RejectOf(bytes.error(), path);
    EXPECT_NE(reject.detail.find(path), std::string::npos);
    return reject.reason;
  }
  const TemporaryFolder made_ = TemporaryFolder::Make("weir-reject").value();
  const std::string folder_ = made_.path();
};

TEST_F(RejectOfFile, WhatIsNoFileIsToldFromWhatIsGone) {
  fs::create_directory(folder_ + "/folder.jpg");
  ASSERT_EQ(::mkfifo((folder_ + "/pipe.jpg").c_str(), 0600), 0);
  fs::create_symlink("/nonexistent", folder_ + "/gone.jpg");
  fs::create_symlink("loop_b.jpg", folder_ + "/loop_a.jpg");
  fs::create_symlink("loop_a.jpg", folder_ + "/loop_b.jpg");
  ASSERT_TRUE(WriteFileWhole(folder_ + "/large.jpg", std::string(100, 'x')));
  EXPECT_EQ(ReasonFor("folder.jpg"), RejectReason::kNotAFile);
  EXPECT_EQ(ReasonFor("pipe.jpg"), RejectReason::kNotAFile);
  EXPECT_EQ(ReasonFor("gone.jpg"), RejectReason::kUnreadable);
  EXPECT_EQ(ReasonFor("loop_a.jpg"), RejectReason::kUnreadable);
  EXPECT_EQ(ReasonFor("never.jpg"), RejectReason::kVanished);
  EXPECT_EQ(ReasonFor("large.jpg", 99), RejectReason::kTooManyBytes);
}

TEST(Reject, AFileThatShrankHasVanished) {
  EXPECT_EQ(RejectOf({ErrorCode::kIo, "a.jpg: shrank to 5 bytes while it was read"}).reason,
            RejectReason::kVanished);
  EXPECT_EQ(RejectOf({ErrorCode::kIo, "a.jpg: Permission denied"}).reason, RejectReason::kUnreadable);
}

TEST(Reject, EveryReasonHasAWordOfItsOwn) {
  std::set<std::string_view> words;
  for (int i = 0; i <= static_cast<int>(RejectReason::kFailed); ++i)
    words.insert(ToString(static_cast<RejectReason>(i)));
  EXPECT_EQ(words.size(), static_cast<size_t>(RejectReason::kFailed) + 1);
  EXPECT_FALSE(words.contains("unknown"));
}

}  // namespace
}  // namespace weir::image
