// What the protocol's bytes cost a server and a client: a request read and its answer written, of 16 floats
// and of 3x224x224, binary and JSON, over HTTP and gRPC. No socket: the codecs alone.
#include <benchmark/benchmark.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/seed.h"
#include "oip/buffer.h"
#include "oip/grpc/codec.h"
#include "oip/http/codec.h"
#include "oip/http/json_number.h"
#include "oip/http/tensor_json.h"
#include "oip/oip.pb.h"

namespace weir::oip {
namespace {

template <typename T>
T Must(Result<T> result) {
  if (!result) {
    fprintf(stderr, "%s\n", result.error().message.c_str());
    std::exit(1);
  }
  return *std::move(result);
}

infer::Tensor Floats(const std::string& name, int64_t count) {
  Random random = Seed(1).MakeRandom();
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& number : numbers) number = static_cast<float>(random.Normal());
  return {.name = name,
          .dtype = infer::DType::kFp32,
          .shape = {1, count},
          .data = Bytes::Copy(std::as_bytes(std::span(numbers)))};
}

infer::Request MakeRequest(int64_t count) {
  return {.model = "identity", .id = "1", .inputs = {Floats("INPUT0", count)}};
}
infer::Response MakeResponse(int64_t count) {
  return {.model = "identity", .version = "1", .id = "1", .outputs = {Floats("OUTPUT0", count)}};
}

Bytes Whole(const std::vector<Bytes>& parts) {
  std::string text;
  for (const Bytes& part : parts) text += part.text();
  return Bytes::Copy(text);
}

// As Python writes it: doubles to their last digit.
Bytes JsonRequest(int64_t count) {
  std::string text = R"({"inputs":[{"name":"INPUT0","shape":[1,)" + std::to_string(count) +
                     R"(],"datatype":"FP32","data":[)";
  const infer::Tensor tensor = Floats("INPUT0", count);
  for (int64_t i = 0; i < count; ++i) {
    float number = 0;
    std::memcpy(&number, tensor.data.data() + 4 * i, 4);
    Buffer digits(32);
    AppendJsonNumber(double{number}, digits);
    if (i > 0) text += ", ";
    text += std::move(digits).Take().text();
  }
  return Bytes::Copy(text + "]}]}");
}

void HttpBinaryRead(benchmark::State& state) {
  const HttpBody body = WriteHttpRequest(MakeRequest(state.range(0)));
  const Bytes whole = Whole(body.parts);
  for (auto _ : state) benchmark::DoNotOptimize(Must(ParseHttpRequest(whole, body.header_length)));
}
BENCHMARK(HttpBinaryRead)->Arg(16)->Arg(150528);

void HttpBinaryWrite(benchmark::State& state) {
  const infer::Response response = MakeResponse(state.range(0));
  const ResponseForm form{.binary_by_default = true};
  for (auto _ : state) benchmark::DoNotOptimize(Must(WriteHttpResponse(response, form)));
}
BENCHMARK(HttpBinaryWrite)->Arg(16)->Arg(150528);

void HttpJsonRead(benchmark::State& state) {
  const Bytes body = JsonRequest(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(Must(ParseHttpRequest(body, std::nullopt)));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(body.size()));
}
BENCHMARK(HttpJsonRead)->Arg(16)->Arg(150528);

void HttpJsonWrite(benchmark::State& state) {
  const infer::Response response = MakeResponse(state.range(0));
  size_t size = 0;
  for (auto _ : state) size = Must(WriteHttpResponse(response, {})).size();
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(size));
}
BENCHMARK(HttpJsonWrite)->Arg(16)->Arg(150528);

// In one piece, and as it comes from a socket: in frames of 16 KiB, each a piece.
void GrpcRead(benchmark::State& state) {
  const Bytes whole = Whole(WriteGrpcRequest(MakeRequest(state.range(0))));
  const auto frame = static_cast<size_t>(state.range(1));
  std::vector<Bytes> pieces;
  for (size_t at = 0; at < whole.size(); at += frame) {
    pieces.push_back(whole.Slice(at, std::min(frame, whole.size() - at)));
  }
  for (auto _ : state) benchmark::DoNotOptimize(Must(ParseGrpcRequest(pieces)));
}
BENCHMARK(GrpcRead)->Args({16, 1 << 30})->Args({150528, 1 << 30})->Args({150528, 16 << 10});

