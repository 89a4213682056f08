// Any bytes as the body of an inference request over HTTP: read or refused in words that are safe to show;
// what is read is whole, is JSON to a slow reader too, and can be sent on. The first two bytes are the length
// of the JSON; 0xffff stands for no such header.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/json.h"
#include "base/utf8.h"
#include "oip/http/codec.h"
#include "oip/infer_rules.h"

namespace {

using namespace weir;  // NOLINT: a program of one file

void CheckRefusal(const Error& error) {
  CHECK(error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kUnsupported);
  CHECK(!error.message.empty() && error.message.size() < 4096 && IsUtf8(error.message));
  for (const char c : error.message) CHECK(static_cast<unsigned char>(c) >= 0x20);
}

void CheckRequest(const oip::InferRequest& request) {
  CHECK(request.request.inputs.size() == request.input_regions.size());
  CHECK(request.request.outputs.size() == request.outputs.size());
  for (size_t i = 0; i < request.request.inputs.size(); ++i) {
    const infer::Tensor& input = request.request.inputs[i];
    CHECK(!input.name.empty() && IsUtf8(input.name));
    if (!request.input_regions[i]) CHECK(oip::CheckData(input));
  }
}

// Our client sends what was read; our server reads the same.
void CheckSentOn(const infer::Request& request) {
  const oip::HttpBody body = oip::WriteHttpRequest(request);
  std::string text;
  for (const Bytes& part : body.parts) text += part.text();
  const auto again = oip::ParseHttpRequest(Bytes::Copy(text), body.header_length);
  CHECK(again && again->request.inputs.size() == request.inputs.size());
  CHECK(again->request.id == request.id && again->request.outputs == request.outputs);
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const infer::Tensor &sent = request.inputs[i], &read = again->request.inputs[i];
    CHECK(read.name == sent.name && read.dtype == sent.dtype && read.shape == sent.shape);
    CHECK(read.data.text() == sent.data.text());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const unsigned length = data[0] | data[1] << 8;
  const Bytes body = Bytes::Copy({reinterpret_cast<const char*>(data) + 2, size - 2});
  const bool all_json = length == 0xffff;
  const auto request = oip::ParseHttpRequest(body, all_json ? std::nullopt : std::optional<uint64_t>(length));
  if (!request) {
    CheckRefusal(request.error());
    return 0;
  }
  CheckRequest(*request);
  const std::string_view text = body.text().substr(0, all_json ? body.size() : length);
  const bool extended = text.find("NaN") != text.npos || text.find("Inf") != text.npos;  // no JSON, strictly
  if (!extended) CHECK(ParseJson(text));
  bool in_regions = false;
  for (const auto& region : request->input_regions) in_regions |= region.has_value();
  if (!in_regions) CheckSentOn(request->request);
  return 0;
}
