#include "trial/places.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "base/json.h"

namespace weir::trial {
namespace {

bool IsAsItStands(const std::string& name) {
  return name.empty() || name.contains("://") || std::filesystem::path(name).is_absolute();
}

}  // namespace

std::string FindBeside(const std::string& name, const std::string& folder) {
  if (IsAsItStands(name) || folder.empty()) return name;
  const std::string beside = (std::filesystem::path(folder) / name).string();
  std::error_code error;
  return std::filesystem::exists(beside, error) ? beside : name;
}

Status CheckIsThere(const std::string& what, const std::string& name, const std::string& folder) {
  std::error_code error;
  if (name.empty() || name.contains("://")) return {};
  if (std::filesystem::exists(FindBeside(name, folder), error)) return {};
  if (IsAsItStands(name))
    return Fail(ErrorCode::kNotFound, fmt::format("{}: {} is not there", what, EscapeBytes(name)));
  return Fail(ErrorCode::kNotFound,
              fmt::format("{}: {} is neither beside the study file ({}) nor in the working folder ({})", what,
                          EscapeBytes(name), EscapeBytes(folder.empty() ? "." : folder),
                          EscapeBytes(std::filesystem::current_path(error).string())));
}

}  // namespace weir::trial
