// The message of a configuration, for the files that read and write it.
#pragma once

#include <string>
#include <utility>

#include "base/error.h"
#include "model/config.h"
#include "model/model_config.pb.h"

namespace weir::model {

namespace pb = config;

// kInvalidArgument names `what` that has no data type.
Result<infer::DType> DTypeOf(pb::DataType type, const std::string& what);
pb::DataType DataTypeOf(infer::DType dtype);

// Fills `config` from the parts of `message` that say how calls wait and how the model is warmed up.
Status ReadDynamicBatching(const pb::ModelConfig& message, Config& config);
Status ReadWarmUps(const pb::ModelConfig& message, Config& config);
// The parameters "device" and "streams" of its instance groups, where the parameters do not say them.
Status ReadInstanceGroups(const pb::ModelConfig& message, Config& config);

inline std::unexpected<Error> InvalidConfig(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

}  // namespace weir::model
