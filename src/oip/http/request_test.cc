// Requests over HTTP that are JSON alone; those with binary tensors are in http_binary_test.cc.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "oip/http/codec.h"
#include "oip/testing/random_calls.h"

namespace weir::oip {
namespace {

using testing::BytesTensor;
using testing::Describe;
using testing::Numbers;

Result<InferRequest> ParseJsonRequest(std::string_view text) {
  return ParseHttpRequest(Bytes::Copy(text), std::nullopt);
}
std::string Because(const Result<InferRequest>& result) {
  return result ? "accepted" : result.error().message;
}

// A request with one input.
std::string WithInput(std::string_view datatype, std::string_view shape, std::string_view data) {
  return fmt::format(R"({{"inputs":[{{"name":"x","datatype":"{}","shape":{},"data":{}}}]}})", datatype, shape,
                     data);
}
// A request of one input that has these members, and members of its own.
std::string WithMembers(std::string_view input, std::string_view request = "") {
  return fmt::format(R"({{"inputs":[{{{}}}]{}}})", input, request);
}
constexpr std::string_view kInput = R"("name":"x","datatype":"UINT8","shape":[2],"data":[1,2])";

template <typename T>
void ExpectNumbers(std::string_view datatype, std::string_view data, const std::vector<T>& wanted) {
  const auto request = ParseJsonRequest(WithInput(datatype, fmt::format("[{}]", wanted.size()), data));
  ASSERT_TRUE(request) << Because(request);
  EXPECT_EQ(Numbers<T>(request->request.inputs[0]), wanted) << datatype;
}

TEST(HttpRequest, JsonNumbersOfEveryTypeReachTheirLimits) {
  ExpectNumbers<uint8_t>("BOOL", "[true,false , true]", {1, 0, 1});
  ExpectNumbers<uint8_t>("UINT8", "[0,255]", {0, 255});
  ExpectNumbers<uint16_t>("UINT16", "[0,65535]", {0, 65535});
  ExpectNumbers<uint32_t>("UINT32", "[4294967295]", {4294967295});
  ExpectNumbers<uint64_t>("UINT64", "[18446744073709551615]", {18446744073709551615u});
  ExpectNumbers<int8_t>("INT8", "[-128,127]", {-128, 127});
  ExpectNumbers<int16_t>("INT16", "[-32768,32767]", {-32768, 32767});
  ExpectNumbers<int32_t>("INT32", "[-2147483648,2147483647]",
                         {std::numeric_limits<int32_t>::min(), 2147483647});
  ExpectNumbers<int64_t>("INT64", "[-9223372036854775808,9223372036854775807]",
                         {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()});
  ExpectNumbers<float>("FP32", "[0.1,-1,1e-45,3.4028235e38,-0.0,1.17549435e-38]",
                       {0.1f, -1.f, 1e-45f, 3.4028235e38f, -0.f, 1.17549435e-38f});
  ExpectNumbers<double>("FP64", "[0.1,5e-324,1.7976931348623157e308]", {0.1, 5e-324, 1.7976931348623157e308});
}

TEST(HttpRequest, AFloatIsTheNearestToItsDecimalEvenWhereADoubleBetweenWouldMislead) {
  // Just above half way between 1 and the next float; as a double it is half way, which goes to even: 1.
  ExpectNumbers<float>("FP32", "[1.000000059604644775390625000000001]", {std::nextafter(1.f, 2.f)});
  ExpectNumbers<float>("FP32", "[1.000000059604644775390625]", {1.f});
  ExpectNumbers<float>("FP32", "[1.0000000596046447753906249999999]", {1.f});
  // The same below the smallest normal float.
  ExpectNumbers<float>("FP32", "[7.006492321624086e-46,7.00649232162408535461864791644958e-46, 1e-60]",
                       {1e-45f, 0.f, 0.f});
}

TEST(HttpRequest, NumbersThatAreNotFiniteComeAsTritonAndPythonWriteThem) {
  const auto request = ParseJsonRequest(WithInput("FP32", "[5]", "[NaN,Infinity,-Infinity, Inf ,-Inf]"));
  ASSERT_TRUE(request) << Because(request);
  const auto numbers = Numbers<float>(request->request.inputs[0]);
  EXPECT_TRUE(std::isnan(numbers[0]));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(numbers[1], kInfinity);
  EXPECT_EQ(numbers[2], -kInfinity);
  EXPECT_EQ(numbers[3], kInfinity);
  EXPECT_EQ(numbers[4], -kInfinity);
}

TEST(HttpRequest, StringsOfJsonAreBytes) {
  const auto request = ParseJsonRequest(WithInput("BYTES", "[3]", R"(["", "a\u0000\"", ["é\ud83d\udc1f"]])"));
  ASSERT_TRUE(request) << Because(request);
  infer::Tensor wanted = BytesTensor("x", {"", std::string("a\0\"", 3), "\xC3\xA9\xF0\x9F\x90\x9F"});
  EXPECT_EQ(Describe(request->request.inputs[0]), Describe(wanted));
}

TEST(HttpRequest, NestedDataIsTheSameAsFlatAndItsOrderIsRowMajor) {
  const std::vector<uint8_t> wanted{1, 2, 3, 4, 5, 6};
  for (const char* data :
       {"[1,2,3,4,5,6]", "[[1,2,3],[4,5,6]]", "[[[1],[2]],[[3],[4]],[[5],[6]]]", "[[1,2],3,[[4,5,6]]]"}) {
    const auto request = ParseJsonRequest(WithInput("UINT8", "[2,3]", data));
    ASSERT_TRUE(request) << data << Because(request);
    EXPECT_EQ(Numbers<uint8_t>(request->request.inputs[0]), wanted) << data;
  }
}

TEST(HttpRequest, ZeroSizedDimensionsHaveNoData) {
  for (const char* shape : {"[0]", "[3,0,5]", "[0,9223372036854775807,9223372036854775807]"}) {
    for (const char* datatype : {"FP32", "BYTES", "BOOL"}) {
      const auto request = ParseJsonRequest(WithInput(datatype, shape, "[]"));
      ASSERT_TRUE(request) << Because(request);
      EXPECT_TRUE(request->request.inputs[0].data.empty());
    }
  }
  EXPECT_TRUE(ParseJsonRequest(WithInput("FP32", "[2,0]", "[[],[]]")));
}

TEST(HttpRequest, SixteenBitFloatsAreTheNearestToTheDecimal) {
  const auto bits = [](const char* datatype, const char* data) {
    const auto request = ParseJsonRequest(WithInput(datatype, "[4]", data));
    EXPECT_TRUE(request) << Because(request);
    std::vector<uint16_t> values(4);
    if (request) std::memcpy(values.data(), request->request.inputs[0].data.data(), 8);
    return values;
  };
  EXPECT_EQ(bits("FP16", "[1, -2.0, 0.1, NaN]"), (std::vector<uint16_t>{0x3c00, 0xc000, 0x2e66, 0x7e00}));
  EXPECT_EQ(bits("BF16", "[1, -2.0, 0.1, -Infinity]"),
            (std::vector<uint16_t>{0x3f80, 0xc000, 0x3dcd, 0xff80}));
}

TEST(HttpRequest, AScalarHasTheEmptyShape) {
  EXPECT_TRUE(ParseJsonRequest(WithInput("FP32", "[]", "[1]")));
  EXPECT_FALSE(ParseJsonRequest(WithInput("FP32", "[]", "[]")));
}

struct Fault {
  std::string text;
  std::string because;  // a part of the message
};
class FaultyJson : public ::testing::TestWithParam<Fault> {};

TEST_P(FaultyJson, IsRefusedByName) {
  const auto request = ParseJsonRequest(GetParam().text);
  ASSERT_FALSE(request) << GetParam().text;
  EXPECT_EQ(request.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(request.error().message.find(GetParam().because), std::string::npos) << GetParam().text << "\n"
                                                                                 << request.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    Elements, FaultyJson,
    ::testing::Values(
        Fault{WithInput("UINT8", "[1]", "[300]"), "input 'x': data holds '300', which does not fit UINT8"},
        Fault{WithInput("UINT8", "[1]", "[-1]"), "'-1', which does not fit UINT8"},
        Fault{WithInput("INT8", "[2]", "[1,128]"), "'128', which does not fit INT8"},
        Fault{WithInput("UINT64", "[1]", "[18446744073709551616]"), "does not fit UINT64"},
        Fault{WithInput("INT64", "[1]", "[9223372036854775808]"), "does not fit INT64"},
        Fault{WithInput("INT32", "[1]", "[1.0]"), "'1.0', which is no value of INT32"},
        Fault{WithInput("INT32", "[1]", "[1e2]"), "'1e2', which is no value of INT32"},
        Fault{WithInput("INT32", "[1]", "[NaN]"), "'NaN', which is no value of INT32"},
        Fault{WithInput("INT32", "[1]", "[\"1\"]"), "is no value of INT32"},
        Fault{WithInput("INT32", "[1]", "[true]"), "is no value of INT32"},
        Fault{WithInput("INT32", "[1]", "[null]"), "is no value of INT32"},
        Fault{WithInput("INT32", "[1]", "[{\"a\":1}]"), "is no value of INT32"},
        Fault{WithInput("BOOL", "[1]", "[1]"), "'1', which is no value of BOOL"},
        Fault{WithInput("FP32", "[1]", "[1e39]"), "'1e39', which does not fit FP32"},
        Fault{WithInput("FP32", "[1]", "[1e999]"), "FP32"},
        Fault{WithInput("FP64", "[1]", "[1e999]"), "FP64"}, Fault{WithInput("FP32", "[1]", "[nan]"), "FP32"},
        Fault{WithInput("FP32", "[1]", "[+1]"), "FP32"}, Fault{WithInput("FP32", "[1]", "[.5]"), "FP32"},
        Fault{WithInput("FP32", "[1]", "[1.]"), "FP32"}, Fault{WithInput("FP32", "[1]", "[01]"), "FP32"},
        Fault{WithInput("FP32", "[1]", "[NaNa]"), "FP32"}, Fault{WithInput("FP32", "[1]", "[\"1\"]"), "FP32"},
        Fault{WithInput("BYTES", "[1]", "[1]"), "'1', which is no value of BYTES"},
        Fault{WithInput("BYTES", "[1]", R"(["\ud800"])"), "input 'x': malformed JSON"},
        Fault{WithInput("FP16", "[1]", "[65520]"), "'65520', which does not fit FP16"},
        Fault{WithInput("BF16", "[1]", "[1e39]"), "'1e39', which does not fit BF16"},
        Fault{WithInput("FP16", "[1]", "[true]"), "'true', which is no value of FP16"},
        Fault{WithInput("UINT8", "[1]", "1"), "'data' is not an array"},
        Fault{WithInput("UINT8", "[1]", "{}"), "'data' is not an array"},
        Fault{WithInput("BYTES", "[1]", "\"a\""), "'data' is not an array"}));

INSTANTIATE_TEST_SUITE_P(
    Shapes, FaultyJson,
    ::testing::Values(Fault{WithInput("UINT8", "[3]", "[1,2]"), "data has 2 elements, shape [3] wants 3"},
                      Fault{WithInput("UINT8", "[3]", "[1,2,3,4]"), "data has more elements than shape [3]"},
                      Fault{WithInput("BYTES", "[2]", "[\"\"]"), "data has 1 elements, shape [2] wants 2"},
                      Fault{WithInput("UINT8", "[0]", "[1]"), "more elements than shape [0]"},
                      Fault{WithInput("UINT8", "[-1]", "[1]"), "shape [-1] has a negative dimension"},
                      Fault{WithInput("UINT8", "[9223372036854775807,2]", "[1]"), "more than 2^63 elements"},
                      Fault{WithInput("FP64", "[4611686018427387904]", "[1]"), "more than 2^63 bytes"},
                      Fault{WithInput("FP64", "[9223372036854775808]", "[1]"), "no 64-bit integer"},
                      Fault{WithInput("FP64", "[1000000000000]", "[1]"), "fewer elements than shape"},
                      Fault{WithInput("BYTES", "[1000000000000]", "[\"\"]"), "fewer elements than shape"},
                      Fault{WithInput("UINT8", "[1.0]", "[1]"), "'shape' holds '1.0'"},
                      Fault{WithInput("UINT8", "[\"1\"]", "[1]"), "'shape' holds"},
                      Fault{WithInput("UINT8", "[[1]]", "[1]"), "'shape' holds"},
                      Fault{WithInput("UINT8", "1", "[1]"), "'shape' is not an array"},
                      Fault{WithInput("UINT8", fmt::format("[{}]", fmt::join(std::vector<int>(65, 1), ",")),
                                      "[1]"),
                            "'shape' has more than 64 dimensions"}));

INSTANTIATE_TEST_SUITE_P(
    Members, FaultyJson,
    ::testing::Values(
        Fault{"", "empty"}, Fault{"   ", "malformed JSON"}, Fault{"[]", "not an object"},
        Fault{"1", "not an object"}, Fault{"{", "malformed JSON"}, Fault{"{}", "'inputs' is missing"},
        Fault{WithMembers(kInput) + "}", "follows"}, Fault{WithMembers(kInput) + " {}", "follows"},
        Fault{R"({"inputs":null})", "'inputs' is missing"},
        Fault{R"({"inputs":{}})", "'inputs' is not an array"},
        Fault{R"({"inputs":[1]})", "inputs[0]: it is not an object"},
        Fault{R"({"inputs":[{}]})", "inputs[0]: 'shape' is missing"},
        Fault{WithMembers(R"("datatype":"FP32","shape":[0],"data":[])"), "inputs[0]: 'name' is missing"},
        Fault{WithMembers(R"("name":"","datatype":"FP32","shape":[0],"data":[])"),
              "'name' is missing or empty"},
        Fault{WithMembers(R"("name":1,"datatype":"FP32","shape":[0],"data":[])"), "'name' is not a string"},
        Fault{WithMembers(R"("name":"x","shape":[0],"data":[])"), "input 'x': 'datatype' is missing"},
        Fault{WithMembers(R"("name":"x","datatype":"FP32","data":[])"), "input 'x': 'shape' is missing"},
        Fault{WithMembers(R"("name":"x","datatype":"fp32","shape":[0],"data":[])"),
              "unknown datatype 'fp32'"},
        Fault{WithMembers(R"("name":"x","datatype":"FP32\n","shape":[0],"data":[])"),
              R"(unknown datatype 'FP32\x0A')"},
        Fault{WithMembers(R"("name":"x","datatype":32,"shape":[0],"data":[])"), "'datatype' is not a string"},
        Fault{WithMembers(R"("name":"x","name":"y","datatype":"FP32","shape":[0],"data":[])"),
              "key 'name' is there twice"},
        Fault{WithMembers(R"("name":"x","datatype":"FP32","shape":[0],"data":[],"data":[])"),
              "key 'data' is there twice"},
        Fault{WithMembers(R"("name":"x","datatype":"FP32","shape":[0])"), "has no data"},
        Fault{WithMembers(R"("name":"x","datatype":"FP32","shape":[0],"data":null)"), "has no data"},
        Fault{WithMembers(R"("name":"x","datatype":"FP32","shape":[0],"parameters":[])"),
              "'parameters' is not an object"},
        Fault{fmt::format(R"({{"inputs":[{{{0}}},{{{0}}}]}})", kInput), "input 'x' is there twice"},
        Fault{fmt::format(R"({{"inputs":[],"inputs":[{{{}}}]}})", kInput), "key 'inputs' is there twice"},
        Fault{WithMembers(kInput, R"(,"outputs":[{"name":"y"},{"name":"y"}])"), "output 'y' is there twice"},
        Fault{WithMembers(kInput, R"(,"outputs":[{}])"), "outputs[0]: 'name' is missing"},
        Fault{WithMembers(kInput, R"(,"outputs":["y"])"), "outputs[0]: it is not an object"},
        Fault{WithMembers(kInput, R"(,"outputs":{})"), "'outputs' is not an array"},
        Fault{WithMembers(kInput, R"(,"id":7)"), "'id' is not a string"},
        Fault{WithMembers(kInput, R"(,"parameters":7)"), "'parameters' is not an object"},
        Fault{WithMembers(kInput, R"(,"other":[1,])"), "malformed JSON"},
        Fault{WithMembers(kInput, R"(,"other":tru)"), "malformed JSON"},
        Fault{WithMembers(kInput, ",\"other\":\"\xff\""), "malformed JSON"},
        Fault{WithMembers(kInput, R"(,"other":{"a" 1})"), "malformed JSON"}));

INSTANTIATE_TEST_SUITE_P(
    Parameters, FaultyJson,
    ::testing::Values(
        Fault{WithMembers(kInput, R"(,"parameters":{"priority":-1})"),
              "'priority' is not an unsigned integer"},
        Fault{WithMembers(kInput, R"(,"parameters":{"priority":"1"})"),
              "'priority' is not an unsigned integer"},
        Fault{WithMembers(kInput, R"(,"parameters":{"priority":99999999999})"), "'priority' is too large"},
        Fault{WithMembers(kInput, R"(,"parameters":{"timeout":10000000000000000})"), "'timeout'"},
        Fault{WithMembers(kInput, R"(,"parameters":{"timeout":-5})"), "'timeout' is not an unsigned integer"},
        Fault{WithMembers(kInput, R"(,"parameters":{"timeout":1.5})"),
              "'timeout' is not an unsigned integer"},
        Fault{WithMembers(kInput, R"(,"parameters":{"timeout":18446744073709551615})"), "'timeout'"},
        Fault{WithMembers(kInput, R"(,"parameters":{"binary_data_output":1})"),
              "'binary_data_output' is not true or false"},
        Fault{WithMembers(kInput, R"(,"parameters":{"headers":"a"})"), "'headers' is reserved"},
        Fault{WithMembers(kInput, R"(,"parameters":{"triton_x":1})"), "'triton_x' is reserved"},
        Fault{WithMembers(kInput, R"(,"parameters":{"x":[]})"),
              "parameter 'x' is not a string, number or boolean"},
        Fault{WithMembers(kInput, R"(,"parameters":{"x":{}})"),
              "parameter 'x' is not a string, number or boolean"},
        Fault{WithMembers(kInput, R"(,"outputs":[{"name":"y","parameters":{"classification":0}}])"),
              "output 'y': parameter 'classification'"},
        Fault{WithMembers(kInput, R"(,"outputs":[{"name":"y","parameters":{"classification":-1}}])"),
              "'classification'"},
        Fault{WithMembers(kInput, R"(,"outputs":[{"name":"y","parameters":{"binary_data":"true"}}])"),
              "'binary_data' is not true or false"},
        Fault{WithMembers(kInput, R"(,"outputs":[{"name":"y","parameters":{"shared_memory_region":"r"}}])"),
              "'shared_memory_byte_size' is missing"},
        Fault{WithMembers(kInput, R"(,"outputs":[{"name":"y","parameters":{"shared_memory_offset":1}}])"),
              "without shared_memory_region"},
        Fault{
            WithMembers(
                kInput,
                R"(,"outputs":[{"name":"y","parameters":{"shared_memory_region":"r","shared_memory_byte_size":1,"classification":1}}])"),
            "classification cannot be written to shared memory"},
        Fault{WithMembers(std::string(kInput) +
                          R"(,"parameters":{"shared_memory_region":"r","shared_memory_byte_size":2})"),
              "'data' is given, and"},
        Fault{WithMembers(std::string(kInput) + R"(,"parameters":{"binary_data_size":2})"),
              "'data' is given, and"},
        Fault{WithMembers(R"("name":"x","datatype":"UINT8","shape":[2],"parameters":{"binary_data_size":2})"),
              "binary_data_size is 2, but 0 bytes of the body are left"},
        Fault{
            WithMembers(R"("name":"x","datatype":"UINT8","shape":[2],"parameters":{"binary_data_size":-2})"),
            "'binary_data_size' is not an unsigned integer"},
        Fault{
            WithMembers(
                R"("name":"x","datatype":"UINT8","shape":[2],"parameters":{"shared_memory_region":"r","shared_memory_byte_size":3})"),
            "2 elements of UINT8 are 2 bytes, but 3 are given"},
        Fault{
            WithMembers(
                R"("name":"x","datatype":"UINT8","shape":[2],"parameters":{"shared_memory_region":"r","shared_memory_byte_size":2,"shared_memory_offset":18446744073709551615})"),
            "ends beyond 2^64"}));

TEST(HttpRequest, SequencesAreRefusedByNameAndTheirAbsenceIsNot) {
  for (const char* parameter : {R"("sequence_id":5)", R"("sequence_id":"a")", R"("sequence_start":true)"}) {
    const auto request =
        ParseJsonRequest(WithMembers(kInput, fmt::format(R"(,"parameters":{{{}}})", parameter)));
    ASSERT_FALSE(request);
    EXPECT_EQ(request.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(request.error().message.find("sequence_"), std::string::npos);
  }
  EXPECT_TRUE(ParseJsonRequest(
      WithMembers(kInput, R"(,"parameters":{"sequence_id":0,"sequence_start":false,"sequence_end":false})")));
  EXPECT_TRUE(ParseJsonRequest(WithMembers(kInput, R"(,"parameters":{"sequence_id":""})")));
}

TEST(HttpRequest, DeepNestingIsAnErrorAndNotACrash) {
  for (const char open : {'[', '{'}) {
    std::string deep;
    for (int i = 0; i < 1'000'000; ++i) deep += open == '[' ? "[" : "{\"a\":";
    for (const std::string& text :
         {deep, R"({"other":)" + deep, R"({"inputs":)" + deep, R"({"parameters":)" + deep,
          WithInput("UINT8", "[1]", deep), WithInput("UINT8", deep, "[1]"),
          deep + std::string(1'000'000, open == '[' ? ']' : '}')}) {
      EXPECT_FALSE(ParseJsonRequest(text));
    }
  }
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(ParseJsonRequest(WithInput("UINT8", "[0]", nested(90))));
  EXPECT_NE(Because(ParseJsonRequest(WithInput("UINT8", "[0]", nested(200)))).find("nested deeper"),
            std::string::npos);
  EXPECT_NE(Because(ParseJsonRequest(WithMembers(kInput, ",\"other\":" + nested(200)))).find("nested deeper"),
            std::string::npos);
}

TEST(HttpRequest, WhatIsReadStandsInItsPlaces) {
  const auto request = ParseJsonRequest(
      R"({"id":"7\u00e9","other":{"a":[null,true,1e3,NaN]},"parameters":{"priority":2,"timeout":1500,"a":1,"b":-2.5,"c":"d",
          "e":true,"f":18446744073709551615,"triton_enable_empty_final_response":true,"g":null,"binary_data_output":true,"weir_durations":true},
         "inputs":[{"parameters":{"content_type":"np","other":{"a":1}},"name":"x","data":[1,2],"shape":[2],"datatype":"UINT8","more":1},
                   {"name":"y","shape":[3],"datatype":"FP32","parameters":{"shared_memory_region":"r","shared_memory_offset":8,"shared_memory_byte_size":12}}],
         "outputs":[{"name":"a"},{"name":"b","parameters":{"binary_data":false,"classification":3}},
                    {"name":"c","parameters":{"shared_memory_region":"s","shared_memory_byte_size":64}}]})");
  ASSERT_TRUE(request) << Because(request);
  EXPECT_EQ(request->protocol, Protocol::kHttp);
  EXPECT_EQ(request->request.id, "7\xC3\xA9");
  EXPECT_EQ(request->request.priority, 2);
  EXPECT_EQ(request->timeout, std::chrono::microseconds(1500));
  EXPECT_TRUE(request->binary_by_default);
  EXPECT_TRUE(request->request.durations);
  const std::map<std::string, infer::Parameter> kept{{"a", int64_t{1}},
                                                     {"b", -2.5},
                                                     {"c", std::string("d")},
                                                     {"e", true},
                                                     {"f", uint64_t{18446744073709551615u}}};
  EXPECT_EQ(request->request.parameters, kept);
  ASSERT_EQ(request->request.inputs.size(), 2u);
  EXPECT_EQ(Numbers<uint8_t>(request->request.inputs[0]), (std::vector<uint8_t>{1, 2}));
  EXPECT_FALSE(request->input_regions[0]);
  EXPECT_EQ(request->request.inputs[1].shape, infer::Shape{3});
  EXPECT_TRUE(request->request.inputs[1].data.empty());
  ASSERT_TRUE(request->input_regions[1]);
  EXPECT_EQ(request->input_regions[1]->region, "r");
  EXPECT_EQ(request->input_regions[1]->offset, 8u);
  EXPECT_EQ(request->input_regions[1]->byte_size, 12u);
  EXPECT_EQ(request->request.outputs, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(request->outputs[0].binary);
  EXPECT_FALSE(request->outputs[1].binary);
  EXPECT_EQ(request->outputs[1].classification, 3);
  ASSERT_TRUE(request->outputs[2].region);
  EXPECT_EQ(request->outputs[2].region->byte_size, 64u);
}

TEST(HttpRequest, NullIsTheSameAsAbsent) {
  const auto request = ParseJsonRequest(
      R"({"id":null,"parameters":null,"outputs":null,"inputs":[{"name":"x","shape":[1],"datatype":"UINT8","parameters":null,"data":[1]}]})");
  ASSERT_TRUE(request) << Because(request);
  EXPECT_TRUE(request->outputs.empty());
}

TEST(HttpRequest, NamesOfClientsAreEscapedInMessages) {
  const std::string message = Because(ParseJsonRequest(WithMembers(
      "\"name\":\"a\\n'\\u0000" + std::string(1000, 'z') + "\",\"datatype\":\"FP32\",\"shape\":[0]")));
  EXPECT_TRUE(message.starts_with(R"(input 'a\x0A\x27\x00zz)")) << message;
  EXPECT_LT(message.size(), 250u);
}

}  // namespace
}  // namespace weir::oip