// The same request by protobuf's own class, from its pieces: the payload is copied, and not aligned for an
// engine.
void ProtobufRead(benchmark::State& state) {
  const std::string whole(Whole(WriteGrpcRequest(MakeRequest(state.range(0)))).text());
  inference::ModelInferRequest message;
  for (auto _ : state) {
    if (!message.ParseFromString(whole)) std::abort();
    benchmark::DoNotOptimize(message.raw_input_contents(0).data());
  }
}
BENCHMARK(ProtobufRead)->Arg(16)->Arg(150528);

void GrpcWrite(benchmark::State& state) {
  const infer::Response response = MakeResponse(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(WriteGrpcResponse(response, {}));
}
BENCHMARK(GrpcWrite)->Arg(16)->Arg(150528);

void HttpClientWrite(benchmark::State& state) {
  const infer::Request request = MakeRequest(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(WriteHttpRequest(request));
}
BENCHMARK(HttpClientWrite)->Arg(16)->Arg(150528);

void HttpClientRead(benchmark::State& state) {
  const HttpBody body = Must(WriteHttpResponse(MakeResponse(state.range(0)), {.binary_by_default = true}));
  const Bytes whole = Whole(body.parts);
  for (auto _ : state) benchmark::DoNotOptimize(Must(ParseHttpResponse(whole, body.header_length)));
}
BENCHMARK(HttpClientRead)->Arg(16)->Arg(150528);

void GrpcClientWrite(benchmark::State& state) {
  const infer::Request request = MakeRequest(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(WriteGrpcRequest(request));
}
BENCHMARK(GrpcClientWrite)->Arg(16)->Arg(150528);

void GrpcClientRead(benchmark::State& state) {
  const Bytes whole = Whole(WriteGrpcResponse(MakeResponse(state.range(0)), {}));
  for (auto _ : state) benchmark::DoNotOptimize(Must(ParseGrpcResponse(std::span(&whole, 1))));
}
BENCHMARK(GrpcClientRead)->Arg(16)->Arg(150528);

// Numbers alone: ours, and the standard library's (fast_float, Ryu). 150,528 pixels as a model takes them,
// 256 levels, and as many random numbers.
std::vector<float> Numbers(bool pixels) {
  Random random = Seed(1).MakeRandom();
  std::vector<float> numbers(150528);
  for (float& number : numbers) {
    const double level = std::floor(256 * random.Uniform());
    number = static_cast<float>(pixels ? (level / 255 - 0.456) / 0.224 : random.Normal());
  }
  return numbers;
}

// Arg 0: pixels as floats, 1: pixels as Python writes them, doubles, 2: random floats.
template <bool kOurs>
void ReadNumbers(benchmark::State& state) {
  std::string text;
  for (const float number : Numbers(state.range(0) < 2)) {
    char digits[kNumberRoom];
    char* const last =
        state.range(0) == 1 ? WriteJsonNumber(digits, double{number}) : WriteJsonNumber(digits, number);
    text.append(digits, last).append(",");
  }
  text.append(kNumberPadding, ' ');
  const char* const end = text.data() + text.size() - kNumberPadding;
  for (auto _ : state) {
    double sum = 0;
    for (const char* at = text.data(); at < end; ++at) {
      float number = 0;
      at = kOurs ? ReadJsonNumber(at, number) : std::from_chars(at, end, number).ptr;
      sum += number;
    }
    benchmark::DoNotOptimize(sum);
  }
  state.SetBytesProcessed(state.iterations() * std::ssize(text));
}
BENCHMARK(ReadNumbers<true>)->Name("ReadNumbers/ours")->DenseRange(0, 2);
BENCHMARK(ReadNumbers<false>)->Name("ReadNumbers/standard")->DenseRange(0, 2);

template <bool kOurs>
void WriteNumbers(benchmark::State& state) {
  const std::vector<float> numbers = Numbers(false);
  for (auto _ : state) {
    for (const float number : numbers) {
      char digits[kNumberRoom];
      char* const end =
          kOurs ? WriteJsonNumber(digits, number) : std::to_chars(digits, digits + sizeof digits, number).ptr;
      benchmark::DoNotOptimize(end);
    }
  }
  state.SetItemsProcessed(state.iterations() * std::ssize(numbers));
}
BENCHMARK(WriteNumbers<true>)->Name("WriteNumbers/ours");
BENCHMARK(WriteNumbers<false>)->Name("WriteNumbers/standard");

}  // namespace
}  // namespace weir::oip

BENCHMARK_MAIN();
