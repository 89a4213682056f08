// Requests over HTTP with binary tensors after the JSON, or nothing but one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "oip/http/codec.h"

namespace weir::oip {
namespace {

using infer::DType;

Result<InferRequest> ParseBinaryRequest(std::string_view text, std::string_view binary) {
  return ParseHttpRequest(Bytes::Copy(std::string(text) + std::string(binary)), text.size());
}
std::string Because(const Result<InferRequest>& result) {
  return result ? "accepted" : result.error().message;
}

TEST(HttpRequest, BinaryTensorsAreSlicesOfTheBodyInOrder) {
  std::string text =
      R"({"inputs":[{"name":"a","shape":[2],"datatype":"FP32","parameters":{"binary_data_size":8}},{"name":"b","shape":[1],"datatype":"UINT8","data":[9]},{"name":"c","shape":[3],"datatype":"INT8","parameters":{"binary_data_size":3}}]})";
  text.resize((text.size() + 63) / 64 * 64, ' ');
  const Bytes body = Bytes::Copy(text + "abcdefghxyz");
  const auto request = ParseHttpRequest(body, text.size());
  ASSERT_TRUE(request) << Because(request);
  EXPECT_EQ(request->request.inputs[0].data.text(), "abcdefgh");
  EXPECT_EQ(request->request.inputs[0].data.data(), body.data() + text.size());
  EXPECT_EQ(request->request.inputs[2].data.text(), "xyz");
  EXPECT_EQ(request->request.inputs[2].data.data(), body.data() + text.size() + 8);
}

TEST(HttpRequest, ABinaryTensorThatIsNotAlignedIsCopiedToWhereItIs) {
  const Bytes body = Bytes::Copy(
      R"({"inputs":[{"name":"a","shape":[1],"datatype":"UINT8","parameters":{"binary_data_size":1}},{"name":"b","shape":[1],"datatype":"FP64","parameters":{"binary_data_size":8}}]})"
      "112345678");
  const auto request = ParseHttpRequest(body, body.size() - 9);
  ASSERT_TRUE(request) << Because(request);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(request->request.inputs[1].data.data()) % 8, 0u);
  EXPECT_EQ(request->request.inputs[1].data.text(), "12345678");
}

TEST(HttpRequest, BinaryBodiesThatDoNotFitAreRefused) {
  const auto input = [](std::string_view datatype, std::string_view shape, std::string_view size) {
    return fmt::format(
        R"({{"inputs":[{{"name":"x","datatype":"{}","shape":{},"parameters":{{"binary_data_size":{}}}}}]}})",
        datatype, shape, size);
  };
  const auto because = [](const std::string& text, std::string_view binary) {
    return Because(ParseBinaryRequest(text, binary));
  };
  using std::string_view_literals::operator""sv;
  EXPECT_EQ(because(input("FP32", "[1]", "4"), "1234"), "accepted");
  EXPECT_EQ(because(input("FP16", "[1]", "2"), "12"), "accepted");
  EXPECT_EQ(because(input("FP32", "[0]", "0"), ""), "accepted");
  EXPECT_EQ(because(input("FP32", "[1]", "5"), "12345"),
            "input 'x': 1 elements of FP32 are 4 bytes, but 5 are given");
  EXPECT_EQ(because(input("FP32", "[1]", "4"), "123"),
            "input 'x': binary_data_size is 4, but 3 bytes of the body are left");
  EXPECT_EQ(because(input("FP32", "[1]", "4"), "12345"),
            "1 bytes are left over after the last binary tensor");
  EXPECT_EQ(because(input("UINT8", "[9223372036854775807]", "9223372036854775807"), "1"),
            "input 'x': binary_data_size is 9223372036854775807, but 1 bytes of the body are left");
  EXPECT_EQ(because(input("BYTES", "[1]", "18446744073709551615"), "1"),
            "input 'x': binary_data_size is 18446744073709551615, but 1 bytes of the body are left");
  EXPECT_EQ(because(input("BYTES", "[2]", "9"), "\0\0\0\0\1\0\0\0a"sv), "accepted");
  EXPECT_EQ(because(input("BYTES", "[2]", "4"), "\0\0\0\0"sv), "input 'x': data has 1 elements, its shape 2");
  EXPECT_EQ(because(input("BYTES", "[1]", "9"), "\0\0\0\0\1\0\0\0a"sv),
            "input 'x': 5 bytes are left over after 1 elements");
  EXPECT_EQ(because(input("BYTES", "[1]", "5"), "\2\0\0\0a"sv),
            "input 'x': element 0 says 2 bytes, 1 are left");
  EXPECT_EQ(because(input("BYTES", "[1]", "5"), "\xff\xff\xff\xff\xff"sv),
            "input 'x': element 0 says 4294967295 bytes, 1 are left");
  EXPECT_EQ(because(input("BYTES", "[1]", "3"), "\2\0\0"sv),
            "input 'x': element 0 has 3 of the 4 bytes of its length");
}

TEST(HttpRequest, AHeaderLengthBeyondTheBodyIsRefused) {
  EXPECT_EQ(Because(ParseHttpRequest(Bytes::Copy("{}"), 3)),
            "Inference-Header-Content-Length is 3, but the body has 2 bytes");
  EXPECT_FALSE(ParseHttpRequest(Bytes::Copy("{}"), UINT64_MAX));
  EXPECT_FALSE(ParseHttpRequest(Bytes::Copy("{}"), 0));
}

TEST(HttpRequest, WhatLiesBehindTheJsonIsNotReadAsJson) {
  // The header is cut short; the binary part would complete it.
  const std::string text = R"({"inputs":[{"name":"x","shape":[1],"datatype":"UINT8","data":[1]}]})";
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(ParseHttpRequest(Bytes::Copy(text), length)) << length;
  }
}

