// Answers over HTTP, and both sides of the codec against one another.
#include "oip/http/codec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/json.h"
#include "base/seed.h"
#include "oip/testing/random_calls.h"

namespace weir::oip {
namespace {

using infer::DType;
using testing::BytesTensor;
using testing::Describe;
using testing::Numbers;
using testing::NumberTensor;

std::string Text(const HttpBody& body) { return testing::Join(body.parts); }

TEST(HttpResponse, JsonIsWhatTritonsClientsRead) {
  const infer::Response response{
      .model = "m\"",
      .version = "1",
      .id = "7",
      .outputs = {NumberTensor<float>("f", DType::kFp32, {1, 3}, {0.1f, -2.f, 1e-20f}),
                  NumberTensor<uint8_t>("b", DType::kBool, {2}, {1, 0}),
                  NumberTensor<int64_t>("i", DType::kInt64, {1}, {std::numeric_limits<int64_t>::min()}),
                  BytesTensor("s", {"", "a\"\n\xC3\xA9"}),
                  NumberTensor<uint8_t>("e", DType::kUint8, {0, 4}, {})}};
  const auto body = WriteHttpResponse(response, {});
  ASSERT_TRUE(body);
  EXPECT_FALSE(body->header_length);
  EXPECT_EQ(Text(*body), R"({"model_name":"m\"","model_version":"1","id":"7","outputs":[)"
                         R"({"name":"f","datatype":"FP32","shape":[1,3],"data":[0.1,-2,1e-20]},)"
                         R"({"name":"b","datatype":"BOOL","shape":[2],"data":[true,false]},)"
                         R"({"name":"i","datatype":"INT64","shape":[1],"data":[-9223372036854775808]},)"
                         R"({"name":"s","datatype":"BYTES","shape":[2],"data":["","a\"\u000a)"
                         "\xC3\xA9"
                         R"("]},{"name":"e","datatype":"UINT8","shape":[0,4],"data":[]}]})");
  EXPECT_TRUE(ParseJson(Text(*body)));
}

TEST(HttpResponse, NumbersThatAreNotFiniteAreWrittenAsTritonDoes) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const infer::Response response{
      .outputs = {NumberTensor<float>("f", DType::kFp32, {3}, {std::nanf(""), kInfinity, -kInfinity})}};
  EXPECT_NE(Text(WriteHttpResponse(response, {}).value()).find("[NaN,Infinity,-Infinity]"),
            std::string::npos);
}

TEST(HttpResponse, BinaryTensorsFollowTheJsonAsTheyLie) {
  const infer::Response response{.model = "m",
                                 .version = "1",
                                 .outputs = {NumberTensor<float>("a", DType::kFp32, {2}, {1, 2}),
                                             NumberTensor<uint16_t>("b", DType::kFp16, {1}, {7}),
                                             NumberTensor<float>("c", DType::kFp32, {1}, {3})}};
  const ResponseForm form{.outputs = {{.name = "c", .binary = false}, {.name = "b", .binary = true}},
                          .binary_by_default = true};
  const auto body = WriteHttpResponse(response, form);
  ASSERT_TRUE(body);
  ASSERT_EQ(body->parts.size(), 3u);
  EXPECT_EQ(body->header_length, body->parts[0].size());
  EXPECT_EQ(body->parts[0].size() % 64, 0u);
  EXPECT_EQ(body->parts[1].data(), response.outputs[0].data.data());
  EXPECT_EQ(body->parts[2].data(), response.outputs[1].data.data());
  EXPECT_EQ(body->size(), body->parts[0].size() + 10);
  const auto json = ParseJson(body->parts[0].text());
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["outputs"][0]["parameters"]["binary_data_size"], 8);
  EXPECT_EQ((*json)["outputs"][1]["parameters"]["binary_data_size"], 2);
  EXPECT_EQ((*json)["outputs"][2]["data"], Json({3}));
}

