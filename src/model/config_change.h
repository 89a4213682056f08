// A configuration with other settings of how a model is served.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/error.h"
#include "model/config.h"

namespace weir::model {

struct ConfigChange {
  // "engine", "device", "precision", "streams" ...; put over those that are there, an empty value takes
  // one away. "streams" also takes an instance_group away, which says the same.
  std::map<std::string, std::string> parameters;
  std::optional<int> max_batch_size;  // of requests
  struct Batching {
    bool on = true;
    int64_t max_queue_delay_us = 0;
  };
  std::optional<Batching> dynamic_batching;  // off, or on with that delay and nothing else
};

// The text of config.pbtxt. `config` may be empty: then of the changes alone.
std::string ChangeConfig(const Config& config, const ConfigChange& change);

}  // namespace weir::model
