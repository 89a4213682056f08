#include "load/inputs/input_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"

namespace weir::load {
namespace {

namespace fs = std::filesystem;

using infer::DType;
using infer::ModelInfo;
using infer::Shape;
using infer::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelInfo One(DType dtype, Shape shape, int max_batch = 0) {
  return {.name = "m",
          .inputs = {{.name = "IN", .dtype = dtype, .shape = std::move(shape)}},
          .outputs = {{.name = "OUT", .dtype = DType::kInt32, .shape = {2}}},
          .max_batch = max_batch};
}

// Batches up to 8: INT32 [2] in, INT32 [1] out.
ModelInfo Pairs() {
  return {.name = "m",
          .inputs = {{.name = "IN", .dtype = DType::kInt32, .shape = {-1, 2}}},
          .outputs = {{.name = "OUT", .dtype = DType::kInt32, .shape = {-1, 1}},
                      {.name = "MORE", .dtype = DType::kInt32, .shape = {-1, 1}}},
          .max_batch = 8};
}

InputData Read(std::string_view json, const ModelInfo& model, const RequestOptions& options = {}) {
  auto data = ReadInputData(json, model, "2", options);
  EXPECT_TRUE(data) << data.error().message;
  return data ? *std::move(data) : InputData{};
}

std::string Refusal(std::string_view json, const ModelInfo& model, const RequestOptions& options = {}) {
  const auto data = ReadInputData(json, model, "", options);
  if (data) return "accepted";
  EXPECT_EQ(data.error().code, ErrorCode::kInvalidArgument);
  return data.error().message;
}

template <typename T>
std::vector<T> Values(const Tensor& tensor) {
  std::vector<T> values(tensor.data.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

const Tensor& Input(const InputData& data, size_t request = 0) {
  return data.requests.at(request).inputs.at(0);
}

TEST(InputData, EveryStepIsARequest) {
  const InputData data =
      Read(R"({"data": [{"IN": [1, -2]}, {"IN": {"content": [3, 4], "shape": [2]}}]})", Pairs());
  ASSERT_EQ(data.requests.size(), 2u);
  EXPECT_EQ(data.requests[0].model, "m");
  EXPECT_EQ(data.requests[0].version, "2");
  EXPECT_EQ(Input(data).name, "IN");
  EXPECT_EQ(Input(data).dtype, DType::kInt32);
  EXPECT_EQ(Input(data).shape, (Shape{1, 2}));
  EXPECT_THAT(Values<int32_t>(Input(data)), ElementsAre(1, -2));
  EXPECT_THAT(Values<int32_t>(Input(data, 1)), ElementsAre(3, 4));
  EXPECT_TRUE(data.expected.empty());
}

TEST(InputData, StreamsAreTakenOneAfterTheOther) {
  const InputData data = Read(R"({"data": [[{"IN": [1, 1]}, {"IN": [2, 2]}], [{"IN": [3, 3]}]]})", Pairs());
  ASSERT_EQ(data.requests.size(), 3u);
  EXPECT_THAT(Values<int32_t>(Input(data, 2)), ElementsAre(3, 3));
}

TEST(InputData, BatchesTakeTheStepsInTurnAndBeginAgain) {
  const InputData data = Read(R"({"data": [{"IN": [1, 1]}, {"IN": [2, 2]}, {"IN": [3, 3]}],
               "validation_data": [{"OUT": [10]}, {"OUT": [20]}, {"OUT": [30]}]})",
                              Pairs(), {.batch = 2});
  ASSERT_EQ(data.requests.size(), 3u);
  EXPECT_EQ(Input(data).shape, (Shape{2, 2}));
  EXPECT_THAT(Values<int32_t>(Input(data, 0)), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(Values<int32_t>(Input(data, 1)), ElementsAre(3, 3, 1, 1));
  EXPECT_THAT(Values<int32_t>(Input(data, 2)), ElementsAre(2, 2, 3, 3));
  ASSERT_EQ(data.expected.size(), 3u);
  ASSERT_EQ(data.expected[1].size(), 1u);
  EXPECT_EQ(data.expected[1][0].name, "OUT");
  EXPECT_EQ(data.expected[1][0].shape, (Shape{2, 1}));
  EXPECT_THAT(Values<int32_t>(data.expected[1][0]), ElementsAre(30, 10));
}

TEST(InputData, OneStepFillsABatch) {
  const InputData data = Read(R"({"data": [{"IN": [1, 2]}]})", Pairs(), {.batch = 3});
  ASSERT_EQ(data.requests.size(), 1u);
  EXPECT_THAT(Values<int32_t>(Input(data)), ElementsAre(1, 2, 1, 2, 1, 2));
}

TEST(InputData, EveryTypeHoldsItsOwnNumbers) {
  const auto only = [](DType dtype, const std::string& values) {
    return Input(Read(R"({"data": [{"IN": [)" + values + "]}]}", One(dtype, {2})));
  };
  EXPECT_THAT(Values<uint8_t>(only(DType::kBool, "true, 0")), ElementsAre(1, 0));
  EXPECT_THAT(Values<uint8_t>(only(DType::kUint8, "0, 255")), ElementsAre(0, 255));
  EXPECT_THAT(Values<int8_t>(only(DType::kInt8, "-128, 127")), ElementsAre(-128, 127));
  EXPECT_THAT(Values<uint16_t>(only(DType::kUint16, "0, 65535")), ElementsAre(0, 65535));
  EXPECT_THAT(Values<int16_t>(only(DType::kInt16, "-32768, 32767")), ElementsAre(-32768, 32767));
  EXPECT_THAT(Values<uint32_t>(only(DType::kUint32, "0, 4294967295")), ElementsAre(0u, 4294967295u));
  EXPECT_THAT(Values<int32_t>(only(DType::kInt32, "-2147483648, 7")), ElementsAre(INT32_MIN, 7));
  EXPECT_THAT(Values<uint64_t>(only(DType::kUint64, "0, 18446744073709551615")), ElementsAre(0u, UINT64_MAX));
  EXPECT_THAT(Values<int64_t>(only(DType::kInt64, "-9223372036854775808, 9223372036854775807")),
              ElementsAre(INT64_MIN, INT64_MAX));
  EXPECT_THAT(Values<float>(only(DType::kFp32, "1, -0.5")), ElementsAre(1.0f, -0.5f));
  EXPECT_THAT(Values<double>(only(DType::kFp64, "1e300, 3")), ElementsAre(1e300, 3));
  EXPECT_THAT(Values<uint16_t>(only(DType::kFp16, "1, -2.0")), ElementsAre(0x3c00, 0xc000));
  EXPECT_THAT(Values<uint16_t>(only(DType::kBf16, "1, -2.0")), ElementsAre(0x3f80, 0xc000));
  using namespace std::string_view_literals;
  EXPECT_EQ(only(DType::kBytes, R"("ab", "")").data.text(), "\2\0\0\0ab\0\0\0\0"sv);
}

TEST(InputData, NumbersOutOfRangeAreNamed) {
  const auto refusal = [](DType dtype, const std::string& values) {
    return Refusal(R"({"data": [{"IN": [0, 0]}, {"IN": [0, )" + values + "]}]}", One(dtype, {2}));
  };
  for (const auto& [dtype, value] :
       std::vector<std::pair<DType, std::string>>{{DType::kBool, "2"},
                                                  {DType::kUint8, "256"},
                                                  {DType::kUint8, "-1"},
                                                  {DType::kInt8, "128"},
                                                  {DType::kUint16, "65536"},
                                                  {DType::kInt16, "-32769"},
                                                  {DType::kUint32, "4294967296"},
                                                  {DType::kInt32, "2147483648"},
                                                  {DType::kUint64, "-1"},
                                                  {DType::kUint64, "18446744073709551616"},
                                                  {DType::kInt64, "9223372036854775808"},
                                                  {DType::kInt32, "1.0"},
                                                  {DType::kInt32, "\"1\""},
                                                  {DType::kInt32, "[1]"},
                                                  {DType::kInt32, "null"},
                                                  {DType::kFp32, "1e39"},
                                                  {DType::kFp16, "65520"},
                                                  {DType::kBf16, "1e39"},
                                                  {DType::kFp64, "true"}}) {
    const std::string words = refusal(dtype, value);
    EXPECT_THAT(words, HasSubstr("data[1]: input \"IN\": value 1 ")) << value;
    EXPECT_THAT(words, HasSubstr(ToString(dtype))) << value;
  }
  EXPECT_THAT(Refusal(R"({"data": [{"IN": ["a", 1]}]})", One(DType::kBytes, {2})),
              HasSubstr("value 1 is no text"));
}

TEST(InputData, Base64IsTheBytesThemselves) {
  const auto model = One(DType::kUint8, {-1});
  for (const char* json : {R"({"data": [{"IN": {"b64": "aGVsbG8="}}]})",
                           R"({"data": [{"IN": {"b64": "aGVsbG8=", "shape": [5]}}]})",
                           R"({"data": [{"IN": {"content": {"b64": "aGVsbG8="}, "shape": [5]}}]})"}) {
    const InputData data = Read(json, model);
    EXPECT_EQ(Input(data).data.text(), "hello");
    EXPECT_EQ(Input(data).shape, (Shape{5}));
  }
  EXPECT_EQ(Input(Read(R"({"data": [{"IN": {"b64": "AP/+"}}]})", model)).data.text(),
            std::string("\0\xff\xfe", 3));
  EXPECT_EQ(Input(Read(R"({"data": [{"IN": {"b64": "aA=="}}]})", model)).data.text(), "h");
  EXPECT_TRUE(Input(Read(R"({"data": [{"IN": {"b64": ""}}]})", model)).data.empty());
  const std::string texts = R"({"data": [{"IN": {"b64": "AgAAAGFiAAAAAA=="}}]})";
  EXPECT_EQ(Input(Read(texts, One(DType::kBytes, {-1}))).shape, (Shape{2}));
}

TEST(InputData, WrongBase64IsRefused) {
  for (const char* text : {"a", "aG", "aGVsbG8", "aGVsbG8==", "====", "=aaa", "aG=s", "aG\\nVs",
                           "aGVs*A==", "aH==", "a===", "aGVsbG9=", "aaa\\u00e9"}) {
    EXPECT_THAT(
        Refusal(std::string(R"({"data": [{"IN": {"b64": ")") + text + R"("}}]})", One(DType::kUint8, {-1})),
        HasSubstr("data[0]: input \"IN\": \"b64\" is no base64"))
        << text;
  }
  EXPECT_THAT(Refusal(R"({"data": [{"IN": {"b64": 5}}]})", One(DType::kUint8, {-1})), HasSubstr("no base64"));
  EXPECT_THAT(Refusal(R"({"data": [{"IN": {"b64": "aGVsbG8="}}]})", One(DType::kInt16, {-1})),
              HasSubstr("5 bytes are no whole elements of INT16"));
  EXPECT_THAT(Refusal(R"({"data": [{"IN": {"b64": "/////2E="}}]})", One(DType::kBytes, {-1})),
              HasSubstr("begins with its length"));
  EXPECT_THAT(Refusal(R"({"data": [{"IN": {"b64": "AAA="}}]})", One(DType::kBytes, {-1})),
              HasSubstr("begins with its length"));
}

TEST(InputData, TheStepsShapeComesBeforeTheCommandLinesAndThatBeforeTheCount) {
  const auto model = One(DType::kInt8, {-1, -1});
  const InputData data =
      Read(R"({"data": [{"IN": {"content": [1,2,3,4], "shape": [4, 1]}}, {"IN": [1,2,3,4]}]})", model,
           {.shapes = {{"IN", {2, 2}}}});
  EXPECT_EQ(Input(data, 0).shape, (Shape{4, 1}));
  EXPECT_EQ(Input(data, 1).shape, (Shape{2, 2}));
  EXPECT_EQ(Input(Read(R"({"data": [{"IN": [1,2,3,4]}]})", One(DType::kInt8, {-1, 2}))).shape, (Shape{2, 2}));
  EXPECT_THAT(Refusal(R"({"data": [{"IN": [1,2,3,4]}]})", model), HasSubstr("--shape IN:"));
  EXPECT_THAT(Refusal(R"({"data": [{"IN": [1,2,3]}]})", One(DType::kInt8, {-1, 2})), HasSubstr("\"shape\""));
}

TEST(InputData, ShapesThatAreNoneAreRefused) {
  const auto refusal = [](const std::string& shape) {
    return Refusal(R"({"data": [{"IN": {"content": [1, 2], "shape": )" + shape + "}}]}",
                   One(DType::kInt8, {-1, 2}));
  };
  EXPECT_EQ(refusal("[1, 2]"), "accepted");
  EXPECT_THAT(refusal("[2]"), HasSubstr("[2] does not fit [-1,2]"));
  EXPECT_THAT(refusal("[2, 1]"), HasSubstr("does not fit"));
  EXPECT_THAT(refusal("[-1, 2]"), HasSubstr("\"shape\" has an element"));
  EXPECT_THAT(refusal("[1.5, 2]"), HasSubstr("\"shape\" has an element"));
  EXPECT_THAT(refusal("[18446744073709551615, 2]"), HasSubstr("\"shape\" has an element"));
  EXPECT_THAT(refusal("2"), HasSubstr("\"shape\" is no list"));
  EXPECT_THAT(refusal("[9223372036854775807, 2]"), HasSubstr("2^63"));
  EXPECT_THAT(refusal("[4611686018427387903, 2]"), HasSubstr("2 values where"));
}

TEST(InputData, ShapesThatDifferGoIntoRequestsOfTheirOwnOnly) {
  const ModelInfo model = One(DType::kInt8, {-1, -1}, 8);
  const auto mixed = R"({"data": [{"IN": [1]}, {"IN": [1]}, {"IN": [1, 2]}, {"IN": [1, 2]}]})";
  EXPECT_EQ(Input(Read(mixed, model), 2).shape, (Shape{1, 2}));
  const InputData pairs = Read(mixed, model, {.batch = 2});
  ASSERT_EQ(pairs.requests.size(), 2u);
  EXPECT_EQ(Input(pairs, 0).shape, (Shape{2, 1}));
  EXPECT_EQ(Input(pairs, 1).shape, (Shape{2, 2}));
  EXPECT_THAT(Refusal(mixed, model, {.batch = 3}), HasSubstr("steps 0 and 2 have shapes [1] and [2]"));
}

TEST(InputData, WrongCountsAreRefused) {
  EXPECT_THAT(Refusal(R"({"data": [[{"IN": [1, 2]}, {"IN": [1, 2, 3]}]]})", Pairs()),
              HasSubstr("data[0][1]: input \"IN\": 3 values where shape [2] takes 2"));
  EXPECT_THAT(Refusal(R"({"data": [{"IN": []}]})", Pairs()), HasSubstr("0 values"));
}

TEST(InputData, TensorsThatAreMissingOrTooManyAreNamed) {
  EXPECT_THAT(Refusal(R"({"data": [{"IN": [1, 2]}, {}]})", Pairs()),
              HasSubstr("data[1]: input \"IN\" is missing"));
  EXPECT_THAT(Refusal(R"({"data": [{"IN": [1, 2], "X": [1]}]})", Pairs()),
              HasSubstr("data[0]: the model has no \"X\" there, it has: IN"));
  EXPECT_THAT(Refusal(R"({"data": [{"IN": 5}]})", Pairs()), HasSubstr("holds no values"));
  EXPECT_THAT(Refusal(R"({"data": [{"IN": {"shape": [2]}}]})", Pairs()), HasSubstr("holds no values"));
  EXPECT_THAT(Refusal(R"({"data": [{"IN": {"content": "ab"}}]})", Pairs()), HasSubstr("holds no values"));
}

TEST(InputData, WhatHasNoStepsIsRefused) {
  for (const char* json : {"[]", "5", "null", "{}", R"({"data": 5})", R"({"data": {"IN": [1, 2]}})"})
    EXPECT_THAT(Refusal(json, Pairs()), HasSubstr("no list \"data\"")) << json;
  for (const char* json : {R"({"data": []})", R"({"data": [[]]})"})
    EXPECT_THAT(Refusal(json, Pairs()), HasSubstr("has no step")) << json;
  for (const char* json : {R"({"data": [5]})", R"({"data": [[[{}]]]})"})
    EXPECT_THAT(Refusal(json, Pairs()), HasSubstr("is no step")) << json;
  EXPECT_EQ(ReadInputData("{", Pairs(), "", {}).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(ReadInputData("", Pairs(), "", {}).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(ReadInputData("{\"data\": [{\"IN\": [1e999, 1]}]}", Pairs(), "", {}).error().code,
            ErrorCode::kCorrupt);
}

TEST(InputData, ChecksStandBesideTheirSteps) {
  const std::string data = R"({"data": [{"IN": [1, 1]}, {"IN": [2, 2]}], "validation_data": )";
  EXPECT_THAT(Refusal(data + R"([{"OUT": [1]}]})", Pairs()), HasSubstr("has 1 steps and \"data\" 2"));
  EXPECT_THAT(Refusal(data + R"([[{"OUT": [1]}, {"OUT": [1]}]]})", Pairs()), HasSubstr("in other lists"));
  EXPECT_THAT(Refusal(data + "5}", Pairs()), HasSubstr("no list \"validation_data\""));
  EXPECT_THAT(Refusal(data + R"([{"OUT": [1]}, {}]})", Pairs()),
              HasSubstr("validation_data[1]: output \"OUT\" is missing"));
  EXPECT_THAT(Refusal(data + R"([{"OUT": [1]}, {"IN": [1, 1]}]})", Pairs()), HasSubstr("it has: OUT, MORE"));
  EXPECT_THAT(Refusal(data + R"([{"OUT": [1, 2]}, {"OUT": [1]}]})", Pairs()),
              HasSubstr("validation_data[0]: output \"OUT\": 2 values"));
  EXPECT_THAT(Refusal(data + R"([{"OUT": [1]}, {"OUT": [1]}]})", Pairs(), {.outputs = {"MORE"}}),
              HasSubstr("not among the outputs asked for"));
}

TEST(InputData, OutputsNobodySaysAreNotChecked) {
  const InputData data = Read(R"({"data": [{"IN": [1, 1]}], "validation_data": [{"MORE": [7]}]})", Pairs(),
                              {.outputs = {"MORE"}});
  ASSERT_EQ(data.expected.size(), 1u);
  ASSERT_EQ(data.expected[0].size(), 1u);
  EXPECT_EQ(data.expected[0][0].name, "MORE");
  EXPECT_THAT(data.requests[0].outputs, ElementsAre("MORE"));
}

TEST(InputData, TheOptionsAreHeldAgainstTheModel) {
  const auto json = R"({"data": [{"IN": [1, 1]}]})";
  EXPECT_THAT(Refusal(json, Pairs(), {.batch = 9}), HasSubstr("up to 8"));
  EXPECT_THAT(Refusal(json, Pairs(), {.shapes = {{"X", {1}}}}), HasSubstr("no such input"));
  EXPECT_THAT(Refusal(json, Pairs(), {.shapes = {{"IN", {3}}}}),
              HasSubstr("--shape IN: [3] does not fit [2]"));
}

TEST(InputData, RequestsOfMoreThanAGibibyteAreRefused) {
  const ModelInfo model = One(DType::kUint8, {-1, -1}, 1 << 30);
  EXPECT_THAT(Refusal(R"({"data": [{"IN": [1, 2]}]})", model, {.batch = 1 << 30}), HasSubstr("1 GiB"));
}

class InputFolder : public ::testing::Test {
 protected:
  InputFolder() {
    folder_ = ::testing::TempDir() + "input_folder_" + std::to_string(::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~InputFolder() override { fs::remove_all(folder_); }

  void Write(const std::string& name, std::string_view contents) {
    ASSERT_TRUE(WriteFileWhole(folder_ + "/" + name, contents));
  }
  Result<InputData> ReadAll(const ModelInfo& model, const RequestOptions& options = {}) {
    return ReadInputFolder(folder_, model, "", options);
  }
  std::string Refused(const ModelInfo& model) {
    const auto data = ReadAll(model);
    if (data) return "accepted";
    EXPECT_EQ(data.error().code, ErrorCode::kInvalidArgument);
    return data.error().message;
  }

  std::string folder_;
};

TEST_F(InputFolder, HasTheBytesOfOneRow) {
  Write("IN", std::string_view("\1\0\0\0\2\0\0\0", 8));
  Write(".hidden", "x");
  const auto data = ReadAll(Pairs(), {.batch = 2});
  ASSERT_TRUE(data) << data.error().message;
  ASSERT_EQ(data->requests.size(), 1u);
  EXPECT_EQ(Input(*data).shape, (Shape{2, 2}));
  EXPECT_THAT(Values<int32_t>(Input(*data)), ElementsAre(1, 2, 1, 2));
  EXPECT_TRUE(data->expected.empty());
}

TEST_F(InputFolder, HasATextALine) {
  Write("IN", "one\n\nthree\n");
  const auto data = ReadAll(One(DType::kBytes, {3}));
  ASSERT_TRUE(data) << data.error().message;
  using namespace std::string_view_literals;
  EXPECT_EQ(Input(*data).data.text(), "\3\0\0\0one\0\0\0\0\5\0\0\0three"sv);
  EXPECT_THAT(Refused(One(DType::kBytes, {2})), HasSubstr("3 values where shape [2] takes 2"));
}

TEST_F(InputFolder, HasTheOutputsToCheck) {
  Write("IN", std::string(8, '\0'));
  Write("OUT", std::string_view("\7\0\0\0", 4));
  const auto data = ReadAll(Pairs());
  ASSERT_TRUE(data) << data.error().message;
  ASSERT_EQ(data->expected.size(), 1u);
  ASSERT_EQ(data->expected[0].size(), 1u);
  EXPECT_THAT(Values<int32_t>(data->expected[0][0]), ElementsAre(7));
}

TEST_F(InputFolder, FilesThatAreMissingTooManyOrWrongAreNamed) {
  EXPECT_THAT(Refused(Pairs()), HasSubstr("no file for input \"IN\""));
  Write("IN", "1234567");
  EXPECT_THAT(Refused(Pairs()), HasSubstr(folder_ + "/IN: 7 bytes are no whole elements of INT32"));
  Write("IN", "123456789012");
  EXPECT_THAT(Refused(Pairs()), HasSubstr("3 values where shape [2] takes 2"));
  Write("IN", "12345678");
  Write("OTHER", "");
  EXPECT_THAT(Refused(Pairs()), HasSubstr("OTHER: the model has no such input or output"));
}

TEST_F(InputFolder, AModelsNamesDoNotLeadOutOfIt) {
  Write("secret", "12345678");
  fs::create_directories(folder_ + "/inner");
  ModelInfo model = Pairs();
  model.inputs[0].name = "../secret";
  const auto data = ReadInputFolder(folder_ + "/inner", model, "", {});
  ASSERT_FALSE(data);
  EXPECT_THAT(data.error().message, HasSubstr("no file for input"));
}

TEST_F(InputFolder, ThatIsNotThereIsNotFound) {
  EXPECT_EQ(ReadInputFolder(folder_ + "/none", Pairs(), "", {}).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace weir::load
