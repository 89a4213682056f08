// A line of the journal beside an unfinished set: what was accepted comes back from its own text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "prepare/checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir;
  const Result<Json> json = ParseJson({reinterpret_cast<const char*>(data), size});
  if (!json) return 0;
  if (const auto checkpoint = prepare::Checkpoint::FromJson(*json)) {
    const Json again = checkpoint->ToJson();
    CHECK(prepare::Checkpoint::FromJson(again).value() == *checkpoint);
  }
  return 0;
}
