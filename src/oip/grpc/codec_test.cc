#include "oip/grpc/codec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>

#include "base/seed.h"
#include "oip/oip.pb.h"
#include "oip/testing/random_calls.h"

namespace weir::oip {
namespace {

using infer::DType;
using testing::Cut;
using testing::Describe;
using testing::Join;
using testing::NumberTensor;

Result<InferRequest> Parse(const inference::ModelInferRequest& message) {
  return ParseGrpcRequest(std::vector{Bytes::Copy(message.SerializeAsString())});
}
template <typename T>
std::string Because(const Result<T>& result) {
  return result ? "accepted" : result.error().message;
}

// A request with one input, without its data.
inference::ModelInferRequest WithInput(std::string_view datatype, const infer::Shape& shape) {
  inference::ModelInferRequest message;
  auto& input = *message.add_inputs();
  input.set_name("x");
  input.set_datatype(std::string(datatype));
  for (const int64_t size : shape) input.add_shape(size);
  return message;
}
inference::ModelInferRequest WithRaw(std::string_view datatype, const infer::Shape& shape,
                                     std::string_view raw) {
  auto message = WithInput(datatype, shape);
  message.add_raw_input_contents(std::string(raw));
  return message;
}
using Contents = inference::InferTensorContents;
inference::ModelInferRequest WithContents(std::string_view datatype, const infer::Shape& shape,
                                          const std::function<void(Contents&)>& fill) {
  auto message = WithInput(datatype, shape);
  fill(*message.mutable_inputs(0)->mutable_contents());
  return message;
}

void SetParameter(google::protobuf::Map<std::string, inference::InferParameter>& map, const std::string& name,
                  const infer::Parameter& value) {
  inference::InferParameter& parameter = map[name];
  if (const auto* v = std::get_if<bool>(&value)) parameter.set_bool_param(*v);
  if (const auto* v = std::get_if<int64_t>(&value)) parameter.set_int64_param(*v);
  if (const auto* v = std::get_if<uint64_t>(&value)) parameter.set_uint64_param(*v);
  if (const auto* v = std::get_if<double>(&value)) parameter.set_double_param(*v);
  if (const auto* v = std::get_if<std::string>(&value)) parameter.set_string_param(*v);
}

template <typename Message>
void FillTensor(const infer::Tensor& tensor, Message& message) {
  message.set_name(tensor.name);
  message.set_datatype(std::string(infer::ToString(tensor.dtype)));
  for (const int64_t size : tensor.shape) message.add_shape(size);
}

inference::ModelInferRequest ToMessage(const infer::Request& request) {
  inference::ModelInferRequest message;
  message.set_model_name(request.model);
  message.set_model_version(request.version);
  message.set_id(request.id);
  for (const auto& [name, value] : request.parameters)
    SetParameter(*message.mutable_parameters(), name, value);
  if (request.priority != 0) {
    (*message.mutable_parameters())["priority"].set_uint64_param(static_cast<uint64_t>(request.priority));
  }
  if (request.durations) (*message.mutable_parameters())["weir_durations"].set_bool_param(true);
  for (const infer::Tensor& input : request.inputs) {
    FillTensor(input, *message.add_inputs());
    message.add_raw_input_contents(std::string(input.data.text()));
  }
  for (const std::string& output : request.outputs) message.add_outputs()->set_name(output);
  return message;
}

inference::ModelInferResponse ToMessage(const infer::Response& response) {
  inference::ModelInferResponse message;
  message.set_model_name(response.model);
  message.set_model_version(response.version);
  message.set_id(response.id);
  if (const auto& told = response.durations) {
    const auto set = [&](const char* name, Duration part) {
      (*message.mutable_parameters())[name].set_int64_param(part.count());
    };
    set("weir_receive_ns", told->receive);
    set("weir_queue_ns", told->queue);
    set("weir_compute_input_ns", told->compute_input);
    set("weir_compute_infer_ns", told->compute_infer);
    set("weir_compute_output_ns", told->compute_output);
    set("weir_rest_ns", told->rest);
  }
  for (const infer::Tensor& output : response.outputs) {
    FillTensor(output, *message.add_outputs());
    message.add_raw_output_contents(std::string(output.data.text()));
  }
  return message;
}

// The generated classes order maps as they like: equal is what prints equal.
std::string Readable(const google::protobuf::Message& message) { return message.DebugString(); }

TEST(GrpcCodec, WhatTheGeneratedClassesWriteOurServerReadsHoweverItIsCut) {
  Random random = Seed(1).MakeRandom();
  for (int i = 0; i < 1000; ++i) {
    const infer::Request request = testing::RandomRequest(random);
    const auto pieces = Cut(ToMessage(request).SerializeAsString(), random);
    const auto read = ParseGrpcRequest(pieces);
    ASSERT_TRUE(read) << Because(read);
    EXPECT_EQ(read->protocol, Protocol::kGrpc);
    EXPECT_EQ(read->request.model, request.model);
    EXPECT_EQ(read->request.version, request.version);
    EXPECT_EQ(read->request.id, request.id);
    EXPECT_EQ(read->request.priority, request.priority);
    EXPECT_EQ(read->request.durations, request.durations);
    EXPECT_EQ(read->request.parameters, request.parameters);
    EXPECT_EQ(read->request.outputs, request.outputs);
    EXPECT_EQ(Describe(read->request.inputs), Describe(request.inputs));
    for (const infer::Tensor& input : read->request.inputs) {
      const size_t alignment = std::max<size_t>(1, infer::ByteSize(input.dtype));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(input.data.data()) % alignment, 0u);
    }
  }
}

TEST(GrpcCodec, WhatOurClientWritesTheGeneratedClassesRead) {
  Random random = Seed(2).MakeRandom();
  for (int i = 0; i < 1000; ++i) {
    const infer::Request request = testing::RandomRequest(random);
    inference::ModelInferRequest read;
    ASSERT_TRUE(read.ParseFromString(Join(WriteGrpcRequest(request))));
    EXPECT_EQ(Readable(read), Readable(ToMessage(request)));
  }
}

TEST(GrpcCodec, WhatTheGeneratedClassesAnswerOurClientReads) {
  Random random = Seed(3).MakeRandom();
  for (int i = 0; i < 1000; ++i) {
    const infer::Response response = testing::RandomResponse(random);
    const Slices message = Cut(ToMessage(response).SerializeAsString(), random);
    const auto read = ParseGrpcResponse(message);
    ASSERT_TRUE(read) << Because(read);
    EXPECT_EQ(read->model, response.model);
    EXPECT_EQ(read->version, response.version);
    EXPECT_EQ(read->id, response.id);
    EXPECT_EQ(read->durations, response.durations);
    EXPECT_EQ(Describe(read->outputs), Describe(response.outputs));
    const auto head = ParseGrpcResponse(message, infer::RequestForm::Outputs::kPassOver);
    ASSERT_TRUE(head) << Because(head);
    EXPECT_EQ(head->durations, response.durations);
    EXPECT_TRUE(head->outputs.empty());
  }
}

TEST(GrpcCodec, WhatOurServerAnswersTheGeneratedClassesRead) {
  Random random = Seed(4).MakeRandom();
  for (int i = 0; i < 1000; ++i) {
    const infer::Response response = testing::RandomResponse(random);
    inference::ModelInferResponse read;
    ASSERT_TRUE(read.ParseFromString(Join(WriteGrpcResponse(response, {}))));
    EXPECT_EQ(Readable(read), Readable(ToMessage(response)));
  }
}

TEST(GrpcCodec, LargeTensorsGoOutAsTheyLie) {
  const std::vector<float> numbers(1000, 1.5f);
  const auto small = NumberTensor<float>("a", DType::kFp32, {1}, {1});
  const auto large = NumberTensor<float>("b", DType::kFp32, {1000}, numbers);
  for (const Slices& slices : {WriteGrpcRequest({.inputs = {small, large, small, large}}),
                               WriteGrpcResponse({.outputs = {small, large, small, large}}, {})}) {
    ASSERT_EQ(slices.size(), 4u);
    EXPECT_EQ(slices[1].data(), large.data.data());
    EXPECT_EQ(slices[3].data(), large.data.data());
  }
  EXPECT_EQ(WriteGrpcRequest({.inputs = {small}}).size(), 1u);
}

TEST(GrpcCodec, AnEmptyAnswerIsOnePieceAndAMessage) {
  const Slices slices = WriteGrpcResponse({}, {});
  EXPECT_EQ(Join(slices), "");
  EXPECT_TRUE(ParseGrpcResponse(slices));
  EXPECT_TRUE(ParseGrpcResponse({}));
}

TEST(GrpcRequest, AnAlignedTensorThatLiesWholeInAPieceIsASliceOfIt) {
  const std::string message = WithRaw("FP32", {16}, std::string(64, 'a')).SerializeAsString();
  for (size_t shift = 0; shift < 4; ++shift) {
    Bytes memory = Bytes::Copy(std::string(shift, ' ') + message);
    const std::vector pieces{memory.Slice(shift, message.size())};
    const auto read = ParseGrpcRequest(pieces);
    ASSERT_TRUE(read);
    const std::byte* const at = read->request.inputs[0].data.data();
    const std::byte* const lies = pieces[0].data() + message.size() - 64;
    if (reinterpret_cast<uintptr_t>(lies) % 4 == 0) {
      EXPECT_EQ(at, lies);
    } else {
      EXPECT_NE(at, lies);
    }
  }
}

TEST(GrpcRequest, TypedContentsOfEveryTypeBecomeRawOnes) {
  const auto expect = [](const inference::ModelInferRequest& message, const infer::Tensor& wanted) {
    Random random = Seed(5).MakeRandom();
    const auto read = ParseGrpcRequest(Cut(message.SerializeAsString(), random));
    ASSERT_TRUE(read) << Because(read);
    EXPECT_EQ(Describe(read->request.inputs[0]), Describe(wanted));
  };
  expect(
      WithContents("BOOL", {2}, [](Contents& c) { c.add_bool_contents(true), c.add_bool_contents(false); }),
      NumberTensor<uint8_t>("x", DType::kBool, {2}, {1, 0}));
  expect(WithContents("INT8", {2}, [](Contents& c) { c.add_int_contents(-128), c.add_int_contents(127); }),
         NumberTensor<int8_t>("x", DType::kInt8, {2}, {-128, 127}));
  expect(WithContents("INT16", {1}, [](Contents& c) { c.add_int_contents(-32768); }),
         NumberTensor<int16_t>("x", DType::kInt16, {1}, {-32768}));
  expect(WithContents("INT32", {1}, [](Contents& c) { c.add_int_contents(INT32_MIN); }),
         NumberTensor<int32_t>("x", DType::kInt32, {1}, {INT32_MIN}));
  expect(WithContents("INT64", {1}, [](Contents& c) { c.add_int64_contents(INT64_MIN); }),
         NumberTensor<int64_t>("x", DType::kInt64, {1}, {INT64_MIN}));
  expect(WithContents("UINT8", {1}, [](Contents& c) { c.add_uint_contents(255); }),
         NumberTensor<uint8_t>("x", DType::kUint8, {1}, {255}));
  expect(WithContents("UINT16", {1}, [](Contents& c) { c.add_uint_contents(65535); }),
         NumberTensor<uint16_t>("x", DType::kUint16, {1}, {65535}));
  expect(WithContents("UINT32", {1}, [](Contents& c) { c.add_uint_contents(UINT32_MAX); }),
         NumberTensor<uint32_t>("x", DType::kUint32, {1}, {UINT32_MAX}));
  expect(WithContents("UINT64", {1}, [](Contents& c) { c.add_uint64_contents(UINT64_MAX); }),
         NumberTensor<uint64_t>("x", DType::kUint64, {1}, {UINT64_MAX}));
  expect(
      WithContents("FP32", {1, 2}, [](Contents& c) { c.add_fp32_contents(0.1f), c.add_fp32_contents(-2); }),
      NumberTensor<float>("x", DType::kFp32, {1, 2}, {0.1f, -2}));
  expect(WithContents("FP64", {1}, [](Contents& c) { c.add_fp64_contents(0.1); }),
         NumberTensor<double>("x", DType::kFp64, {1}, {0.1}));
  expect(
      WithContents("BYTES", {2}, [](Contents& c) { c.add_bytes_contents(""), c.add_bytes_contents("\xff"); }),
      testing::BytesTensor("x", {"", "\xff"}));
  expect(WithContents("FP32", {0}, [](Contents&) {}), NumberTensor<float>("x", DType::kFp32, {0}, {}));
  expect(WithInput("FP32", {0, 3}), NumberTensor<float>("x", DType::kFp32, {0, 3}, {}));
}

TEST(GrpcRequest, ContentsMayBeUnpackedInPartsAndBeforeTheType) {
  // contents {1: 1}, datatype, contents {1: 0 1 (packed)}, shape unpacked, name.
  const std::string input =
      "\x2a\x02\x08\x01"
      "\x12\x04"
      "BOOL"
      "\x2a\x04\x0a\x02" +
      std::string("\0\1", 2) +
      "\x18\x03"
      "\x0a\x01x";
  const auto read = ParseGrpcRequest(
      std::vector{Bytes::Copy("\x2a" + std::string(1, static_cast<char>(input.size())) + input)});
  ASSERT_TRUE(read) << Because(read);
  EXPECT_EQ(Describe(read->request.inputs[0]), "x BOOL [3]: 01 00 01");
}

TEST(GrpcRequest, WhatDoesNotFitIsRefusedByName) {
  using std::string_view_literals::operator""sv;
  const auto because = [](const inference::ModelInferRequest& message) {
    const auto read = Parse(message);
    EXPECT_TRUE(read || read.error().code == ErrorCode::kInvalidArgument);
    return Because(read);
  };
  EXPECT_EQ(because(WithRaw("FP32", {1}, "1234")), "accepted");
  EXPECT_EQ(because(WithRaw("FP32", {1}, "12345")),
            "input 'x': 1 elements of FP32 are 4 bytes, but 5 are given");
  EXPECT_EQ(because(WithRaw("FP32", {-1}, "1234")), "input 'x': shape [-1] has a negative dimension");
  EXPECT_EQ(because(WithRaw("FP32", {INT64_MAX, 2}, "1234")),
            "input 'x': shape [9223372036854775807,2] has more than 2^63 elements");
  EXPECT_EQ(because(WithRaw("FP32", {INT64_MAX}, "1234")),
            "input 'x': shape [9223372036854775807] has more than 2^63 bytes of FP32");
  EXPECT_EQ(because(WithRaw("FP32", infer::Shape(65, 1), "1234")),
            "input 'x': shape has more than 64 dimensions");
  EXPECT_EQ(
      because(WithRaw("fp32", {1}, "1234")),
      "input 'x': unknown datatype 'fp32': use BOOL, UINT8, ..., INT64, FP16, BF16, FP32, FP64 or BYTES");
  EXPECT_EQ(because(WithRaw("", {1}, "1234")), "input 'x': its datatype is missing");
  EXPECT_EQ(because(WithRaw("BYTES", {1}, "\1\0\0\0ab"sv)),
            "input 'x': 1 bytes are left over after 1 elements");
  EXPECT_EQ(because(WithRaw("BYTES", {1}, "\3\0\0\0ab"sv)), "input 'x': element 0 says 3 bytes, 2 are left");
  EXPECT_EQ(because(WithInput("FP32", {1})), "input 'x': has no data: the message has 0 raw tensors");

  auto message = WithRaw("FP32", {1}, "1234");
  message.add_raw_input_contents("1234");
  EXPECT_EQ(because(message), "1 raw tensors are left over after the last input");
  message = WithRaw("FP32", {1}, "1234");
  *message.add_inputs() = message.inputs(0);
  EXPECT_EQ(because(message), "input 'x': has no data: the message has 1 raw tensors");
  message.add_raw_input_contents("1234");
  EXPECT_EQ(because(message), "input 'x' is there twice");
  message.mutable_inputs(0)->clear_name();
  EXPECT_EQ(because(message), "an input has no name");
  message = WithRaw("FP32", {1}, "1234");
  const auto both =
      "contents field must not be specified when using raw_input_contents for 'x' for model 'm'";
  message.set_model_name("m");
  message.mutable_inputs(0)->mutable_contents();
  EXPECT_EQ(because(message), both);  // whatever the contents are
  message.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  EXPECT_EQ(because(message), both);
  message.clear_raw_input_contents();
  message.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  EXPECT_TRUE(because(message).starts_with("input 'x': ")) << because(message);
  message = WithRaw("FP32", {1}, "1234");
  message.add_outputs()->set_name("y");
  message.add_outputs()->set_name("y");
  EXPECT_EQ(because(message), "output 'y' is there twice");
}

TEST(GrpcRequest, TypedContentsThatDoNotFitAreRefused) {
  const auto because = [](std::string_view datatype, const infer::Shape& shape,
                          const std::function<void(Contents&)>& fill) {
    return Because(Parse(WithContents(datatype, shape, fill)));
  };
  EXPECT_EQ(because("UINT8", {1}, [](Contents& c) { c.add_uint_contents(300); }),
            "input 'x': contents hold 300, which does not fit UINT8");
  EXPECT_EQ(because("INT8", {1}, [](Contents& c) { c.add_int_contents(-129); }),
            "input 'x': contents hold -129, which does not fit INT8");
  EXPECT_EQ(because("UINT16", {1}, [](Contents& c) { c.add_uint_contents(65536); }),
            "input 'x': contents hold 65536, which does not fit UINT16");
  EXPECT_EQ(because("FP32", {1}, [](Contents& c) { c.add_fp64_contents(1); }),
            "input 'x': contents are in fp64_contents, its type wants fp32_contents");
  EXPECT_EQ(because("INT32", {1}, [](Contents& c) { c.add_uint_contents(1); }),
            "input 'x': contents are in uint_contents, its type wants int_contents");
  EXPECT_EQ(because("FP32", {2}, [](Contents& c) { c.add_fp32_contents(1); }),
            "input 'x': contents have 1 elements, the shape 2");
  EXPECT_EQ(because("FP32", {1}, [](Contents& c) { c.add_fp32_contents(1), c.add_fp32_contents(1); }),
            "input 'x': contents have more elements than the shape");
  EXPECT_EQ(because("INT64", {1}, [](Contents& c) { c.add_int64_contents(1), c.add_int64_contents(1); }),
            "input 'x': contents have more elements than the shape");
  EXPECT_EQ(because("BYTES", {1}, [](Contents& c) { c.add_bytes_contents(""), c.add_bytes_contents(""); }),
            "input 'x': contents have 2 elements, the shape 1");
  EXPECT_EQ(because("FP16", {1}, [](Contents& c) { c.add_fp32_contents(1); }),
            "input 'x': FP16 has no typed contents: send it in raw_input_contents");
  EXPECT_EQ(because("FP64", {1'000'000'000'000}, [](Contents& c) { c.add_fp64_contents(1); }),
            "input 'x': contents have fewer elements than shape [1000000000000]");
}

TEST(GrpcRequest, ParametersStandInTheirPlaces) {
  auto message = WithRaw("FP32", {1}, "1234");
  message.set_id("7");
  auto& parameters = *message.mutable_parameters();
  SetParameter(parameters, "priority", uint64_t{3});
  SetParameter(parameters, "timeout", int64_t{1500});
  SetParameter(parameters, "mine", std::string("yes"));
  SetParameter(parameters, "sequence_id", int64_t{0});
  auto& output = *message.add_outputs();
  output.set_name("y");
  SetParameter(*output.mutable_parameters(), "classification", int64_t{3});
  auto& shared = *message.add_outputs();
  shared.set_name("z");
  SetParameter(*shared.mutable_parameters(), "shared_memory_region", std::string("r"));
  SetParameter(*shared.mutable_parameters(), "shared_memory_byte_size", int64_t{64});
  auto& input = *message.add_inputs();
  input.set_name("w");
  input.set_datatype("FP32");
  input.add_shape(2);
  SetParameter(*input.mutable_parameters(), "shared_memory_region", std::string("s"));
  SetParameter(*input.mutable_parameters(), "shared_memory_byte_size", int64_t{8});
  SetParameter(*input.mutable_parameters(), "shared_memory_offset", int64_t{4});
  const auto read = Parse(message);
  ASSERT_TRUE(read) << Because(read);
  EXPECT_EQ(read->request.priority, 3);
  EXPECT_EQ(read->timeout, std::chrono::microseconds(1500));
  EXPECT_EQ(read->request.parameters,
            (std::map<std::string, infer::Parameter>{{"mine", std::string("yes")}}));
  EXPECT_EQ(read->outputs[0].classification, 3);
  EXPECT_TRUE(read->outputs[0].binary);
  EXPECT_EQ(read->outputs[1].region->byte_size, 64u);
  ASSERT_EQ(read->input_regions.size(), 2u);
  EXPECT_FALSE(read->input_regions[0]);
  EXPECT_EQ(read->input_regions[1]->offset, 4u);
  EXPECT_EQ(read->request.inputs[0].data.text(), "1234");
  EXPECT_TRUE(read->request.inputs[1].data.empty());
}

TEST(GrpcRequest, BadParametersAreRefusedByName) {
  const auto because = [](const std::string& name, const infer::Parameter& value) {
    auto message = WithRaw("FP32", {1}, "1234");
    SetParameter(*message.mutable_parameters(), name, value);
    return Because(Parse(message));
  };
  EXPECT_EQ(because("timeout", int64_t{0}), "accepted");
  EXPECT_EQ(because("timeout", std::string("1")), "parameter 'timeout' is not an unsigned integer");
  EXPECT_EQ(because("sequence_id", int64_t{1}),
            "parameter 'sequence_id': sequences of requests are not supported");
  EXPECT_EQ(because("triton_x", true), "parameter 'triton_x' is reserved");
  EXPECT_EQ(because("weir_durations", int64_t{1}), "parameter 'weir_durations' is not true or false");
  auto message = WithRaw("FP32", {1}, "1234");
  (*message.mutable_parameters())["empty"];
  EXPECT_EQ(Because(Parse(message)), "parameter 'empty' has no value");
  message = WithRaw("FP32", {1}, "1234");
  auto& output = *message.add_outputs();
  output.set_name("y");
  SetParameter(*output.mutable_parameters(), "classification", int64_t{0});
  EXPECT_EQ(Because(Parse(message)),
            "output 'y': parameter 'classification' is not a number of classes above 0");
}

TEST(GrpcRequest, NamesThatAreNotUtf8AreRefusedAndEscaped) {
  const std::string bytes =
      "\x0a\x03"
      "a\xff\n";  // model_name
  EXPECT_EQ(Because(ParseGrpcRequest(std::vector{Bytes::Copy(bytes)})),
            R"(model_name is not UTF-8: 'a\xFF\x0A')");
}

TEST(GrpcRequest, UnknownFieldsArePassedOver) {
  // Field 100 of every wire type, groups in groups among them.
  const std::string unknown =
      "\xa0\x06\x05"
      "\xa1\x06"
      "12345678"
      "\xa2\x06\x03"
      "abc"
      "\xa3\x06\xa3\x06\xa0\x06\x01\xa4\x06\xa4\x06"
      "\xa5\x06"
      "1234";
  Random random = Seed(6).MakeRandom();
  const auto read =
      ParseGrpcRequest(Cut(unknown + WithRaw("FP32", {1}, "1234").SerializeAsString() + unknown, random));
  ASSERT_TRUE(read) << Because(read);
  EXPECT_EQ(read->request.inputs.size(), 1u);
}

TEST(GrpcRequest, BrokenMessagesAreErrors) {
  std::string deep;
  for (int i = 0; i < 1'000'000; ++i) deep += "\xa3\x06";
  for (const std::string& bytes : {std::string("\x08"),
                                   std::string("\x0a\x05"
                                               "abc"),
                                   std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
                                   std::string("\0\0", 2), std::string("\x0e"), std::string("\x0f"),
                                   std::string("\xa4\x06"), std::string("\xa3\x06\xa8\x06\x01\xac\x06"),
                                   std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), deep}) {
    const auto read = ParseGrpcRequest(std::vector{Bytes::Copy(bytes)});
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::kInvalidArgument);
  }
  // Every beginning of a good message is one, or is refused.
  const std::string good = WithRaw("FP32", {1}, "1234").SerializeAsString();
  for (size_t size = 1; size < good.size(); ++size) {
    EXPECT_FALSE(ParseGrpcRequest(std::vector{Bytes::Copy(good.substr(0, size))})) << size;
  }
}

