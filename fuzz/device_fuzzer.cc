// Devices: any text is a list of devices or a refusal, and what was accepted comes back from its own text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "infer/device.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir;
  const auto devices = infer::ParseDevices({reinterpret_cast<const char*>(data), size});
  if (!devices) return 0;
  const auto again = infer::ParseDevices(infer::ToString(*devices));
  CHECK(again && *again == *devices);
  return 0;
}
