#include "serve/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"

namespace weir::serve {
namespace {

namespace fs = std::filesystem;

std::string NameOf(const fs::path& path) {
  const fs::path called = path.lexically_normal();
  const fs::path name = called.has_filename() ? called.filename() : called.parent_path().filename();
  return name.extension() == ".onnx" ? name.stem().string() : name.string();
}

// It holds what only a model folder has: a configuration, or a version.
bool IsModelFolder(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder / "config.pbtxt", ignored)) return true;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool number =
        name.front() != '0' && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
    if (number && entry.is_directory(ignored)) return true;
  }
  return false;
}

// Data that lies beside the models.
bool IsPictureSet(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "set.json", ignored);
}

Status Add(const fs::path& path, const std::string& bytes, std::map<std::string, std::string>& models) {
  const std::string name = IsUtf8(bytes) ? bytes : EscapeBytes(bytes);
  const auto [at, is_new] = models.emplace(name, path.string());
  if (is_new) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("model \"{}\" is there twice: {} and {}", name, at->second, path.string()));
}

}  // namespace

bool IsPlainName(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos && name.size() <= 255;
}

Status CheckPlace(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_symlink(fs::symlink_status(path, ignored)) || fs::exists(path, ignored)) return {};
  return Fail(ErrorCode::kNotFound, fmt::format("{} is a link to {}, which is not there: mend or remove it",
                                                path, fs::read_symlink(path, ignored).string()));
}

bool HasRecipe(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return fs::exists(fs::path(path) / "recipe.yaml", ignored);
  return fs::exists(fs::path(path).replace_extension(".recipe.yaml"), ignored);
}

Result<Catalogue> Catalogue::Open(std::vector<std::string> places) {
  if (places.empty()) return Fail(ErrorCode::kInvalidArgument, "no model repository is given");
  for (std::string& place : places) {
    std::error_code error;
    if (!fs::exists(place, error))
      return Fail(ErrorCode::kNotFound, fmt::format("model repository {}: no such file or folder", place));
    // "." has no name of its own.
    if (!IsPlainName(NameOf(place))) place = fs::canonical(place, error).string();
    if (error) return FailErrno("model repository " + place, error.value());
    place = fs::absolute(place, error).lexically_normal().string();
    if (error) return FailErrno("model repository " + place, error.value());
  }
  Catalogue catalogue(std::move(places));
  TRY_STATUS(catalogue.List());
  return catalogue;
}

Result<std::map<std::string, std::string>> Catalogue::List() const {
  std::map<std::string, std::string> models;
  for (const std::string& place : places_) {
    std::error_code error;
    if (!fs::exists(fs::symlink_status(place, error)))
      return Fail(ErrorCode::kNotFound, fmt::format("model repository {}: no such file or folder", place));
    if (!fs::is_directory(place, error) || IsModelFolder(place)) {
      TRY_STATUS(Add(place, NameOf(place), models));
      continue;
    }
    fs::directory_iterator entries(place, error);
    if (error) return FailErrno("model repository " + place, error.value());
    for (; entries != fs::directory_iterator(); entries.increment(error)) {
      if (error) return FailErrno("model repository " + place, error.value());
      const std::string name = entries->path().filename().string();
      std::error_code ignored;
      const bool is_model = entries->is_directory(ignored) || !CheckPlace(entries->path().string());
      if (!IsPlainName(name) || !is_model || IsPictureSet(entries->path())) continue;
      TRY_STATUS(Add(entries->path(), name, models));
    }
  }
  return models;
}

}  // namespace weir::serve