TEST(GrpcResponse, OutputsInARegionCarryNoData) {
  const infer::Response response{.outputs = {NumberTensor<float>("a", DType::kFp32, {2}, {1, 2}),
                                             NumberTensor<float>("b", DType::kFp32, {1}, {3})}};
  const std::vector<RequestedOutput> wishes{
      {.name = "b"}, {.name = "a", .region = RegionPart{.region = "r", .offset = 16, .byte_size = 8}}};
  const Slices slices = WriteGrpcResponse(response, wishes);
  inference::ModelInferResponse message;
  ASSERT_TRUE(message.ParseFromString(Join(slices)));
  ASSERT_EQ(message.raw_output_contents_size(), 2);  // NVIDIA's C++ client wants one for every output
  EXPECT_TRUE(message.raw_output_contents(0).empty());
  EXPECT_EQ(message.outputs(0).parameters().at("shared_memory_region").string_param(), "r");
  EXPECT_EQ(message.outputs(0).parameters().at("shared_memory_offset").int64_param(), 16);
  EXPECT_EQ(message.outputs(0).parameters().at("shared_memory_byte_size").int64_param(), 8);
  const auto read = ParseGrpcResponse(slices);
  ASSERT_TRUE(read) << Because(read);
  EXPECT_TRUE(read->outputs[0].data.empty());
  EXPECT_EQ(read->outputs[1].data.text(), response.outputs[1].data.text());
}

