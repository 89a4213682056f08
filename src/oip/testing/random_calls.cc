#include "oip/testing/random_calls.h"

#include <fmt/format.h>

#include <cstring>
#include <span>

namespace weir::oip::testing {
namespace {

constexpr int kTypes = static_cast<int>(infer::DType::kBytes) + 1;

bool Chance(Random& random, double share) { return random.Uniform() < share; }

std::string RandomText(Random& random, int longest) {
  static constexpr std::string_view kParts[] = {
      "a", "B", "7", "_", " ", "\"", "\\", "/", "\n", "\xC3\xA9", "\xF0\x9F\x90\x9F"};
  std::string text;
  for (int64_t left = random.Integer(0, longest); left > 0; --left) {
    text += kParts[random.Integer(0, std::ssize(kParts) - 1)];
  }
  return text;
}

std::vector<infer::Tensor> RandomTensors(Random& random) {
  std::vector<infer::Tensor> tensors;
  for (int64_t i = random.Integer(1, 4); i > 0; --i) {
    tensors.push_back(RandomTensor(random, fmt::format("{}{}", RandomText(random, 3), i)));
  }
  return tensors;
}

infer::Parameter RandomParameter(Random& random) {
  switch (random.Integer(0, 4)) {
    case 0:
      return Chance(random, 0.5);
    case 1:
      return -random.Integer(1, int64_t{1} << 62);  // those above 0 come back from JSON as this type too
    case 2:
      return (uint64_t{1} << 63) + random.Next() / 2;
    case 3:
      return random.Normal() * 1e10 + 0.5;
    default:
      return RandomText(random, 20);
  }
}

}  // namespace

infer::Tensor RandomTensor(Random& random, std::string name) {
  infer::Tensor tensor{.name = std::move(name),
                       .dtype = static_cast<infer::DType>(random.Integer(0, kTypes - 1)),
                       .shape = {},
                       .data = {}};
  for (int64_t rank = random.Integer(0, 4); rank > 0; --rank) {
    tensor.shape.push_back(Chance(random, 0.1) ? 0 : random.Integer(1, 9));
  }
  const auto count = static_cast<size_t>(infer::ElementCount(tensor.shape).value());
  std::string data;
  if (tensor.dtype == infer::DType::kBytes) {
    for (size_t i = 0; i < count; ++i) {
      const std::string text = RandomText(random, 12);
      const auto length = static_cast<uint32_t>(text.size());
      data.append(reinterpret_cast<const char*>(&length), sizeof length);
      data += text;
    }
  } else {
    data.resize(count * infer::ByteSize(tensor.dtype));
    const bool is_bool = tensor.dtype == infer::DType::kBool;
    for (char& byte : data) byte = static_cast<char>(random.Integer(0, is_bool ? 1 : 255));
  }
  tensor.data = Bytes::Copy(data);
  return tensor;
}

infer::Request RandomRequest(Random& random) {
  infer::Request request{.model = RandomText(random, 6), .version = RandomText(random, 2)};
  if (Chance(random, 0.5)) request.id = RandomText(random, 10);
  request.inputs = RandomTensors(random);
  for (int64_t i = random.Integer(0, 3); i > 0; --i) request.outputs.push_back(fmt::format("out{}", i));
  if (Chance(random, 0.3)) request.priority = static_cast<int>(random.Integer(1, 100));
  request.durations = Chance(random, 0.3);
  for (int64_t i = random.Integer(0, 3); i > 0; --i) {
    request.parameters[fmt::format("p{}{}", i, RandomText(random, 3))] = RandomParameter(random);
  }
  return request;
}

infer::Response RandomResponse(Random& random) {
  infer::Response response{.model = RandomText(random, 6),
                           .version = RandomText(random, 2),
                           .id = RandomText(random, 10),
                           .outputs = RandomTensors(random)};
  if (Chance(random, 0.3)) {
    const auto some = [&] { return Duration(random.Integer(0, int64_t{1} << random.Integer(0, 50))); };
    response.durations = infer::ServerDurations{.receive = some(),
                                                .queue = some(),
                                                .compute_input = some(),
                                                .compute_infer = some(),
                                                .compute_output = some(),
                                                .rest = -some()};
  }
  return response;
}

std::vector<Bytes> Cut(std::string_view message, Random& random) {
  std::vector<Bytes> pieces;
  const int64_t longest = int64_t{1} << random.Integer(0, 14);
  while (!message.empty()) {
    const auto size = static_cast<size_t>(
        std::min<int64_t>(random.Integer(0, longest), static_cast<int64_t>(message.size())));
    pieces.push_back(Bytes::Copy(message.substr(0, size)));
    message.remove_prefix(size);
  }
  return pieces;
}

std::string Join(const std::vector<Bytes>& pieces) {
  std::string whole;
  for (const Bytes& piece : pieces) whole += piece.text();
  return whole;
}

infer::Tensor BytesTensor(std::string name, const std::vector<std::string>& elements) {
  std::string data;
  for (const std::string& element : elements) {
    const auto length = static_cast<uint32_t>(element.size());
    data.append(reinterpret_cast<const char*>(&length), sizeof length);
    data += element;
  }
  return {.name = std::move(name),
          .dtype = infer::DType::kBytes,
          .shape = {static_cast<int64_t>(elements.size())},
          .data = Bytes::Copy(data)};
}

std::string Describe(const infer::Tensor& tensor) {
  std::string text =
      fmt::format("{} {} {}:", tensor.name, infer::ToString(tensor.dtype), infer::ToString(tensor.shape));
  for (const std::byte byte : tensor.data.span()) {
    const auto value = static_cast<unsigned>(byte);
    text += {' ', "0123456789abcdef"[value >> 4], "0123456789abcdef"[value & 15]};
  }
  return text;
}

std::string Describe(const std::vector<infer::Tensor>& tensors) {
  std::string text;
  for (const infer::Tensor& tensor : tensors) text += Describe(tensor) + "\n";
  return text;
}

}  // namespace weir::oip::testing
