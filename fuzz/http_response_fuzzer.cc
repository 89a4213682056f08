// Any bytes as a server's answer over HTTP: read or refused, and what is read can be written and read again.
// The first two bytes are the length of the JSON; 0xffff stands for no such header.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "oip/http/codec.h"
#include "oip/infer_rules.h"

using namespace weir;  // NOLINT: a program of one file

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const unsigned length = data[0] | data[1] << 8;
  const Bytes body = Bytes::Copy({reinterpret_cast<const char*>(data) + 2, size - 2});
  const auto response =
      oip::ParseHttpResponse(body, length == 0xffff ? std::nullopt : std::optional<uint64_t>(length));
  if (!response) {
    CHECK(!response.error().message.empty());
    return 0;
  }
  const auto head =
      oip::ParseHttpResponse(body, length == 0xffff ? std::nullopt : std::optional<uint64_t>(length),
                             infer::RequestForm::Outputs::kPassOver);
  CHECK(head && head->outputs.empty() && head->durations == response->durations);
  for (const infer::Tensor& output : response->outputs) {
    if (!oip::CheckData(output)) return 0;  // it lies in a region
  }
  for (const bool binary : {true, false}) {
    const auto written = oip::WriteHttpResponse(*response, {.outputs = {}, .binary_by_default = binary});
    CHECK(written || !binary);
    if (!written) continue;  // no JSON form
    std::string text;
    for (const Bytes& part : written->parts) text += part.text();
    const auto again = oip::ParseHttpResponse(Bytes::Copy(text), written->header_length);
    CHECK(again && again->outputs.size() == response->outputs.size());
    CHECK(again->durations == response->durations);
    for (size_t i = 0; i < again->outputs.size(); ++i) {
      const infer::Tensor &sent = response->outputs[i], &read = again->outputs[i];
      CHECK(read.name == sent.name && read.dtype == sent.dtype && read.shape == sent.shape);
      if (binary) CHECK(read.data.text() == sent.data.text());
    }
  }
  return 0;
}
