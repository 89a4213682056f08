#include "serve/classification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "infer/testing/answers.h"
#include "serve/top_k.h"

namespace weir::serve {
namespace {

using infer::DType;
using infer::Tensor;
using infer::testing::FloatTensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
  const auto answer = Classify(scores, {.batched = batched, .count = count, .labels = &labels});
  EXPECT_TRUE(answer.has_value());
  return answer ? Elements(*answer) : std::vector<std::string>{};
}

TEST(Classification, GivesTheBestOfEveryRow) {
  const Tensor scores = FloatTensor("y", {2, 3}, {1, 3, 2, 0.5, 0.25, 0});
  const auto answer = Classify(scores, {.batched = true, .count = 2});
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->name, "y");
  EXPECT_EQ(answer->dtype, DType::kBytes);
  EXPECT_EQ(answer->shape, (infer::Shape{2, 2}));
  EXPECT_THAT(Elements(*answer), ElementsAre("3.000000:1", "2.000000:2", "0.500000:0", "0.250000:1"));
}

TEST(Classification, TakesAnUnbatchedTensorWhole) {
  const auto answer = Classify(FloatTensor("y", {2, 2}, {1, 4, 3, 2}), {.count = 3});
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
  const auto answer = Classify(FloatTensor("y", {2, 1}, {1, 2}), {.batched = true, .count = 1'000'000'000});
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->shape, (infer::Shape{2, 1}));
  const auto none = Classify(FloatTensor("y", {2, 0}, {}), {.batched = true, .count = 3});
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
  EXPECT_EQ(Classify(words, {.batched = true}).error().code, ErrorCode::kInvalidArgument);
}

TEST(Classification, OrdersNumbersOfEverySignAndSize) {
  EXPECT_THAT(Best(FloatTensor("y", {1, 7}, {-1, 0, -0.0F, INFINITY, -INFINITY, 1e-40F, -2}), true, 7),
              ElementsAre("inf:3", "0.000000:5", "0.000000:1", "-0.000000:2", "-1.000000:0", "-2.000000:6",
                          "-inf:4"));
  std::vector<int64_t> wide = {-1, 0, INT64_MAX, INT64_MIN};
  const Tensor numbers{.name = "y",
                       .dtype = DType::kInt64,
                       .shape = {1, 4},
                       .data = Bytes::Copy(std::as_bytes(std::span(wide)))};
  EXPECT_THAT(Best(numbers, true, 4),
              ElementsAre("9223372036854775807:2", "0:1", "-1:0", "-9223372036854775808:3"));
}

TEST(Classification, RefusesMoreResultsThanItGives) {
  Tensor scores{.name = "y", .dtype = DType::kUint8, .shape = {2, 40'000}, .data = Bytes::Allocate(80'000)};
  const auto refused = Classify(scores, {.batched = true, .count = 40'000});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("ask for at most 32768"));
  EXPECT_TRUE(Classify(scores, {.batched = true, .count = 32'768}).has_value());
  EXPECT_THAT(CheckClassResults(100'000, 5, 1).error().message, HasSubstr("send fewer rows"));
  EXPECT_TRUE(CheckClassResults(0, 0, INT64_MAX).has_value());
}

TEST(Classification, EndsWhenTheClientHasLeft) {
  std::stop_source left;
  left.request_stop();
  const auto answer = Classify(FloatTensor("y", {1, 2}, {1, 2}), {.cancelled = left.get_token()});
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, ErrorCode::kCancelled);
}

struct CountedLess {
  int64_t* comparisons;
  bool operator()(int a, int b) const {
    ++*comparisons;
    return a < b;
  }
};

// Comparisons for the `count` least of `values`.
int64_t Comparisons(const std::vector<int>& values, size_t count) {
  int64_t comparisons = 0;
  TopK<int, CountedLess> best(count, CountedLess{&comparisons});
  for (const int value : values) best.Offer(value);
  std::vector<int> expected = values;
  std::sort(expected.begin(), expected.end());
  expected.resize(count);
  EXPECT_EQ(best.Take(), expected);
  return comparisons;
}

std::vector<int> Numbers(int count, int (*value)(int)) {
  std::vector<int> numbers(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) numbers[static_cast<size_t>(i)] = value(i);
  return numbers;
}

TEST(TopK, ComparesInProportionToTheCandidates) {
  const auto rising = [](int i) { return i; };
  const auto falling = [](int i) { return -i; };
  const auto mixed = [](int i) { return static_cast<int>(static_cast<uint32_t>(i) * 2654435761U >> 4); };
  const auto equal = [](int) { return 7; };
  for (int (*const order)(int) : {+rising, +falling, +mixed, +equal}) {
    const int64_t some = Comparisons(Numbers(20'000, order), 1'000);
    EXPECT_LT(Comparisons(Numbers(200'000, order), 1'000), 11 * some);
  }
  // As many as there are.
  const int64_t all = Comparisons(Numbers(20'000, mixed), 20'000);
  EXPECT_LT(Comparisons(Numbers(200'000, mixed), 200'000), 13 * all);
}

}  // namespace
}  // namespace weir::serve
