#include "oip/repository_rules.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"

namespace weir::oip {
namespace {

std::unexpected<Error> Wrong(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

}  // namespace

Status CheckControlSize(size_t bytes) {
  if (bytes <= kMostControlBytes) return {};
  return Wrong(fmt::format("it has {} bytes, of the {} that are read", bytes, kMostControlBytes));
}

Status CheckRepository(std::string_view name) {
  if (name.empty()) return {};
  return Fail(ErrorCode::kUnsupported,
              fmt::format("there is one repository, without a name; not {}", Quoted(name)));
}

Status SetLoadParameter(std::string_view name, const std::string* text, std::string& config) {
  if (name.starts_with("file:")) {
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("the parameter {}: files are not taken over the wire; put them into the repository",
                    Quoted(name)));
  }
  if (name != "config") return Wrong(fmt::format("unknown parameter {}", Quoted(name)));
  if (text == nullptr) return Wrong("the parameter 'config' is not a string");
  config = *text;
  return {};
}

Status CheckUnloadParameter(std::string_view name, bool is_truth) {
  if (name != "unload_dependents") return Wrong(fmt::format("unknown parameter {}", Quoted(name)));
  if (!is_truth) return Wrong("the parameter 'unload_dependents' is neither true nor false");
  return {};
}

}  // namespace weir::oip