TEST(HttpResponse, WhatHasNoJsonFormIsRefusedAndPointsToBinary) {
  const auto body = WriteHttpResponse({.outputs = {BytesTensor("x", {"\xff"})}}, {});
  ASSERT_FALSE(body);
  EXPECT_EQ(body.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(body.error().message.find("output 'x': "), std::string::npos);
  EXPECT_NE(body.error().message.find("binary"), std::string::npos);
}

TEST(HttpResponse, SixteenBitFloatsAreWrittenAsNumbers) {
  const infer::Response response{
      .outputs = {NumberTensor<uint16_t>("h", DType::kFp16, {3}, {0x3c00, 0xc100, 0x7c00}),
                  NumberTensor<uint16_t>("b", DType::kBf16, {2}, {0x3f80, 0x0000})}};
  const std::string text = Text(WriteHttpResponse(response, {}).value());
  EXPECT_NE(text.find("[1,-2.5,Infinity]"), std::string::npos) << text;
  EXPECT_NE(text.find("[1,0]"), std::string::npos) << text;
}

TEST(HttpResponse, OutputsInARegionCarryNoData) {
  const infer::Response response{.outputs = {NumberTensor<float>("a", DType::kFp32, {2}, {1, 2})}};
  const RegionPart region{.region = "r", .offset = 8, .byte_size = 16};
  const auto body =
      WriteHttpResponse(response, {.outputs = {{.name = "a", .binary = true, .region = region}}});
  ASSERT_TRUE(body);
  EXPECT_FALSE(body->header_length);
  EXPECT_EQ(Text(*body).find("\"data\""), std::string::npos);
  EXPECT_EQ(Text(*body).find("parameters"),
            std::string::npos);  // NVIDIA's C++ client takes any for binary data
}

TEST(HttpResponse, DurationsAreParametersInNanoseconds) {
  const infer::Response response{.model = "m",
                                 .version = "1",
                                 .durations = infer::ServerDurations{.receive = 1us,
                                                                     .queue = 2ms,
                                                                     .compute_input = 3ns,
                                                                     .compute_infer = 4ns,
                                                                     .compute_output = 5ns,
                                                                     .rest = -6ns}};
  EXPECT_EQ(Text(WriteHttpResponse(response, {}).value()),
            R"({"model_name":"m","model_version":"1","parameters":{"weir_receive_ns":1000,)"
            R"("weir_queue_ns":2000000,"weir_compute_input_ns":3,"weir_compute_infer_ns":4,)"
            R"("weir_compute_output_ns":5,"weir_rest_ns":-6},"outputs":[]})");
}

TEST(HttpResponse, OutputsThatArePassedOverMustBeAsLongAsTheirJsonSays) {
  const auto fault = [](std::string_view members, std::string_view tensors) {
    const std::string json = fmt::format(R"({{"outputs":[{{"name":"y",{}}}]}})", members);
    const auto read = ParseHttpResponse(Bytes::Copy(fmt::format("{}{}", json, tensors)), json.size(),
                                        infer::RequestForm::Outputs::kPassOver);
    return read ? "" : read.error().message;
  };
  const std::string binary = R"("datatype":"FP32","shape":[2],"parameters":{"binary_data_size":8})";
  EXPECT_EQ(fault(binary, "12345678"), "");
  EXPECT_EQ(fault(binary, "123"), "output 'y': binary_data_size is 8, but 3 bytes of the body are left");
  EXPECT_EQ(fault(binary, "1234567890"), "2 bytes are left over after the last binary tensor");
  EXPECT_NE(fault(R"("datatype":"FP32","shape":[3],"parameters":{"binary_data_size":8})", "12345678"), "");
  EXPECT_EQ(fault(R"("datatype":"FP16","shape":[2,2],"data":[[1,2],[3,4]])", ""), "");
  EXPECT_EQ(fault(R"("data":[[1,2],3],"datatype":"BOOL","shape":[4])", ""),
            "output 'y': data has 3 elements, its shape is [4]");
  EXPECT_EQ(fault(R"("datatype":"FP32","shape":[2])", ""), "") << "it lies in a region";
}

TEST(HttpResponse, AnErrorIsOneInSpiteOfItsStatus) {
  for (const auto outputs : {infer::RequestForm::Outputs::kRead, infer::RequestForm::Outputs::kPassOver}) {
    const auto fault = [&](std::string_view body) {
      const auto read = ParseHttpResponse(Bytes::Copy(body), std::nullopt, outputs);
      return read ? "" : read.error().message;
    };
    EXPECT_EQ(fault(R"({"error":"no room"})"), "an error with status 200: no room");
    EXPECT_EQ(fault(R"({"outputs":[],"error":"no room"})"), "an error with status 200: no room");
    EXPECT_EQ(fault("{}"), "'outputs' is missing");
    EXPECT_EQ(fault(R"({"outputs":[],"error":null})"), "");
  }
}

TEST(HttpResponse, ParametersOfOtherServersArePassedOverAndHalfOfOursIsAFault) {
  const auto read = [](std::string_view parameters) {
    return ParseHttpResponse(Bytes::Copy(fmt::format(R"({{"parameters":{},"outputs":[]}})", parameters)),
                             std::nullopt);
  };
  for (const char* others : {"3", "[]", "null", "{}", R"({"a":{"b":[1]},"c":null,"weir_other":"x"})"}) {
    const auto response = read(others);
    ASSERT_TRUE(response) << others << response.error().message;
    EXPECT_FALSE(response->durations);
  }
  EXPECT_EQ(read(R"({"weir_queue_ns":5})").error().message, "parameter 'weir_receive_ns' is missing");
  EXPECT_EQ(read(R"({"weir_queue_ns":1.5})").error().message,
            "parameter 'weir_queue_ns' is not a whole number");
  EXPECT_EQ(read(R"({"weir_queue_ns":9223372036854775807})").error().message,
            "parameter 'weir_queue_ns' is 9223372036854775807 ns");
  EXPECT_FALSE(read(R"({"weir_queue_ns":[5]})"));
}

Bytes Whole(const HttpBody& body) { return Bytes::Copy(Text(body)); }

TEST(HttpCodec, WhatOurClientWritesOurServerReads) {
  Random random = Seed(1).MakeRandom();
  for (int i = 0; i < 2000; ++i) {
    const infer::Request request = testing::RandomRequest(random);
    const HttpBody body = WriteHttpRequest(request);
    const auto read = ParseHttpRequest(Whole(body), body.header_length);
    ASSERT_TRUE(read) << read.error().message << "\n" << body.parts[0].text();
    EXPECT_EQ(Describe(read->request.inputs), Describe(request.inputs));
    EXPECT_EQ(read->request.id, request.id);
    EXPECT_EQ(read->request.outputs, request.outputs);
    EXPECT_EQ(read->request.priority, request.priority);
    EXPECT_EQ(read->request.durations, request.durations);
    EXPECT_EQ(read->request.parameters, request.parameters);
    EXPECT_EQ(read->binary_by_default, request.outputs.empty());
    for (const RequestedOutput& wish : read->outputs) EXPECT_TRUE(wish.binary);
  }
}

TEST(HttpCodec, WhatOurServerWritesOurClientReads) {
  Random random = Seed(2).MakeRandom();
  for (int i = 0; i < 2000; ++i) {
    const infer::Response response = testing::RandomResponse(random);
    ResponseForm form;
    for (const infer::Tensor& output : response.outputs) {
      form.outputs.push_back({.name = output.name, .binary = random.Uniform() < 0.5});
    }
    const auto body = WriteHttpResponse(response, form);
    ASSERT_TRUE(body) << body.error().message;
    const auto read = ParseHttpResponse(Whole(*body), body->header_length);
    ASSERT_TRUE(read) << read.error().message << "\n" << body->parts[0].text();
    EXPECT_EQ(read->model, response.model);
    EXPECT_EQ(read->version, response.version);
    EXPECT_EQ(read->id, response.id);
    EXPECT_EQ(read->durations, response.durations);
    const auto head =
        ParseHttpResponse(Whole(*body), body->header_length, infer::RequestForm::Outputs::kPassOver);
    ASSERT_TRUE(head) << head.error().message;
    EXPECT_EQ(head->durations, response.durations);
    EXPECT_TRUE(head->outputs.empty());
    ASSERT_EQ(read->outputs.size(), response.outputs.size());
    for (size_t k = 0; k < read->outputs.size(); ++k) {
      // NaNs keep being NaN, but not their bits.
      const infer::Tensor &got = read->outputs[k], &wanted = response.outputs[k];
      if (wanted.dtype == DType::kFp32) {
        const auto a = Numbers<float>(got), b = Numbers<float>(wanted);
        ASSERT_EQ(a.size(), b.size());
        for (size_t n = 0; n < a.size(); ++n) {
          EXPECT_TRUE(std::bit_cast<uint32_t>(a[n]) == std::bit_cast<uint32_t>(b[n]) ||
                      (std::isnan(a[n]) && std::isnan(b[n])));
        }
      } else if (wanted.dtype == DType::kFp64) {
        const auto a = Numbers<double>(got), b = Numbers<double>(wanted);
        ASSERT_EQ(a.size(), b.size());
        for (size_t n = 0; n < a.size(); ++n) {
          EXPECT_TRUE(std::bit_cast<uint64_t>(a[n]) == std::bit_cast<uint64_t>(b[n]) ||
                      (std::isnan(a[n]) && std::isnan(b[n])));
        }
      } else if (wanted.dtype == DType::kFp16 || wanted.dtype == DType::kBf16) {
        const int infinity = wanted.dtype == DType::kFp16 ? 0x7c00 : 0x7f80;
        const auto is_nan = [&](uint16_t bits) { return (bits & 0x7fff) > infinity; };
        const auto a = Numbers<uint16_t>(got), b = Numbers<uint16_t>(wanted);
        ASSERT_EQ(a.size(), b.size());
        for (size_t n = 0; n < a.size(); ++n) EXPECT_TRUE(a[n] == b[n] || (is_nan(a[n]) && is_nan(b[n])));
      } else {
        EXPECT_EQ(Describe(got), Describe(wanted));
      }
    }
  }
}

TEST(HttpCodec, EveryFloatSurvivesItsText) {
  Random random = Seed(3).MakeRandom();
  std::vector<float> numbers;
  while (numbers.size() < 200'000) {
    const float number = std::bit_cast<float>(static_cast<uint32_t>(random.Next()));
    if (!std::isnan(number)) numbers.push_back(number);
  }
  const infer::Response response{
      .outputs = {NumberTensor<float>("x", DType::kFp32, {std::ssize(numbers)}, numbers)}};
  const auto read = ParseHttpResponse(Whole(WriteHttpResponse(response, {}).value()), std::nullopt);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->outputs[0].data.text() == response.outputs[0].data.text());
}

