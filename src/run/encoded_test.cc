#include "run/encoded.h"

#include <gtest/gtest.h>

#include <vector>

#include "dataset/preparer.h"

namespace weir::run {
namespace {

TEST(JoinFiles, GivesEachFileItsLengthAndRepeatsTheLast) {
  const std::vector<Bytes> files{Bytes::Copy("ab"), Bytes::Copy("xyz")};
  const infer::Tensor tensor = JoinFiles("in", files, 3);
  EXPECT_EQ(tensor.name, "in");
  EXPECT_EQ(tensor.dtype, infer::DType::kBytes);
  EXPECT_EQ(tensor.shape, infer::Shape{3});
  EXPECT_EQ(tensor.data.text(), std::string_view("\2\0\0\0ab\3\0\0\0xyz\3\0\0\0xyz", 20));
}

TEST(BlackPicture, IsAPictureOfThatSize) {
  dataset::Preparer preparer({.resize = dataset::Size{20, 10}}, {});
  const auto pixels = preparer.Prepare(BlackPicture({20, 10}).span());
  ASSERT_TRUE(pixels);
  EXPECT_EQ((*pixels)->data, std::vector<uint8_t>(20 * 10 * 3, 0));
}

TEST(RejectOfRefusal, TakesTheServersVerdictWhereItsWordsHoldOne) {
  const struct {
    const char* words;
    image::RejectReason reason;
    const char* detail;
  } rows[] = {
      {"model \"m.image\": picture 0 is rejected: damaged: cut: at 12", image::RejectReason::kDamaged,
       "cut: at 12"},
      {"model \"m.image\": picture 3 is rejected: not-a-picture", image::RejectReason::kNotAPicture, ""},
      {"picture 0 is rejected: by chance", image::RejectReason::kFailed, "picture 0 is rejected: by chance"},
      {"the shape is wrong", image::RejectReason::kFailed, "the shape is wrong"},
  };
  for (const auto& row : rows) {
    const image::Reject reject = RejectOfRefusal({ErrorCode::kInvalidArgument, row.words});
    EXPECT_EQ(reject.reason, row.reason) << row.words;
    EXPECT_EQ(reject.detail, row.detail);
  }
}

}  // namespace
}  // namespace weir::run
