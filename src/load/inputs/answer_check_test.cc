#include "load/inputs/answer_check.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "infer/half.h"

namespace weir::load {
namespace {

using infer::DType;
using infer::Response;
using infer::Tensor;
using testing::HasSubstr;
using testing::Optional;

Tensor Floats(const char* name, infer::Shape shape, std::vector<float> values) {
  return {.name = name,
          .dtype = DType::kFp32,
          .shape = std::move(shape),
          .data = Bytes::Copy(std::as_bytes(std::span(values)))};
}

Tensor Text(const char* name, std::string_view bytes) {
  return {.name = name,
          .dtype = DType::kUint8,
          .shape = {static_cast<int64_t>(bytes.size())},
          .data = Bytes::Copy(std::as_bytes(std::span(bytes)))};
}

Response Answer(std::vector<Tensor> outputs) { return Response{.outputs = std::move(outputs)}; }

TEST(AnswerCheck, SaysWhichElementIsNotAsExpected) {
  const auto check = HasOutputs({{Floats("OUT", {2}, {1, 2})}, {Floats("OUT", {2}, {3, 4})}}, 0);
  EXPECT_EQ(check(1, Answer({Floats("MORE", {1}, {9}), Floats("OUT", {2}, {3, 4})})), std::nullopt);
  EXPECT_THAT(check(0, Answer({Floats("OUT", {2}, {1, 2.5})})),
              Optional(HasSubstr("element 1 is 2.5, and 2 was expected")));
  EXPECT_THAT(check(0, Answer({Floats("OUT", {1, 2}, {1, 2})})), Optional(HasSubstr("FP32 [1,2]")));
  EXPECT_THAT(check(0, Answer({})), Optional(HasSubstr("OUT is missing")));
}

TEST(AnswerCheck, TellsBytesApart) {
  const auto check = HasOutputs({{Text("OUT", "abc")}}, 0.5);
  EXPECT_EQ(check(0, Answer({Text("OUT", "abc")})), std::nullopt);
  EXPECT_THAT(check(0, Answer({Text("OUT", "abd")})), Optional(HasSubstr("byte 2")));
}

TEST(AnswerCheck, AllowsFloatsToLieAToleranceOfTheLargestApart) {
  const auto check = HasOutputs({{Floats("OUT", {3}, {-100, 1, 0})}}, 1e-3);
  EXPECT_EQ(check(0, Answer({Floats("OUT", {3}, {-100.05F, 1.09F, 0.05F})})), std::nullopt);
  EXPECT_THAT(check(0, Answer({Floats("OUT", {3}, {-100, 1, 0.2F})})), Optional(HasSubstr("element 2")));
  const float none = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(check(0, Answer({Floats("OUT", {3}, {-100, none, 0})})));
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

// The values in a type of floats, each rounded by its own rule.
Tensor In(DType dtype, const std::vector<double>& values) {
  std::string bytes;
  const auto append = [&](auto value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  for (const double value : values) {
    if (dtype == DType::kFp16) append(infer::Fp16(value));
    if (dtype == DType::kBf16) append(infer::Bf16(value));
    if (dtype == DType::kFp32) append(static_cast<float>(value));
    if (dtype == DType::kFp64) append(value);
  }
  return {.name = "OUT",
          .dtype = dtype,
          .shape = {1, static_cast<int64_t>(values.size())},
          .data = Bytes::Copy(bytes)};
}

class AnswerCheckOfFloats : public testing::TestWithParam<DType> {
 protected:
  // Whether `got` passes where `wanted` is expected.
  static bool Passes(const std::vector<double>& got, const std::vector<double>& wanted,
                     double tolerance = 1e-3) {
    return !HasOutputs({{In(GetParam(), wanted)}}, tolerance)(0, Answer({In(GetParam(), got)}));
  }
};

TEST_P(AnswerCheckOfFloats, LieWithinTheToleranceWhateverTheirWidth) {
  EXPECT_TRUE(Passes({1, 0.2501, 0}, {1, 0.25, 0.0005}));
  EXPECT_FALSE(Passes({1, 0.26, 0}, {1, 0.25, 0}));
  EXPECT_FALSE(Passes({1, 0.25}, {-1, 0.25}));
}

TEST_P(AnswerCheckOfFloats, AnInfinityIsMetByItselfAloneAndExcusesNothingElse) {
  EXPECT_TRUE(Passes({kInfinity, 1, 2}, {kInfinity, 1, 2}));
  EXPECT_FALSE(Passes({kInfinity, 5, 2}, {kInfinity, 1, 2}));
  EXPECT_FALSE(Passes({-kInfinity, 1}, {kInfinity, 1}));
  EXPECT_FALSE(Passes({7, 1}, {kInfinity, 1}));
  EXPECT_FALSE(Passes({kInfinity, 1}, {7, 1}));
  EXPECT_FALSE(Passes({kNone, 1}, {kInfinity, 1}));
  EXPECT_FALSE(Passes({kInfinity}, {kNone}));
  EXPECT_FALSE(Passes({1e-3}, {0}));
}

TEST_P(AnswerCheckOfFloats, NaNMeetsNaNAlone) {
  for (const double tolerance : {0.0, 1e-3}) {
    EXPECT_TRUE(Passes({kNone, 1}, {kNone, 1}, tolerance));
    EXPECT_FALSE(Passes({kNone, 1}, {1, 1}, tolerance));
    EXPECT_FALSE(Passes({1, 1}, {kNone, 1}, tolerance));
  }
  EXPECT_FALSE(Passes({kNone, 5}, {kNone, 1}));
}

TEST_P(AnswerCheckOfFloats, TheGreatestOfTheTypeExcusesNothingElse) {
  const double most = GetParam() == DType::kFp16   ? 65504
                      : GetParam() == DType::kBf16 ? 0x1.fep127
                      : GetParam() == DType::kFp32 ? std::numeric_limits<float>::max()
                                                   : std::numeric_limits<double>::max();
  EXPECT_TRUE(Passes({-most, 1}, {-most, 1}));
  EXPECT_FALSE(Passes({-most, 5}, {-most, 1}));
  EXPECT_FALSE(Passes({most, 1}, {-most, 1}));
}

TEST_P(AnswerCheckOfFloats, WithoutAToleranceEveryBitCounts) {
  EXPECT_TRUE(Passes({1, kInfinity}, {1, kInfinity}, 0));
  EXPECT_FALSE(Passes({0.0}, {-0.0}, 0));
  EXPECT_FALSE(Passes({1.01}, {1}, 0));
}

TEST_P(AnswerCheckOfFloats, TheBestClassIsFoundInEachAndNaNIsNone) {
  const auto check = HasTopClasses({{1}}, 0);
  EXPECT_EQ(check(0, Answer({In(GetParam(), {-1, 4, 3})})), std::nullopt);
  EXPECT_THAT(check(0, Answer({In(GetParam(), {-1, 3, 4})})), Optional(HasSubstr("of class 2")));
  EXPECT_THAT(check(0, Answer({In(GetParam(), {-1, 4, kNone})})), Optional(HasSubstr("NaN")));
  EXPECT_EQ(check(0, Answer({In(GetParam(), {-kInfinity, kInfinity, 3})})), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Widths, AnswerCheckOfFloats,
                         testing::Values(DType::kFp16, DType::kBf16, DType::kFp32, DType::kFp64),
                         [](const auto& one) { return std::string(infer::ToString(one.param)); });

TEST(AnswerCheck, ABrainFloatMayBeOneStepOff) {
  const auto check = HasOutputs({{In(DType::kBf16, {1, 2})}}, 1e-3);
  EXPECT_EQ(check(0, Answer({In(DType::kBf16, {1.0078125, 2})})), std::nullopt);
  EXPECT_TRUE(check(0, Answer({In(DType::kBf16, {1.0234375, 2})})));
}

TEST(AnswerCheck, FindsTheBestClassOfEachRow) {
  const auto check = HasTopClasses({{1, 0}, {0, 1}}, 0);
  EXPECT_EQ(check(0, Answer({Floats("OUT", {2, 3}, {0, 5, 4, 2, 1, 1})})), std::nullopt);
  EXPECT_THAT(check(0, Answer({Floats("OUT", {2, 3}, {0, 5, 4, 1, 1, 2})})),
              Optional(HasSubstr("picture 1 of the request is of class 2, and 0 was expected")));
  EXPECT_EQ(check(1, Answer({Floats("OUT", {2, 3}, {9, 0, 0, 0, 3, 3})})), std::nullopt);
  EXPECT_THAT(check(0, Answer({Floats("OUT", {5}, {0, 1, 2, 3, 4})})),
              Optional(HasSubstr("not a row of floats")));
  EXPECT_THAT(check(0, Answer({Text("OUT", "abcdef")})), Optional(HasSubstr("UINT8")));
}

TEST(AnswerCheck, DoesNotCountOutputsBeforeTheFirstClass) {
  const auto check = HasTopClasses({{1}}, 1);
  EXPECT_EQ(check(0, Answer({Floats("OUT", {1, 4}, {9, 1, 3, 2})})), std::nullopt);
}

TEST(AnswerCheck, ReadsTheBestClassesOfAProtocol) {
  const auto classes = TopClasses::Read(
      "file,status,rank,class,label,score,reason\n"
      "x/a.jpg,ok,1,7,\"cat, tabby\",0.5,\n"
      "x/a.jpg,ok,2,9,dog,0.4,\n"
      "x/b.jpg,rejected,,,,,truncated\n"
      "x/c.jpg,ok,1,0,,0.5,\n");
  ASSERT_TRUE(classes) << classes.error().message;
  EXPECT_EQ(classes->Of("x/a.jpg").value_or(-1), 7);
  EXPECT_EQ(classes->Of("moved/a.jpg").value_or(-1), 7);
  EXPECT_EQ(classes->Of("c.jpg").value_or(-1), 0);
  EXPECT_THAT(classes->Of("x/b.jpg").error().message, HasSubstr("no answer for x/b.jpg"));
}

TEST(AnswerCheck, RefusesAPictureOfWhichOnlyTheLastPartIsKnownAndTellsSeveralClasses) {
  const auto classes = TopClasses::Read(
      "file,status,rank,class\n"
      "x/1.jpg,ok,1,7\n"
      "y/1.jpg,ok,1,9\n"
      "x/2.jpg,ok,1,3\n"
      "y/2.jpg,ok,1,3\n"
      "z/3.jpg,ok,1,1\n"
      "z/3.jpg,ok,1,2\n");
  ASSERT_TRUE(classes) << classes.error().message;
  EXPECT_EQ(classes->Of("x/1.jpg").value_or(-1), 7) << "as found";
  EXPECT_EQ(classes->Of("y/1.jpg").value_or(-1), 9);
  EXPECT_THAT(classes->Of("moved/1.jpg").error().message, HasSubstr("x/1.jpg and y/1.jpg"));
  EXPECT_EQ(classes->Of("moved/2.jpg").value_or(-1), 3) << "whichever it is";
  EXPECT_THAT(classes->Of("z/3.jpg").error().message, HasSubstr("several classes for z/3.jpg"));
}

TEST(AnswerCheck, RefusesWhatIsNoProtocol) {
  EXPECT_THAT(TopClasses::Read("a,b\n1,2\n").error().message, HasSubstr("file, status, rank and class"));
  EXPECT_THAT(TopClasses::Read("file,status,rank,class\nx,ok,1,cat\n").error().message, HasSubstr("line 2"));
}

}  // namespace
}  // namespace weir::load
