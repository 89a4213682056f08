#include "infer/rows.h"

#include <gtest/gtest.h>

#include "infer/testing/answers.h"

namespace weir::infer {
namespace {

using testing::Floats;
using testing::FloatTensor;

Tensor Strings(const std::string& name, Shape shape, const std::vector<std::string>& values) {
  std::string data;
  for (const std::string& value : values) {
    const auto length = static_cast<uint32_t>(value.size());
    data.append(reinterpret_cast<const char*>(&length), sizeof length).append(value);
  }
  return {.name = name, .dtype = DType::kBytes, .shape = std::move(shape), .data = Bytes::Copy(data)};
}

Batch MakeBatch(const std::vector<std::vector<Tensor>>& inputs) {
  Batch batch;
  for (const auto& tensors : inputs) {
    Call& call = batch.calls.emplace_back();
    call.request.inputs = tensors;
    batch.rows.push_back(tensors[0].shape[0]);
    batch.total_rows += tensors[0].shape[0];
  }
  return batch;
}

TEST(Rows, AreJoinedInOrderAndTheCallsShareThem) {
  Batch batch = MakeBatch({{FloatTensor("x", {1, 2}, {1, 2}), FloatTensor("y", {1}, {9})},
                           {FloatTensor("x", {2, 2}, {3, 4, 5, 6}), FloatTensor("y", {2}, {8, 7})}});
  const auto joined = JoinInputs(batch);
  ASSERT_TRUE(joined);
  ASSERT_EQ(joined->size(), 2u);
  EXPECT_EQ((*joined)[0].shape, (Shape{3, 2}));
  EXPECT_EQ(Floats((*joined)[0]), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(Floats((*joined)[1]), (std::vector<float>{9, 8, 7}));
  EXPECT_EQ(reinterpret_cast<uintptr_t>((*joined)[0].data.data()) % 64, 0u);
  EXPECT_EQ(batch.calls[1].request.inputs[0].data.data(), (*joined)[0].data.data() + 2 * sizeof(float));
  EXPECT_EQ(Floats(batch.calls[1].request.inputs[0]), (std::vector<float>{3, 4, 5, 6}));
}

TEST(Rows, OfStringsAreJoinedAndSplitByTheirLengths) {
  Batch batch = MakeBatch({{Strings("s", {1, 2}, {"ab", ""})}, {Strings("s", {1, 2}, {"c", "def"})}});
  const auto joined = JoinInputs(batch);
  ASSERT_TRUE(joined);
  EXPECT_EQ((*joined)[0].data.text(), Strings("s", {2, 2}, {"ab", "", "c", "def"}).data.text());
  const auto parts = SplitOutputs(*joined, batch.rows);
  ASSERT_TRUE(parts);
  EXPECT_EQ((*parts)[0][0].data.text(), Strings("s", {1, 2}, {"ab", ""}).data.text());
  EXPECT_EQ((*parts)[1][0].data.text(), Strings("s", {1, 2}, {"c", "def"}).data.text());
}

TEST(Rows, AreSplitWithoutACopy) {
  const Tensor output = FloatTensor("y", {3, 2}, {1, 2, 3, 4, 5, 6});
  const auto parts = SplitOutputs({output}, {2, 1});
  ASSERT_TRUE(parts);
  EXPECT_EQ((*parts)[0][0].shape, (Shape{2, 2}));
  EXPECT_EQ((*parts)[1][0].shape, (Shape{1, 2}));
  EXPECT_EQ((*parts)[1][0].name, "y");
  EXPECT_EQ((*parts)[1][0].data.data(), output.data.data() + 4 * sizeof(float));
  EXPECT_EQ(Floats((*parts)[1][0]), (std::vector<float>{5, 6}));
}

TEST(Rows, OfZeroElementsHaveNoBytes) {
  Batch batch = MakeBatch({{FloatTensor("x", {1, 0}, {})}, {FloatTensor("x", {2, 0}, {})}});
  const auto joined = JoinInputs(batch);
  ASSERT_TRUE(joined);
  EXPECT_EQ((*joined)[0].shape, (Shape{3, 0}));
  const auto parts = SplitOutputs(*joined, batch.rows);
  ASSERT_TRUE(parts);
  EXPECT_EQ((*parts)[1][0].shape, (Shape{2, 0}));
}

TEST(Rows, DataThatAreNotAsTheirShapeSaysAreRefusedAndLeftAlone) {
  for (Tensor bad : {FloatTensor("x", {1, 2}, {1, 2, 3}), FloatTensor("x", {1, 2}, {1}),
                     FloatTensor("x", {1, int64_t{1} << 62, 4}, {1})}) {
    Batch batch = MakeBatch({{FloatTensor("x", {1, 2}, {1, 2})}, {bad}});
    const auto joined = JoinInputs(batch);
    ASSERT_FALSE(joined);
    EXPECT_EQ(joined.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(joined.error().message.find("'x'"), std::string::npos);
    EXPECT_EQ(batch.calls[1].request.inputs[0].data.data(), bad.data.data());
  }
  Tensor truncated = Strings("s", {1}, {"abc"});
  truncated.data = truncated.data.Slice(0, 6);
  Batch batch = MakeBatch({{Strings("s", {1}, {"a"})}, {truncated}});
  EXPECT_FALSE(JoinInputs(batch));
}

TEST(Rows, AnOutputThatDoesNotHaveThemAllIsNamed) {
  const auto wrong = SplitOutputs({FloatTensor("y", {1, 2}, {1, 2})}, {1, 1});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kInternal);
  EXPECT_NE(wrong.error().message.find("'y'"), std::string::npos);
  EXPECT_FALSE(SplitOutputs({FloatTensor("y", {}, {1})}, {1, 1}));
  EXPECT_FALSE(SplitOutputs({FloatTensor("y", {2, 2}, {1, 2})}, {1, 1}));
}

}  // namespace
}  // namespace weir::infer
