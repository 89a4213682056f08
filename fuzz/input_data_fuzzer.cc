// Input data: any bytes are requests or a refusal, and every tensor has the data that its shape says. The
// first byte tells the model's batching, the batch and whether --shape was said.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "load/inputs/input_data.h"

namespace {

using namespace weir;

infer::ModelInfo MakeModel(bool batches) {
  infer::ModelInfo model{.name = "m", .max_batch = batches ? 8 : 0};
  const auto add = [&](std::vector<infer::TensorInfo>& to, const char* name, infer::DType dtype,
                       infer::Shape shape) {
    if (batches) shape.insert(shape.begin(), -1);
    to.push_back({.name = name, .dtype = dtype, .shape = std::move(shape)});
  };
  add(model.inputs, "F", infer::DType::kFp32, {-1, 2});
  add(model.inputs, "H", infer::DType::kFp16, {2});
  add(model.inputs, "I", infer::DType::kInt8, {-1});
  add(model.inputs, "T", infer::DType::kBytes, {-1});
  add(model.outputs, "B", infer::DType::kBool, {2});
  add(model.outputs, "T", infer::DType::kBytes, {-1, -1});
  return model;
}

void CheckTensor(const infer::Tensor& tensor) {
  auto count = infer::ElementCount(tensor.shape).value();
  if (tensor.dtype != infer::DType::kBytes) {
    CHECK(tensor.data.size() == static_cast<size_t>(count) * infer::ByteSize(tensor.dtype));
    return;
  }
  auto rest = tensor.data.span();
  for (; count > 0; --count) {
    uint32_t length = 0;
    CHECK(rest.size() >= sizeof length);
    std::memcpy(&length, rest.data(), sizeof length);
    CHECK(rest.size() - sizeof length >= length);
    rest = rest.subspan(sizeof length + length);
  }
  CHECK(rest.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const bool batches = (data[0] & 1) != 0;
  const infer::ModelInfo model = MakeModel(batches);
  load::RequestOptions options{.batch = batches ? 1 + (data[0] >> 1) % 8 : 1};
  if ((data[0] & 0x80) != 0) options.shapes["F"] = {2, 2};
  const std::string_view json(reinterpret_cast<const char*>(data + 1), size - 1);
  const Result<load::InputData> read = load::ReadInputData(json, model, "", options);
  if (!read) return 0;
  CHECK(!read->requests.empty());
  CHECK(read->expected.empty() || read->expected.size() == read->requests.size());
  for (const infer::Request& request : read->requests) {
    CHECK(request.inputs.size() == model.inputs.size());
    for (const infer::Tensor& tensor : request.inputs) CheckTensor(tensor);
  }
  for (const auto& outputs : read->expected)
    for (const infer::Tensor& tensor : outputs) CheckTensor(tensor);
  return 0;
}