TEST(GrpcResponse, OutputsThatArePassedOverMustBeAsLongAsTheirShapesSay) {
  inference::ModelInferResponse message;
  auto& output = *message.add_outputs();
  output.set_name("y");
  output.set_datatype("FP32");
  output.add_shape(2);
  Random random = Seed(5).MakeRandom();
  const auto fault = [&] {
    const auto read =
        ParseGrpcResponse(Cut(message.SerializeAsString(), random), infer::RequestForm::Outputs::kPassOver);
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(fault(), "output 'y': has no data: the message has 0 raw tensors");
  message.add_raw_output_contents("123");
  EXPECT_EQ(fault(), "output 'y': 2 elements of FP32 are 8 bytes, but 3 are given");
  message.set_raw_output_contents(0, "12345678");
  EXPECT_EQ(fault(), "");
  message.add_raw_output_contents("1234");
  EXPECT_EQ(fault(), "1 raw tensors are left over after the last output");
}

TEST(GrpcResponse, ParametersOfOtherServersArePassedOverAndHalfOfOursIsAFault) {
  inference::ModelInferResponse message;
  const auto read = [&] { return ParseGrpcResponse(std::vector{Bytes::Copy(message.SerializeAsString())}); };
  (*message.mutable_parameters())["no value"];
  SetParameter(*message.mutable_parameters(), "sequence_id", int64_t{5});
  ASSERT_TRUE(read()) << Because(read());
  EXPECT_FALSE(read()->durations);
  SetParameter(*message.mutable_parameters(), "weir_rest_ns", int64_t{5});
  EXPECT_EQ(Because(read()), "parameter 'weir_receive_ns' is missing");
  SetParameter(*message.mutable_parameters(), "weir_rest_ns", 5.0);
  EXPECT_EQ(Because(read()), "parameter 'weir_rest_ns' is not a whole number");
}

TEST(GrpcResponse, TypedContentsOfOtherServersAreRead) {
  inference::ModelInferResponse message;
  auto& output = *message.add_outputs();
  output.set_name("y");
  output.set_datatype("FP32");
  output.add_shape(2);
  output.mutable_contents()->add_fp32_contents(1.5f);
  output.mutable_contents()->add_fp32_contents(2.5f);
  const auto read = ParseGrpcResponse(std::vector{Bytes::Copy(message.SerializeAsString())});
  ASSERT_TRUE(read) << Because(read);
  EXPECT_EQ(Describe(read->outputs[0]), Describe(NumberTensor<float>("y", DType::kFp32, {2}, {1.5f, 2.5f})));
}

}  // namespace
}  // namespace weir::oip
