#include "model/folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>

#include "base/file.h"

namespace weir::model {
namespace {

namespace fs = std::filesystem;

// Of a version folder's name; absent for other names. As in Triton, "01" is none.
std::optional<int64_t> VersionOf(const std::string& name) {
  int64_t version = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), version);
  const bool whole = error == std::errc() && end == name.data() + name.size();
  return whole && version > 0 && !name.starts_with('0') ? std::optional(version) : std::nullopt;
}

// The highest version that may be used.
Result<std::optional<int64_t>> NewestVersion(const std::string& folder, const std::vector<int64_t>& allowed) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error) return FailErrno(folder, error.value());
  std::optional<int64_t> newest;
  for (; entries != fs::directory_iterator(); entries.increment(error)) {
    if (error) return FailErrno(folder, error.value());
    const auto version = VersionOf(entries->path().filename().string());
    const bool usable = version && (allowed.empty() || std::ranges::find(allowed, *version) != allowed.end());
    std::error_code ignored;
    if (usable && entries->is_directory(ignored)) newest = std::max(newest, version);
  }
  return newest;
}

Result<std::optional<Config>> ReadConfig(const Folder& folder) {
  const std::string path = TRY(PartOf(folder, "config.pbtxt"));
  if (path.empty()) return std::nullopt;
  const std::string text = TRY(ReadTextFile(path));
  Config config = TRY_CONTEXT(ParseConfig(text), path);
  if (!config.name.empty() && config.name != folder.name) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "{}: the name is \"{}\", but the folder is \"{}\"; they must agree, or leave the name out", path,
            config.name, folder.name));
  }
  return config;
}

}  // namespace

Result<std::string> PartOf(const Folder& folder, const std::string& name) {
  const fs::path wanted = fs::path(folder.path) / name;
  std::error_code error;
  if (fs::symlink_status(wanted, error).type() == fs::file_type::not_found) return std::string();
  const fs::path real = fs::canonical(wanted, error);
  if (error) return FailErrno(wanted.string(), error.value());
  const fs::path inside = real.lexically_relative(folder.path);
  if (inside.empty() || *inside.begin() == "..") {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: refused: it lies outside the model's folder; a model brings its own files",
                            wanted.string()));
  }
  return real.string();
}

Result<Folder> OpenFolder(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return FailErrno(path, error.value());
  // By the name that it was called, but for "." and the like.
  const fs::path called = fs::path(path).lexically_normal();
  const fs::path named = called.has_filename() ? called.filename() : called.parent_path().filename();
  const bool has_name = !named.empty() && named != "." && named != "..";
  Folder folder{.name = (has_name ? named : real.filename()).string(), .path = real.string()};
  folder.config = TRY(ReadConfig(folder));
  const Config defaults, &config = folder.config ? *folder.config : defaults;

  const std::optional<int64_t> version = TRY(NewestVersion(folder.path, config.versions));
  if (version) {
    folder.version = fmt::format("{}", *version);
    folder.model = TRY(PartOf(folder, folder.version + "/" + config.model_file));
  }
  if (!folder.model.empty() || config.backend == "emulated") return folder;
  const std::string wanted = fmt::format("{}/{}/{}", path, version.value_or(1), config.model_file);
  return Fail(
      ErrorCode::kNotFound,
      fmt::format("{}: no such file; a model folder holds its model as NAME/VERSION/model.onnx", wanted));
}

}  // namespace weir::model
