// The small JSON bodies that change or list what a server serves, and the configuration in one of them.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "model/config.h"
#include "oip/http/control_json.h"
#include "oip/repository_rules.h"

using namespace weir;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto ready = oip::ParseIndexBody(body);
  const Status unload = oip::ParseUnloadBody(body);
  const auto region = oip::ParseRegionBody("r", body);
  const auto cuda = oip::ParseCudaRegionBody("r", body);
  if (size > oip::kMostControlBytes) CHECK(!ready && !unload && !region && !cuda);
  if (const auto config = oip::ParseLoadBody(body)) (void)model::ParseConfigJson(*config);
  (void)model::ParseConfigJson(body);
  return 0;
}
