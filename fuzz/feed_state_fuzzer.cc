#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "feed/state.h"

// A state that is read is written as it was.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto state = weir::feed::ParseState({reinterpret_cast<const char*>(data), size});
  if (!state) return 0;
  const auto again = weir::feed::ParseState(weir::feed::FormatState(*state));
  CHECK(again.has_value() && *again == *state);
  return 0;
}
