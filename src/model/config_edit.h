// Edits the config.pbtxt of any server as text: what this program does not know of stays as it is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "model/config_change.h"

namespace weir::model {

struct ConfigEdit {
  std::optional<int> instances;       // the count of the only instance_group; made where there is none
  std::optional<int> max_batch_size;  // of requests
  std::optional<ConfigChange::Batching> dynamic_batching;  // off, or on with that delay and nothing else
};

// Returns the text with those fields changed. kInvalidArgument with the line for a text that is not protobuf
// text; kUnsupported for instances where there are several instance groups.
Result<std::string> EditConfig(std::string_view text, const ConfigEdit& edit);

}  // namespace weir::model
