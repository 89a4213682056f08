#include "load/inputs/requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace weir::load {
namespace {

using infer::DType;
using infer::ModelInfo;
using infer::Request;
using infer::Shape;
using infer::Tensor;
using infer::TensorInfo;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelInfo Model(std::vector<TensorInfo> inputs, int max_batch = 0) {
  return {.name = "m",
          .inputs = std::move(inputs),
          .outputs = {{.name = "OUT", .shape = {-1, 2}}},
          .max_batch = max_batch};
}

ModelInfo Pictures(int max_batch = 8) {
  return Model({{.name = "IN", .dtype = DType::kFp32, .shape = {-1, 3, 4, 4}}}, max_batch);
}

std::vector<Request> Make(const ModelInfo& model, const RequestOptions& options) {
  auto requests = MakeRequests(model, "1", options);
  EXPECT_TRUE(requests) << requests.error().message;
  return requests ? *std::move(requests) : std::vector<Request>{};
}

// That it is kInvalidArgument, and the words.
std::string Refusal(const ModelInfo& model, const RequestOptions& options) {
  const auto requests = MakeRequests(model, "1", options);
  if (requests) return "accepted";
  EXPECT_EQ(requests.error().code, ErrorCode::kInvalidArgument);
  return requests.error().message;
}

template <typename T>
std::vector<T> Values(const Tensor& tensor) {
  std::vector<T> values(tensor.data.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

std::vector<std::string> Texts(const Bytes& data) {
  std::vector<std::string> texts;
  for (std::string_view rest = data.text(); !rest.empty();) {
    uint32_t length = 0;
    std::memcpy(&length, rest.data(), sizeof length);
    texts.emplace_back(rest.substr(sizeof length, length));
    rest.remove_prefix(sizeof length + length);
  }
  return texts;
}

TEST(MakeRequests, SayTheModelItsVersionAndTheOutputsAsked) {
  const auto requests = Make(Pictures(), {.pool = 2, .outputs = {"OUT"}});
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[1].model, "m");
  EXPECT_EQ(requests[1].version, "1");
  EXPECT_THAT(requests[1].outputs, ElementsAre("OUT"));
}

TEST(MakeRequests, HaveTheBatchBeforeTheRowWhereTheModelBatches) {
  const Tensor tensor = Make(Pictures(), {.batch = 8, .pool = 1}).at(0).inputs.at(0);
  EXPECT_EQ(tensor.name, "IN");
  EXPECT_EQ(tensor.dtype, DType::kFp32);
  EXPECT_EQ(tensor.shape, (Shape{8, 3, 4, 4}));
  EXPECT_EQ(tensor.data.size(), 8u * 3 * 4 * 4 * 4);
}

TEST(MakeRequests, LeaveTheShapeAsItIsWhereTheModelDoesNotBatch) {
  const auto model = Model({{.name = "IN", .dtype = DType::kInt8, .shape = {2, 5}}});
  EXPECT_EQ(Make(model, {.pool = 1})[0].inputs[0].shape, (Shape{2, 5}));
  const auto scalar = Model({{.name = "IN", .dtype = DType::kInt8, .shape = {}}});
  EXPECT_EQ(Make(scalar, {.pool = 1})[0].inputs[0].data.size(), 1u);
}

TEST(MakeRequests, AreSlicesOfOneBlockSixtyFourBytesApart) {
  const auto requests = Make(Pictures(), {.batch = 2, .pool = 100});
  ASSERT_EQ(requests.size(), 100u);
  std::set<std::string> different;
  const std::byte* first = requests[0].inputs[0].data.data();
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(requests[i].inputs[0].data.data(), first + 64 * i);
    different.emplace(requests[i].inputs[0].data.text());
  }
  EXPECT_EQ(different.size(), 100u);
}

TEST(MakeRequests, ComeAgainFromTheSameSeedOnly) {
  const auto bytes = [](uint64_t seed) {
    return std::string(Make(Pictures(), {.pool = 3, .seed = Seed(seed)})[2].inputs[0].data.text());
  };
  EXPECT_EQ(bytes(1), bytes(1));
  EXPECT_NE(bytes(1), bytes(2));
}

TEST(MakeRequests, GiveEveryInputBytesOfItsOwn) {
  const auto model = Model({{.name = "A", .dtype = DType::kInt64, .shape = {8}},
                            {.name = "B", .dtype = DType::kInt64, .shape = {8}}});
  const auto requests = Make(model, {.pool = 1});
  EXPECT_NE(requests[0].inputs.at(0).data.text(), requests[0].inputs.at(1).data.text());
}

TEST(MakeRequests, FloatsLieFromZeroToOne) {
  const auto model = Model({{.name = "F", .dtype = DType::kFp32, .shape = {10'000}},
                            {.name = "D", .dtype = DType::kFp64, .shape = {10'000}}});
  const auto requests = Make(model, {.pool = 1});
  const auto check = [](const auto& values) {
    double sum = 0;
    for (const auto value : values) {
      ASSERT_GE(value, 0);
      ASSERT_LT(value, 1);
      sum += static_cast<double>(value);
    }
    EXPECT_NEAR(sum / 10'000, 0.5, 0.02);
  };
  check(Values<float>(requests[0].inputs[0]));
  check(Values<double>(requests[0].inputs[1]));
}

TEST(MakeRequests, SixteenBitFloatsAreFiniteAndLieFromZeroToOne) {
  const auto model = Model({{.name = "H", .dtype = DType::kFp16, .shape = {10'000}},
                            {.name = "B", .dtype = DType::kBf16, .shape = {10'000}}});
  const auto requests = Make(model, {.pool = 1});
  for (const uint16_t bits : Values<uint16_t>(requests[0].inputs[0])) ASSERT_LT(bits, *ToFp16(1));
  for (const uint16_t bits : Values<uint16_t>(requests[0].inputs[1])) ASSERT_LT(bits, *ToBf16(1));
}

TEST(MakeRequests, IntegersHaveTheirWholeRangeAndBoolsTwoValues) {
  const auto model = Model({{.name = "B", .dtype = DType::kBool, .shape = {10'001}},
                            {.name = "I", .dtype = DType::kInt8, .shape = {10'001}}});
  const auto requests = Make(model, {.pool = 1});
  const auto bools = Values<uint8_t>(requests[0].inputs[0]);
  EXPECT_EQ(std::set<uint8_t>(bools.begin(), bools.end()), (std::set<uint8_t>{0, 1}));
  const auto integers = Values<int8_t>(requests[0].inputs[1]);
  EXPECT_EQ(std::set<int8_t>(integers.begin(), integers.end()).size(), 256u);
}

TEST(MakeRequests, TextsAreLettersOfTheLengthAskedAndDiffer) {
  const auto model = Model({{.name = "T", .dtype = DType::kBytes, .shape = {-1, 2}}}, 4);
  const auto requests = Make(model, {.batch = 3, .pool = 5, .string_length = 25});
  ASSERT_EQ(requests.size(), 5u);
  std::set<std::string> different;
  for (const Request& request : requests) {
    EXPECT_EQ(request.inputs[0].shape, (Shape{3, 2}));
    const auto texts = Texts(request.inputs[0].data);
    ASSERT_EQ(texts.size(), 6u);
    for (const std::string& text : texts) {
      EXPECT_EQ(text.size(), 25u);
      for (const char c : text) EXPECT_TRUE(std::isprint(static_cast<unsigned char>(c)));
      different.insert(text);
    }
  }
  EXPECT_EQ(different.size(), 30u);
}

TEST(MakeRequests, TextsTakeSixtyFourMebibytesAtMost) {
  const auto model = Model({{.name = "T", .dtype = DType::kBytes, .shape = {1}}});
  EXPECT_EQ(Make(model, {.pool = 100, .string_length = (16 << 20) - 4}).size(), 4u);
  EXPECT_EQ(Make(model, {.pool = 100, .string_length = 100 << 20}).size(), 1u);
}

TEST(MakeRequests, OfTheSameTextOneIsEnough) {
  const auto model = Model({{.name = "T", .dtype = DType::kBytes, .shape = {2}}});
  const auto requests = Make(model, {.string_data = "hello"});
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_THAT(Texts(requests[0].inputs[0].data), ElementsAre("hello", "hello"));
}

TEST(MakeRequests, ZeroFillIsOneRequestOfZerosAndEmptyTexts) {
  const auto model = Model({{.name = "F", .dtype = DType::kFp32, .shape = {3}},
                            {.name = "T", .dtype = DType::kBytes, .shape = {2}}});
  const auto requests = Make(model, {.fill = RequestOptions::Fill::kZero});
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_THAT(Values<float>(requests[0].inputs[0]), ElementsAre(0, 0, 0));
  EXPECT_THAT(Texts(requests[0].inputs[1].data), ElementsAre("", ""));
}

TEST(MakeRequests, FreeDimensionsAreSaid) {
  const auto model = Model({{.name = "IN", .dtype = DType::kUint8, .shape = {-1, 3, -1, -1}}}, 4);
  EXPECT_EQ(Make(model, {.batch = 2, .shapes = {{"IN", {3, 5, 7}}}, .pool = 1})[0].inputs[0].shape,
            (Shape{2, 3, 5, 7}));
  const std::string refusal = Refusal(model, {});
  EXPECT_THAT(refusal, HasSubstr("\"IN\""));
  EXPECT_THAT(refusal, HasSubstr("[3,-1,-1]"));
  EXPECT_THAT(refusal, HasSubstr("--shape IN:"));
}

TEST(MakeRequests, AShapeThatContradictsTheModelIsRefused) {
  const auto model = Model({{.name = "IN", .dtype = DType::kUint8, .shape = {-1, 3, -1, -1}}}, 4);
  EXPECT_THAT(Refusal(model, {.shapes = {{"IN", {4, 5, 7}}}}), HasSubstr("[4,5,7] does not fit [3,-1,-1]"));
  EXPECT_THAT(Refusal(model, {.shapes = {{"IN", {1, 3, 5, 7}}}}), HasSubstr("batch dimension"));
  EXPECT_THAT(Refusal(model, {.shapes = {{"IN", {3, -1, 7}}}}), HasSubstr("does not fit"));
  EXPECT_THAT(Refusal(model, {.shapes = {{"OTHER", {3}}}}), HasSubstr("it has: IN"));
}

TEST(MakeRequests, WhatTheModelDoesNotTakeIsRefused) {
  EXPECT_THAT(Refusal(Pictures(8), {.batch = 9}), HasSubstr("up to 8"));
  EXPECT_THAT(Refusal(Pictures(8), {.batch = 0}), HasSubstr("1 or more"));
  EXPECT_THAT(Refusal(Pictures(0), {.batch = 2}), HasSubstr("does not batch"));
  EXPECT_THAT(Refusal(Model({}), {}), HasSubstr("no inputs"));
  EXPECT_THAT(Refusal(Pictures(), {.outputs = {"NONE"}}), HasSubstr("it has: OUT"));
  const auto shapeless = Model({{.name = "IN", .dtype = DType::kUint8, .shape = {}}}, 4);
  EXPECT_THAT(Refusal(shapeless, {}), HasSubstr("without a batch dimension"));
}

TEST(MakeRequests, PoolsAndLengthsOutOfRangeAreRefused) {
  EXPECT_THAT(Refusal(Pictures(), {.pool = 0}), HasSubstr("pool"));
  EXPECT_THAT(Refusal(Pictures(), {.pool = (1 << 20) + 1}), HasSubstr("pool"));
  EXPECT_THAT(Refusal(Pictures(), {.string_length = -1}), HasSubstr("characters"));
}

TEST(MakeRequests, TextsForAModelThatTakesNoneAreRefused) {
  EXPECT_THAT(Refusal(Pictures(), {.string_data = "a"}), HasSubstr("no input of BYTES"));
  EXPECT_THAT(Refusal(Pictures(), {.string_length = 5}), HasSubstr("--string-length"));
}

TEST(MakeRequests, MoreThanAGibibyteIsRefused) {
  const auto one = Model({{.name = "IN", .dtype = DType::kFp32, .shape = {-1, (1 << 28) + 1}}}, 1);
  EXPECT_THAT(Refusal(one, {}), HasSubstr("1 GiB"));
  const TensorInfo half{.name = "A", .dtype = DType::kInt8, .shape = {(int64_t{1} << 29) + 1}};
  EXPECT_THAT(Refusal(Model({half, half}), {}), HasSubstr("1 GiB"));
  const auto huge = Model({{.name = "IN", .dtype = DType::kFp64, .shape = {int64_t{1} << 40, 1 << 30}}});
  EXPECT_THAT(Refusal(huge, {}), HasSubstr("2^63"));
  const auto text = Model({{.name = "T", .dtype = DType::kBytes, .shape = {1 << 20}}});
  EXPECT_THAT(Refusal(text, {.string_length = 1 << 20}), HasSubstr("1 GiB"));
}

std::vector<Bytes> ThreeRows() { return {Bytes::Copy("a"), Bytes::Copy("bb"), Bytes::Copy("")}; }

std::vector<std::string> Joined(std::vector<Bytes> rows, int batch) {
  std::vector<std::string> texts;
  for (const Bytes& bytes : JoinRows(std::move(rows), batch)) texts.emplace_back(bytes.text());
  return texts;
}

TEST(JoinRows, BeginAgainWithTheFirstUntilTheRequestsRepeat) {
  EXPECT_THAT(Joined(ThreeRows(), 1), ElementsAre("a", "bb", ""));
  EXPECT_THAT(Joined(ThreeRows(), 2), ElementsAre("abb", "a", "bb"));
  EXPECT_THAT(Joined(ThreeRows(), 3), ElementsAre("abb"));
  EXPECT_THAT(Joined(ThreeRows(), 7), ElementsAre("abbabba", "bbabbabb", "abbabb"));
  EXPECT_THAT(Joined({Bytes::Copy("x")}, 3), ElementsAre("xxx"));
}

TEST(JoinRows, AreSlicesOfOneBlock) {
  std::vector<Bytes> rows;
  for (int i = 0; i < 5; ++i) rows.push_back(Bytes::Copy("12345678"));
  EXPECT_EQ(JoinedBytes(rows, 3), 7 * 8);
  const auto requests = JoinRows(rows, 3);
  ASSERT_EQ(requests.size(), 5u);
  EXPECT_EQ(requests[2].data(), requests[0].data() + 8);  // its first row is (2 * 3) % 5
}

TEST(SixteenBits, RoundToTheNearestNumber) {
  EXPECT_EQ(ToFp16(0.0), 0x0000);
  EXPECT_EQ(ToFp16(-0.0), 0x8000);
  EXPECT_EQ(ToFp16(1.0), 0x3c00);
  EXPECT_EQ(ToFp16(-2.0), 0xc000);
  EXPECT_EQ(ToFp16(0.1), 0x2e66);
  EXPECT_EQ(ToFp16(65504), 0x7bff);
  EXPECT_EQ(ToFp16(65519), 0x7bff);
  EXPECT_EQ(ToFp16(0x1p-14), 0x0400);
  EXPECT_EQ(ToFp16(0x1p-24), 0x0001);
  EXPECT_EQ(ToFp16(0x1p-26), 0x0000);
  EXPECT_EQ(ToFp16(1 + 0x1p-11), 0x3c00);  // a tie goes to the even one
  EXPECT_EQ(ToFp16(1 + 0x3p-11), 0x3c02);
  EXPECT_EQ(ToFp16(2 - 0x1p-12), 0x4000);
  EXPECT_EQ(ToBf16(1.0), 0x3f80);
  EXPECT_EQ(ToBf16(-3.140625), 0xc049);
  EXPECT_EQ(ToBf16(0x1p-133), 0x0001);
}

TEST(SixteenBits, HaveNoNumberBeyondTheirRange) {
  EXPECT_FALSE(ToFp16(65520));
  EXPECT_FALSE(ToFp16(-1e300));
  EXPECT_FALSE(ToFp16(std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(ToFp16(std::nan("")));
  EXPECT_TRUE(ToBf16(3.38e38));
  EXPECT_FALSE(ToBf16(3.4e38));
  EXPECT_FALSE(ToBf16(1e39));
}

}  // namespace
}  // namespace weir::load
