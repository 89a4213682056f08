// The parts of a configuration that say how a model is served.
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <string>
#include <utility>

#include "model/config_message.h"

namespace weir::model {
namespace {

// A year: what is longer is a slip of the pen, and would overflow the clock.
constexpr uint64_t kLongestMicroseconds = 365ull * 24 * 3600 * 1'000'000;
constexpr int kMostPriorities = 64;

Result<std::chrono::microseconds> TimeOf(uint64_t microseconds, std::string_view what) {
  if (microseconds <= kLongestMicroseconds)
    return std::chrono::microseconds(static_cast<int64_t>(microseconds));
  return InvalidConfig(fmt::format("{} of {} is longer than a year", what, microseconds));
}

Result<QueuePolicy> PolicyOf(const pb::ModelQueuePolicy& message) {
  QueuePolicy policy;
  if (message.timeout_action() == pb::ModelQueuePolicy::DELAY)
    policy.timeout_action = QueuePolicy::TimeoutAction::kDelay;
  policy.default_timeout =
      TRY(TimeOf(message.default_timeout_microseconds(), "default_timeout_microseconds"));
  policy.allow_timeout_override = message.allow_timeout_override();
  if (message.max_queue_size() > INT_MAX) return InvalidConfig("max_queue_size is too large");
  policy.max_queue_size = static_cast<int>(message.max_queue_size());
  return policy;
}

Status ReadPriorities(const pb::ModelDynamicBatching& message, DynamicBatching& batching) {
  if (message.priority_levels() > kMostPriorities)
    return InvalidConfig(fmt::format("priority_levels is {}; it must be at most {}",
                                     message.priority_levels(), kMostPriorities));
  batching.priority_levels = static_cast<int>(message.priority_levels());
  const uint64_t usual = message.default_priority_level();
  if (usual > message.priority_levels() || (usual == 0 && message.priority_levels() > 0)) {
    return InvalidConfig(fmt::format("default_priority_level is {}; it must be 1 to priority_levels, {}",
                                     usual, message.priority_levels()));
  }
  batching.default_priority_level = static_cast<int>(usual);
  for (const auto& [level, policy] : message.priority_queue_policy()) {
    if (level < 1 || level > message.priority_levels()) {
      return InvalidConfig(fmt::format("priority_queue_policy names level {}; levels are 1 to {}", level,
                                       message.priority_levels()));
    }
    batching.priority_queue_policy[static_cast<int>(level)] =
        TRY_CONTEXT(PolicyOf(policy), fmt::format("priority_queue_policy of level {}", level));
  }
  return {};
}

Result<WarmUpInput> WarmUpInputOf(const pb::ModelWarmup::Input& message, const std::string& what) {
  WarmUpInput input{.dtype = TRY(DTypeOf(message.data_type(), what))};
  for (const int64_t dim : message.dims()) {
    if (dim < 1)
      return InvalidConfig(fmt::format("{} has a dimension of {}; say how large it is", what, dim));
    input.dims.push_back(dim);
  }
  if (const auto elements = infer::ElementCount(input.dims); !elements)
    return Context(what, elements.error());
  switch (message.input_data_type_case()) {
    case pb::ModelWarmup::Input::kZeroData:
      break;
    case pb::ModelWarmup::Input::kRandomData:
      input.random = true;
      break;
    case pb::ModelWarmup::Input::kInputDataFile:
      input.file = message.input_data_file();
      if (input.file.empty()) return InvalidConfig(what + " names no file");
      break;
    default:
      return InvalidConfig(what + " does not say zero_data, random_data or input_data_file");
  }
  return input;
}

}  // namespace

Result<infer::DType> DTypeOf(pb::DataType type, const std::string& what) {
  using infer::DType;
  switch (type) {
    case pb::TYPE_BOOL:
      return DType::kBool;
    case pb::TYPE_UINT8:
      return DType::kUint8;
    case pb::TYPE_UINT16:
      return DType::kUint16;
    case pb::TYPE_UINT32:
      return DType::kUint32;
    case pb::TYPE_UINT64:
      return DType::kUint64;
    case pb::TYPE_INT8:
      return DType::kInt8;
    case pb::TYPE_INT16:
      return DType::kInt16;
    case pb::TYPE_INT32:
      return DType::kInt32;
    case pb::TYPE_INT64:
      return DType::kInt64;
    case pb::TYPE_FP16:
      return DType::kFp16;
    case pb::TYPE_FP32:
      return DType::kFp32;
    case pb::TYPE_FP64:
      return DType::kFp64;
    case pb::TYPE_STRING:
      return DType::kBytes;
    case pb::TYPE_BF16:
      return DType::kBf16;
    default:
      return InvalidConfig(what + " has no data_type");
  }
}

pb::DataType DataTypeOf(infer::DType dtype) {
  for (int type = pb::TYPE_BOOL; type <= pb::TYPE_BF16; ++type) {
    const auto candidate = static_cast<pb::DataType>(type);
    if (const auto read = DTypeOf(candidate, ""); read && *read == dtype) return candidate;
  }
  return pb::TYPE_INVALID;
}

Status ReadDynamicBatching(const pb::ModelConfig& whole, Config& config) {
  if (!whole.has_dynamic_batching()) return {};
  const pb::ModelDynamicBatching& message = whole.dynamic_batching();
  DynamicBatching batching;
  if (whole.has_max_batch_size() && config.max_batch == 0)
    return InvalidConfig("dynamic_batching needs a max_batch_size above 0");
  for (const int size : message.preferred_batch_size()) {
    if (size < 1 || (config.max_batch > 0 && size > config.max_batch)) {
      return InvalidConfig(fmt::format("preferred_batch_size {} is not between 1 and max_batch_size, {}",
                                       size, config.max_batch));
    }
    batching.preferred_batch_sizes.push_back(size);
  }
  std::ranges::sort(batching.preferred_batch_sizes);
  batching.max_queue_delay =
      TRY(TimeOf(message.max_queue_delay_microseconds(), "max_queue_delay_microseconds"));
  TRY_STATUS(ReadPriorities(message, batching));
  if (message.has_default_queue_policy()) {
    batching.default_queue_policy =
        TRY_CONTEXT(PolicyOf(message.default_queue_policy()), "default_queue_policy");
  }
  config.dynamic_batching = std::move(batching);
  return {};
}

Status ReadWarmUps(const pb::ModelConfig& whole, Config& config) {
  constexpr uint32_t kMostRuns = 100'000;
  for (const pb::ModelWarmup& message : whole.model_warmup()) {
    const std::string what = fmt::format("model_warmup \"{}\"", message.name());
    if (message.batch_size() < 1 || message.batch_size() > kMostRuns)
      return InvalidConfig(fmt::format("{} has a batch_size of {}", what, message.batch_size()));
    if (message.batch_size() > static_cast<uint32_t>(std::max(1, config.max_batch)) &&
        whole.has_max_batch_size()) {
      return InvalidConfig(fmt::format("{} has a batch_size of {}, and max_batch_size is {}", what,
                                       message.batch_size(), config.max_batch));
    }
    if (message.count() > kMostRuns)
      return InvalidConfig(fmt::format("{} is to run {} times", what, message.count()));
    WarmUp warm_up{.name = message.name(),
                   .batch_size = static_cast<int>(message.batch_size()),
                   .count = std::max(1, static_cast<int>(message.count()))};
    for (const auto& [name, input] : message.inputs()) {
      warm_up.inputs[name] = TRY(WarmUpInputOf(input, fmt::format("{}: input \"{}\"", what, name)));
    }
    if (warm_up.inputs.empty()) return InvalidConfig(what + " has no inputs");
    config.warm_ups.push_back(std::move(warm_up));
  }
  return {};
}

}  // namespace weir::model
