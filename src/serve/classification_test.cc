#include "serve/classification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "infer/testing/answers.h"

namespace weir::serve {
namespace {

using infer::DType;
using infer::Tensor;
using infer::testing::FloatTensor;
using ::testing::ElementsAre;

std::vector<std::string> Elements(const Tensor& tensor) {
  std::vector<std::string> elements;
  std::string_view rest = tensor.data.text();
  while (!rest.empty()) {
    uint32_t length = 0;
    std::memcpy(&length, rest.data(), sizeof length);
    elements.emplace_back(rest.substr(4, length));
    rest.remove_prefix(4 + length);
  }
  return elements;
}

std::vector<std::string> Best(const Tensor& scores, bool batched, int64_t count,
                              const std::vector<std::string>& labels = {}) {
  const auto answer = Classify(scores, batched, count, labels);
  EXPECT_TRUE(answer.has_value());
  return answer ? Elements(*answer) : std::vector<std::string>{};
}

TEST(Classification, GivesTheBestOfEveryRow) {
  const Tensor scores = FloatTensor("y", {2, 3}, {1, 3, 2, 0.5, 0.25, 0});
  const auto answer = Classify(scores, true, 2, {});
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->name, "y");
  EXPECT_EQ(answer->dtype, DType::kBytes);
  EXPECT_EQ(answer->shape, (infer::Shape{2, 2}));
  EXPECT_THAT(Elements(*answer), ElementsAre("3.000000:1", "2.000000:2", "0.500000:0", "0.250000:1"));
}

TEST(Classification, TakesAnUnbatchedTensorWhole) {
  const auto answer = Classify(FloatTensor("y", {2, 2}, {1, 4, 3, 2}), false, 3, {});
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->shape, (infer::Shape{3}));
  EXPECT_THAT(Elements(*answer), ElementsAre("4.000000:1", "3.000000:2", "2.000000:3"));
}

TEST(Classification, PutsTheLowerIndexFirstAmongEquals) {
  EXPECT_THAT(Best(FloatTensor("y", {1, 4}, {2, 5, 5, 5}), true, 2), ElementsAre("5.000000:1", "5.000000:2"));
}

TEST(Classification, PutsWhatIsNoNumberLast) {
  EXPECT_THAT(Best(FloatTensor("y", {1, 3}, {NAN, -INFINITY, 0}), true, 3),
              ElementsAre("0.000000:2", "-inf:1", "nan:0"));
}

TEST(Classification, NamesTheClassesThatHaveLabels) {
  EXPECT_THAT(Best(FloatTensor("y", {1, 3}, {1, 2, 3}), true, 3, {"cat", "dog"}),
              ElementsAre("3.000000:2", "2.000000:1:dog", "1.000000:0:cat"));
}

TEST(Classification, GivesNoMoreThanThereAre) {
  const auto answer = Classify(FloatTensor("y", {2, 1}, {1, 2}), true, 1'000'000'000, {});
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->shape, (infer::Shape{2, 1}));
  const auto none = Classify(FloatTensor("y", {2, 0}, {}), true, 3, {});
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->shape, (infer::Shape{2, 0}));
}

TEST(Classification, ReadsHalvesAndWholeNumbers) {
  const auto tensor = [](DType dtype, std::vector<uint16_t> bits) {
    return Tensor{.name = "y",
                  .dtype = dtype,
                  .shape = {1, std::ssize(bits)},
                  .data = Bytes::Copy(std::as_bytes(std::span(bits)))};
  };
  // 1, -2, the smallest half above 0.
  EXPECT_THAT(Best(tensor(DType::kFp16, {0x3C00, 0xC000, 0x0001}), true, 3),
              ElementsAre("1.000000:0", "0.000000:2", "-2.000000:1"));
  EXPECT_THAT(Best(tensor(DType::kFp16, {0x7BFF, 0x7C00}), true, 2), ElementsAre("inf:1", "65504.000000:0"));
  EXPECT_THAT(Best(tensor(DType::kBf16, {0x3F80, 0x4040}), true, 2), ElementsAre("3.000000:1", "1.000000:0"));
  EXPECT_THAT(Best(tensor(DType::kInt16, {5, 0xFFFF}), true, 2), ElementsAre("5:0", "-1:1"));
  EXPECT_THAT(Best(tensor(DType::kUint16, {5, 0xFFFF}), true, 2), ElementsAre("65535:1", "5:0"));
}

TEST(Classification, RefusesWhatIsNotNumbers) {
  const Tensor words{.name = "y", .dtype = DType::kBytes, .shape = {1, 1}, .data = Bytes::Allocate(4)};
  EXPECT_EQ(Classify(words, true, 1, {}).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace weir::serve
