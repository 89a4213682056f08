// Any bytes as an expression: refused with a position, or worked out to a finite number or none.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "predict/table/expression.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir::predict;
  const auto expression = Expression::Parse({reinterpret_cast<const char*>(data), size});
  if (!expression) {
    CHECK(!expression.error().message.empty());
    return 0;
  }
  const auto value = expression->Evaluate([](std::string_view name) {
    return name.size() % 2 == 0 ? Value{} : Value{.number = static_cast<double>(name.size()), .text = name};
  });
  CHECK(!value || std::isfinite(*value));
  return 0;
}
