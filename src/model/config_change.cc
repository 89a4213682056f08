#include "model/config_change.h"

#include <google/protobuf/text_format.h>

#include "model/config_message.h"

namespace weir::model {

std::string ChangeConfig(const Config& config, const ConfigChange& change) {
  pb::ModelConfig message;
  CHECK(message.ParseFromString(config.message));  // as ParseConfig made it
  for (const auto& [key, value] : change.parameters) {
    if (key == "streams") message.clear_instance_group();
    if (value.empty())
      message.mutable_parameters()->erase(key);
    else
      (*message.mutable_parameters())[key].set_string_value(value);
  }
  if (change.max_batch_size) message.set_max_batch_size(*change.max_batch_size);
  if (const auto& batching = change.dynamic_batching) {
    message.clear_dynamic_batching();
    if (batching->on)
      message.mutable_dynamic_batching()->set_max_queue_delay_microseconds(
          static_cast<uint64_t>(batching->max_queue_delay_us));
  }
  std::string text;
  CHECK(google::protobuf::TextFormat::PrintToString(message, &text));
  return text;
}

}  // namespace weir::model
