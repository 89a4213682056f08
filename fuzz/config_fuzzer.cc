// Any bytes as config.pbtxt: read or refused, and what is read makes sense. An edited text can be edited
// again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "model/config.h"
#include "model/config_edit.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const weir::model::ConfigEdit edit{.instances = 2, .max_batch_size = 8, .dynamic_batching = {{}}};
  if (const auto edited = weir::model::EditConfig(text, edit)) {
    CHECK(edited->find("max_batch_size: 8") != std::string_view::npos);
    CHECK(weir::model::EditConfig(*edited, edit));
  }
  const auto config = weir::model::ParseConfig(text);
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
