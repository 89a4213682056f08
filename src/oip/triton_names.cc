#include "oip/triton_names.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/json.h"

namespace weir::oip::triton {
namespace {

Error Invalid(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

// A name that a client gave: in one line, and not as long as a request may be.
std::string Shown(std::string_view name) {
  constexpr size_t kMost = 256;
  return name.size() > kMost ? EscapeBytes(name.substr(0, kMost)) + "..." : EscapeBytes(name);
}

std::string Because(std::string_view why) { return why.empty() ? "" : fmt::format(" ({})", why); }

}  // namespace

std::string RequestPrefix(std::string_view id) {
  return fmt::format("[request id: {}] ", id.empty() ? "<id_unknown>" : Shown(id));
}

Error UnknownModel(std::string_view model) {
  return {ErrorCode::kNotFound, fmt::format("Request for unknown model: '{}' is not found", Shown(model))};
}

Error NoVersions(std::string_view model, std::string_view why) {
  return {ErrorCode::kNotFound, fmt::format("Request for unknown model: '{}' has no available versions{}",
                                            Shown(model), Because(why))};
}

Error UnknownVersion(std::string_view model, std::string_view version) {
  return {ErrorCode::kNotFound, fmt::format("Request for unknown model: '{}' version {} is not found",
                                            Shown(model), Shown(version))};
}

Error VersionNotReady(std::string_view model, std::string_view version, std::string_view why) {
  return {ErrorCode::kOverloaded,
          fmt::format("Request for unknown model: '{}' version {} is not at ready state{}", Shown(model),
                      Shown(version), Because(why))};
}

Status CheckVersion(std::string_view version) {
  if (version.empty()) return {};
  int64_t number = 0;
  const auto [end, error] = std::from_chars(version.begin(), version.end(), number);
  if (error == std::errc() && end == version.end() && number >= 0) return {};
  if (error == std::errc() && end == version.end()) {
    return std::unexpected(Invalid(fmt::format(
        "invalid model version specified '{}' , version should be an integral value > 0", Shown(version))));
  }
  return std::unexpected(Invalid(fmt::format(
      "failed to get model version from specified version string '{}' (details: {}), "
      "version should be an integral value > 0",
      Shown(version), error == std::errc::result_out_of_range ? "out of range" : "not a number")));
}

Error FailedToLoad(std::string_view model, const Error& why) {
  // Triton reads the whole model folder first, and compares it with the configuration then.
  const bool read = why.code != ErrorCode::kNotFound && why.code != ErrorCode::kInvalidArgument &&
                    why.code != ErrorCode::kUnsupported && why.code != ErrorCode::kCorrupt;
  return {ErrorCode::kInternal,
          fmt::format("failed to load '{}', {}{}", Shown(model),
                      read ? "no version is available" : "failed to poll from model repository",
                      Because(why.message))};
}

Error ControlIsOff(std::string_view why) {
  return {ErrorCode::kOverloaded,
          "explicit model load / unload is not allowed if polling is enabled" + Because(why)};
}

Error UnexpectedInput(std::string_view model, std::string_view input) {
  return Invalid(fmt::format("unexpected inference input '{}' for model '{}'", Shown(input), Shown(model)));
}

Error UnexpectedOutput(std::string_view model, std::string_view output) {
  return Invalid(fmt::format("unexpected inference output '{}' for model '{}'", Shown(output), Shown(model)));
}

Error MissingInput(std::string_view id, std::string_view model, size_t wanted, size_t given,
                   std::string_view missing) {
  return Invalid(
      fmt::format("{}expected {} inputs but got {} inputs for model '{}'. Missing required input(s) ['{}']. "
                  "Please provide all required input(s).",
                  RequestPrefix(id), wanted, given, Shown(model), Shown(missing)));
}

Error WrongType(std::string_view id, std::string_view model, std::string_view input, infer::DType given,
                infer::DType wanted) {
  return Invalid(fmt::format("{}inference input '{}' data-type is '{}', but model '{}' expects '{}'",
                             RequestPrefix(id), Shown(input), infer::ToString(given), Shown(model),
                             infer::ToString(wanted)));
}

Error WrongShape(std::string_view id, std::string_view model, std::string_view input,
                 const infer::Shape& given, const infer::Shape& wanted) {
  return Invalid(fmt::format("{}unexpected shape for input '{}' for model '{}'. Expected {}, got {}. ",
                             RequestPrefix(id), Shown(input), Shown(model), infer::ToString(wanted),
                             infer::ToString(given)));
}

Error UnequalBatch(std::string_view id, std::string_view model, std::string_view input) {
  return Invalid(fmt::format("{}input '{}' batch size does not match other inputs for '{}'",
                             RequestPrefix(id), Shown(input), Shown(model)));
}

Error LargeBatch(std::string_view id, std::string_view model, int max_batch) {
  return Invalid(fmt::format("{}inference request batch-size must be <= {} for '{}'", RequestPrefix(id),
                             max_batch, Shown(model)));
}

Error QueueIsFull(std::string_view id, std::string_view why) {
  return {ErrorCode::kOverloaded, RequestPrefix(id) + "Exceeds maximum queue size" + Because(why)};
}

Error TimedOut(std::string_view id, std::string_view why) {
  return {ErrorCode::kDeadline, RequestPrefix(id) + "Request timeout expired" + Because(why)};
}

Error UnknownRegion(std::string_view region) {
  return {ErrorCode::kNotFound, fmt::format("Unable to find shared memory region: '{}'", Shown(region))};
}

Error UnknownRegion(std::string_view kind, std::string_view region) {
  return {ErrorCode::kNotFound,
          fmt::format("Unable to find {} shared memory region: '{}'", kind, Shown(region))};
}

Error RegionExists(std::string_view region) {
  return Invalid(fmt::format("shared memory region '{}' already in manager", Shown(region)));
}

Error NoGpu(std::string_view region) {
  return Invalid(
      fmt::format("failed to register CUDA shared memory region: '{}', GPUs not supported", Shown(region)));
}

}  // namespace weir::oip::triton
