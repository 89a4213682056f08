#include "infer/engines/binding.h"

#include <gtest/gtest.h>

#include "infer/testing/answers.h"

namespace weir::infer {
namespace {

using testing::FloatTensor;

const std::vector<TensorInfo> kDeclared = {{.name = "a", .shape = {-1, 2}}, {.name = "b", .shape = {3}}};

Tensor A() { return FloatTensor("a", {2, 2}, {1, 2, 3, 4}); }
Tensor B() { return FloatTensor("b", {3}, {5, 6, 7}); }

std::string Refusal(std::vector<Tensor> inputs) {
  const auto bound = BindInputs(kDeclared, inputs);
  if (bound) return "";
  EXPECT_EQ(bound.error().code, ErrorCode::kInvalidArgument);
  return bound.error().message;
}

TEST(BindInputs, PutsThemInTheOrderOfTheModel) {
  const std::vector<Tensor> inputs{B(), A()};
  const auto bound = BindInputs(kDeclared, inputs);
  ASSERT_TRUE(bound);
  EXPECT_EQ(*bound, (std::vector<const Tensor*>{&inputs[1], &inputs[0]}));
}

TEST(BindInputs, NamesWhatIsMissingUnknownOrTwiceThere) {
  EXPECT_EQ(Refusal({A()}), "input 'b' is missing");
  EXPECT_EQ(Refusal({A(), B(), B()}), "input 'b' is given twice");
  Tensor other = B();
  other.name = "c";
  EXPECT_EQ(Refusal({A(), other}), "the model has no input 'c': its inputs are a, b");
}

TEST(BindInputs, NamesWhatDoesNotFit) {
  Tensor typed = A();
  typed.dtype = DType::kInt32;
  EXPECT_EQ(Refusal({typed, B()}), "input 'a': type is INT32, the model takes FP32");
  EXPECT_EQ(Refusal({FloatTensor("a", {1, 4}, {1, 2, 3, 4}), B()}),
            "input 'a': shape is [1,4], the model takes [-1,2]");
  EXPECT_EQ(Refusal({FloatTensor("a", {4}, {1, 2, 3, 4}), B()}),
            "input 'a': shape is [4], the model takes [-1,2]");
  EXPECT_EQ(Refusal({FloatTensor("a", {0, 2}, {}), B()}), "");
  EXPECT_EQ(Refusal({FloatTensor("a", {2, 2}, {1, 2, 3}), B()}),
            "input 'a': has 12 bytes, 4 elements of FP32 are wanted");
  Tensor odd = A();
  odd.data = odd.data.Slice(0, 15);
  EXPECT_EQ(Refusal({odd, B()}), "input 'a': has 15 bytes, 4 elements of FP32 are wanted");
}

TEST(BindInputs, StringsMustFillTheirDataExactly) {
  const std::vector<TensorInfo> declared{{.name = "s", .dtype = DType::kBytes, .shape = {-1}}};
  const auto fits = [&](std::string_view data, int64_t count) {
    const Tensor tensor{.name = "s", .dtype = DType::kBytes, .shape = {count}, .data = Bytes::Copy(data)};
    return BindInputs(declared, {tensor}).has_value();
  };
  constexpr std::string_view kTwo("\2\0\0\0ab\0\0\0\0", 10);
  EXPECT_TRUE(fits(kTwo, 2));
  EXPECT_FALSE(fits(kTwo, 1));
  EXPECT_FALSE(fits(kTwo, 3));
  EXPECT_FALSE(fits(kTwo.substr(0, 9), 2));
  EXPECT_FALSE(fits(std::string_view("\xff\xff\xff\xff", 4), 1));
}

TEST(BindOutputs, AreAllOrThoseWantedInTheirOrder) {
  EXPECT_EQ(BindOutputs(kDeclared, {}), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(BindOutputs(kDeclared, {"b", "a"}), (std::vector<size_t>{1, 0}));
  EXPECT_EQ(BindOutputs(kDeclared, {"c"}).error().message,
            "the model has no output 'c': its outputs are a, b");
  EXPECT_EQ(BindOutputs(kDeclared, {"a", "a"}).error().message, "output 'a' is asked for twice");
}

TEST(AlignedData, CopiesOnlyWhatLiesAcross) {
  const Bytes memory = Bytes::Allocate(64);
  const Tensor straight{.name = "a", .shape = {2}, .data = memory.Slice(4, 8)};
  EXPECT_EQ(AlignedData(straight).data(), straight.data.data());
  const Tensor across{.name = "a", .shape = {2}, .data = memory.Slice(3, 8)};
  EXPECT_NE(AlignedData(across).data(), across.data.data());
  EXPECT_EQ(AlignedData(across).size(), 8u);
}

}  // namespace
}  // namespace weir::infer
