// Any bytes as config.pbtxt: read or refused, and what is read makes sense.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "model/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto config = weir::model::ParseConfig({reinterpret_cast<const char*>(data), size});
  if (!config) {
    CHECK(!config.error().message.empty());
    return 0;
  }
  CHECK(config->max_batch >= 0);
  CHECK(config->model_file.find('/') == std::string_view::npos);
  for (const auto* list : {&config->inputs, &config->outputs}) {
    for (const auto& tensor : *list) {
      CHECK(!tensor.info.name.empty());
      CHECK(config->max_batch == 0 || tensor.info.shape.at(0) == -1);
      for (const int64_t dim : tensor.info.shape) CHECK(dim == -1 || dim >= 1);
    }
  }
  return 0;
}
