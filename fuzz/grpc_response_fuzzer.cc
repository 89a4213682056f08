// Any bytes as an inference.ModelInferResponse, cut anywhere: read the same as in one piece and as protobuf's
// own classes read them. The first byte seeds the cuts.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/seed.h"
#include "oip/grpc/codec.h"
#include "oip/oip.pb.h"
#include "oip/testing/random_calls.h"

using namespace weir;  // NOLINT: a program of one file

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  Random random = Seed(data[0]).MakeRandom();
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto whole = oip::ParseGrpcResponse(std::vector{Bytes::Copy(text)});
  const auto cut = oip::ParseGrpcResponse(oip::testing::Cut(text, random));
  CHECK(whole.has_value() == cut.has_value());
  inference::ModelInferResponse message;
  const bool is_message = message.ParseFromArray(text.data(), static_cast<int>(text.size()));
  if (!whole) {
    CHECK(whole.error() == cut.error());
    return 0;
  }
  const auto head =
      oip::ParseGrpcResponse(std::vector{Bytes::Copy(text)}, infer::RequestForm::Outputs::kPassOver);
  CHECK(head && head->outputs.empty() && head->durations == whole->durations);
  CHECK(whole->durations == cut->durations);
  if (!is_message) return 0;  // the fault lies in what a client passes over
  CHECK(whole->model == message.model_name() && whole->id == message.id());
  CHECK(static_cast<int>(whole->outputs.size()) == message.outputs_size());
  for (size_t i = 0; i < whole->outputs.size(); ++i) {
    CHECK(whole->outputs[i].name == message.outputs(static_cast<int>(i)).name());
    CHECK(whole->outputs[i].data.text() == cut->outputs[i].data.text());
  }
  return 0;
}
