#include "infer/engines/emulated_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "base/duration.h"

namespace weir::infer {
namespace {

constexpr std::string_view kSettings = "base, per_item, streams, jitter, batch, seed";
constexpr Duration kLongest = 1000s;

// The readers give false where `text` is not what they take.
bool Read(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && std::isfinite(value);
}

bool ReadInteger(std::string_view text, uint64_t low, uint64_t high, uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value >= low && value <= high;
}

bool ReadDuration(std::string_view text, Duration& value) {
  const auto read = ParseDuration(text, kLongest);
  if (read) value = *read;
  return read.has_value();
}

// Describes the allowed values if `value` is not one; empty if it was taken; kUnknown if there is no such
// setting.
constexpr std::string_view kUnknown = "?";
std::string_view Apply(std::string_view key, std::string_view value, EmulatedOptions& options) {
  constexpr std::string_view kTime = "a time such as 250us, 1.9ms or 2s, at most 1000s";
  BusySchedule::Options& timing = options.timing;
  uint64_t number = 0;
  if (key == "base") return ReadDuration(value, timing.base) ? "" : kTime;
  if (key == "per_item") return ReadDuration(value, timing.per_item) ? "" : kTime;
  if (key == "streams") {
    if (!ReadInteger(value, 1, 1024, number)) return "a whole number from 1 to 1024";
    timing.streams = static_cast<int>(number);
    return "";
  }
  if (key == "batch") {
    if (!ReadInteger(value, 1, 1 << 20, number)) return "a whole number of items from 1 to 1048576";
    options.max_batch = static_cast<int64_t>(number);
    return "";
  }
  if (key == "seed") {
    if (!ReadInteger(value, 0, UINT64_MAX, number)) return "a whole number";
    timing.seed = Seed(number);
    return "";
  }
  if (key == "jitter") {
    const bool good = Read(value, timing.jitter) && timing.jitter >= 0 && timing.jitter < 1;
    return good ? "" : "a share of the cost, from 0 to below 1";
  }
  return kUnknown;
}

}  // namespace

Result<EmulatedOptions> ParseEmulatedOptions(std::string_view settings) {
  EmulatedOptions options;
  std::set<std::string_view> seen;
  while (!settings.empty()) {
    const std::string_view setting = settings.substr(0, settings.find(','));
    settings.remove_prefix(std::min(setting.size() + 1, settings.size()));
    const size_t equals = std::min(setting.find('='), setting.size());
    const std::string_view key = setting.substr(0, equals);
    const std::string_view value = setting.substr(std::min(equals + 1, setting.size()));
    const std::string_view wanted = Apply(key, value, options);
    if (wanted == kUnknown) {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("the emulated engine has no setting '{}': its settings are {}", key, kSettings));
    }
    if (!wanted.empty()) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("emulated: {} is '{}': give {}", key, value, wanted));
    }
    if (!seen.insert(key).second) {
      return Fail(ErrorCode::kInvalidArgument, fmt::format("emulated: {} is given twice", key));
    }
  }
  return options;
}

}  // namespace weir::infer
