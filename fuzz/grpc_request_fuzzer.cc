// Any bytes as an inference.ModelInferRequest, cut anywhere: read the same as in one piece, and as protobuf's
// own classes read them. The first byte seeds the cuts.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/seed.h"
#include "base/utf8.h"
#include "oip/grpc/codec.h"
#include "oip/infer_rules.h"
#include "oip/oip.pb.h"
#include "oip/testing/random_calls.h"

namespace {

using namespace weir;  // NOLINT: a program of one file

void CheckSame(const Result<oip::InferRequest>& a, const Result<oip::InferRequest>& b) {
  CHECK(a.has_value() == b.has_value());
  if (!a) {
    CHECK(a.error() == b.error());
    return;
  }
  CHECK(a->request.inputs.size() == b->request.inputs.size());
  for (size_t i = 0; i < a->request.inputs.size(); ++i) {
    CHECK(a->request.inputs[i].data.text() == b->request.inputs[i].data.text());
  }
}

void CheckAgainst(const inference::ModelInferRequest& message, const oip::InferRequest& read) {
  CHECK(read.request.model == message.model_name() && read.request.version == message.model_version());
  CHECK(read.request.id == message.id());
  CHECK(static_cast<int>(read.request.inputs.size()) == message.inputs_size());
  CHECK(static_cast<int>(read.outputs.size()) == message.outputs_size());
  int raw = 0;
  for (int i = 0; i < message.inputs_size(); ++i) {
    const auto& input = message.inputs(i);
    const infer::Tensor& tensor = read.request.inputs[static_cast<size_t>(i)];
    CHECK(tensor.name == input.name() && infer::ToString(tensor.dtype) == input.datatype());
    CHECK((tensor.shape == infer::Shape(input.shape().begin(), input.shape().end())));
    if (read.input_regions[static_cast<size_t>(i)]) continue;
    CHECK(oip::CheckData(tensor));
    if (!input.has_contents() && message.raw_input_contents_size() > 0) {
      CHECK(tensor.data.text() == message.raw_input_contents(raw++));
    }
    if (tensor.dtype == infer::DType::kFp32 && input.has_contents()) {
      const auto& numbers = input.contents().fp32_contents();
      CHECK((tensor.data.text() == std::string_view(reinterpret_cast<const char*>(numbers.data()),
                                                    sizeof(float) * static_cast<size_t>(numbers.size()))));
    }
  }
  for (int i = 0; i < message.outputs_size(); ++i)
    CHECK(read.request.outputs[i] == message.outputs(i).name());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  Random random = Seed(data[0]).MakeRandom();
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto whole = oip::ParseGrpcRequest(std::vector{Bytes::Copy(text)});
  CheckSame(whole, oip::ParseGrpcRequest(oip::testing::Cut(text, random)));

  inference::ModelInferRequest message;
  const bool is_message = message.ParseFromArray(text.data(), static_cast<int>(text.size()));
  if (whole) {
    CHECK(is_message);
    CheckAgainst(message, *whole);
    // Our client sends it on; the classes read that, too.
    CHECK(message.ParseFromString(oip::testing::Join(oip::WriteGrpcRequest(whole->request))));
  } else {
    const std::string& why = whole.error().message;
    CHECK(IsUtf8(why) && !why.empty() && why.size() < 4096);
    if (is_message) CHECK(why.find("no protobuf") == why.npos);
  }
  return 0;
}