TEST(RawHttpRequest, TheFreeDimensionFollowsFromTheSize) {
  const Bytes body = Bytes::Copy(std::string(24, 'a'));
  const auto request =
      ParseRawHttpRequest(body, {.name = "x", .dtype = DType::kFp32, .shape = {-1, -1, 3}}, true);
  ASSERT_TRUE(request) << Because(request);
  EXPECT_EQ(request->request.inputs[0].shape, (infer::Shape{1, 2, 3}));
  EXPECT_EQ(request->request.inputs[0].data.data(), body.data());
  EXPECT_TRUE(request->binary_by_default);
  EXPECT_EQ(request->input_regions.size(), 1u);
  EXPECT_TRUE(ParseRawHttpRequest(body, {.name = "x", .dtype = DType::kFp32, .shape = {2, 3}}, false));
}

TEST(RawHttpRequest, BytesAreOneElement) {
  for (const auto& [shape, batched] :
       {std::pair(infer::Shape{-1, 1}, true), {infer::Shape{1}, false}, {infer::Shape{-1}, true}}) {
    const auto request = ParseRawHttpRequest(Bytes::Copy("abc"),
                                             {.name = "x", .dtype = DType::kBytes, .shape = shape}, batched);
    ASSERT_TRUE(request) << Because(request);
    EXPECT_EQ(request->request.inputs[0].data.text(), std::string_view("\3\0\0\0abc", 7));
  }
  EXPECT_FALSE(
      ParseRawHttpRequest(Bytes::Copy("abc"), {.name = "x", .dtype = DType::kBytes, .shape = {2}}, false));
}

TEST(RawHttpRequest, WhatDoesNotFitIsRefused) {
  const auto because = [](std::string_view body, const infer::Shape& shape, bool batched) {
    return Because(ParseRawHttpRequest(Bytes::Copy(body),
                                       {.name = "x", .dtype = DType::kFp32, .shape = shape}, batched));
  };
  EXPECT_EQ(because("12345", {-1, -1}, true), "input 'x': 1 elements of FP32 are 4 bytes, but 5 are given");
  EXPECT_EQ(because("1234", {-1, 2}, true), "input 'x': 2 elements of FP32 are 8 bytes, but 4 are given");
  EXPECT_EQ(because("1234", {-1, -1, -1}, true),
            "input 'x': has more than one free dimension: a raw request cannot say its shape");
  EXPECT_EQ(because("", {-1, -1}, true), "accepted");  // no element at all
  EXPECT_EQ(because("1", {0, -1}, false), "input 'x': 0 elements of FP32 are 0 bytes, but 1 are given");
}

TEST(RawHttpRequest, ABodyThatIsNotAlignedIsCopied) {
  const Bytes body = Bytes::Copy("1abcdefgh").Slice(1, 8);
  const auto request = ParseRawHttpRequest(body, {.name = "x", .dtype = DType::kFp32, .shape = {2}}, false);
  ASSERT_TRUE(request);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(request->request.inputs[0].data.data()) % 4, 0u);
  EXPECT_EQ(request->request.inputs[0].data.text(), "abcdefgh");
}

}  // namespace
}  // namespace weir::oip