void TakeNumbers(const Json& data, std::vector<float>& numbers) {
  if (data.is_number()) numbers.push_back(data.get<float>());
  for (const Json& item : data) TakeNumbers(item, numbers);
}

// nlohmann's parser, whose values make a whole tree, as the slow twin: both must find the same texts to be
// JSON, where ours does not refuse them for what they say.
TEST(HttpCodec, AgreesWithASlowReaderOnWhatIsJson) {
  const std::string good =
      R"({"id":"a\u00e9","inputs":[{"name":"x","shape":[2,2],"datatype":"FP32","data":[[1.5,-2e3],[0,4]]},)"
      R"({"name":"y","shape":[1],"datatype":"BYTES","data":["s"],"parameters":{"k":true}}],"other":{"a":[1,null,"b"]}} )";
  static constexpr std::string_view kBytes = "{}[],:\"\\0123456789.eE+- \n\tabntruefalsn\xC3\xA9\x01";
  Random random = Seed(4).MakeRandom();
  int read_by_both = 0;
  for (int i = 0; i < 60'000; ++i) {
    std::string text = good;
    for (int64_t changes = random.Integer(1, 3); changes > 0; --changes) {
      const auto at = static_cast<size_t>(random.Integer(0, std::ssize(text) - 1));
      const char byte = kBytes[static_cast<size_t>(random.Integer(0, std::ssize(kBytes) - 1))];
      switch (random.Integer(0, 2)) {
        case 0:
          text[at] = byte;
          break;
        case 1:
          text.insert(at, 1, byte);
          break;
        default:
          text.erase(at, 1);
      }
    }
    const auto request = ParseHttpRequest(Bytes::Copy(text), std::nullopt);
    if (!request) continue;
    const auto twin = ParseJson(text);
    ASSERT_TRUE(twin) << text;
    ++read_by_both;
    const Json& inputs = (*twin)["inputs"];
    ASSERT_EQ(inputs.size(), request->request.inputs.size()) << text;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const infer::Tensor& tensor = request->request.inputs[k];
      ASSERT_EQ(inputs[k]["name"], tensor.name) << text;
      ASSERT_EQ(inputs[k]["shape"], Json(tensor.shape)) << text;
      if (tensor.dtype != DType::kFp32) continue;
      std::vector<float> numbers;
      TakeNumbers(inputs[k]["data"], numbers);
      ASSERT_EQ(numbers, Numbers<float>(tensor)) << text;
    }
  }
  EXPECT_GT(read_by_both, 3000);
}

}  // namespace
}  // namespace weir::oip
