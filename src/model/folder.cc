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

// Returns the version in a folder's name; nullopt for other names. As in Triton, "01" is no version.
std::optional<int64_t> VersionOf(const std::string& name) {
  int64_t version = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), version);
  const bool whole = error == std::errc() && end == name.data() + name.size();
  return whole && version > 0 && !name.starts_with('0') ? std::optional(version) : std::nullopt;
}

// All there are, rising.
Result<std::vector<int64_t>> VersionsIn(const std::string& folder) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error) return FailErrno(folder, error.value());
  std::vector<int64_t> versions;
  for (; entries != fs::directory_iterator(); entries.increment(error)) {
    if (error) return FailErrno(folder, error.value());
    const auto version = VersionOf(entries->path().filename().string());
    std::error_code ignored;
    // A link to what is not there is a version, too, so that opening it tells what is wrong.
    const bool dangles = entries->is_symlink(ignored) && !entries->exists(ignored);
    if (version && (entries->is_directory(ignored) || dangles)) versions.push_back(*version);
  }
  std::ranges::sort(versions);
  return versions;
}

// Those of `there`, rising, that `policy` wants.
std::vector<int64_t> Wanted(const VersionPolicy& policy, std::vector<int64_t> there) {
  if (const auto* specific = std::get_if<SpecificVersions>(&policy)) {
    std::vector<int64_t> wanted = specific->versions;
    std::ranges::sort(wanted);
    const auto repeated = std::ranges::unique(wanted);
    wanted.erase(repeated.begin(), repeated.end());
    return wanted;
  }
  if (const auto* latest = std::get_if<LatestVersions>(&policy)) {
    const auto surplus = std::max<ptrdiff_t>(0, std::ssize(there) - latest->count);
    there.erase(there.begin(), there.begin() + surplus);
  }
  return there;
}

// The highest version that may be used.
Result<std::optional<int64_t>> NewestVersion(const std::string& folder, const VersionPolicy& policy) {
  const std::vector<int64_t> there = TRY(VersionsIn(folder));
  const std::vector<int64_t> wanted = Wanted(policy, there);
  const auto newest = std::ranges::find_if(wanted.rbegin(), wanted.rend(), [&](int64_t version) {
    return std::ranges::binary_search(there, version);
  });
  return newest == wanted.rend() ? std::nullopt : std::optional(*newest);
}

Result<std::optional<Config>> ReadConfig(const Folder& folder, const std::string& json) {
  const std::string path = TRY(PartOf(folder, "config.pbtxt"));
  if (path.empty() && json.empty()) return std::nullopt;
  const std::string where = json.empty() ? path : "the configuration given";
  Config config =
      TRY_CONTEXT(json.empty() ? ParseConfig(TRY(ReadTextFile(path))) : ParseConfigJson(json), where);
  if (!config.name.empty() && config.name != folder.name) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "{}: the name is \"{}\", but the folder is \"{}\"; they must agree, or leave the name out", where,
            config.name, folder.name));
  }
  return config;
}

// The folder as it is called, with its configuration.
Result<Folder> Named(const std::string& path, const FolderOptions& options) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return FailErrno(path, error.value());
  // By the name that it was called, but for "." and the like.
  const fs::path called = fs::path(path).lexically_normal();
  const fs::path named = called.has_filename() ? called.filename() : called.parent_path().filename();
  const bool has_name = !named.empty() && named != "." && named != "..";
  Folder folder{.name = (has_name ? named : real.filename()).string(), .path = real.string()};
  folder.roots = options.link_roots;
  folder.config = TRY(ReadConfig(folder, options.config));
  return folder;
}

}  // namespace

// One message for all that leaves the folder, whether or not something lies there: a name in a configuration
// must not find out which files there are.
Result<std::string> PartOf(const Folder& folder, const std::string& name) {
  const auto refuse = [&] {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{}/{}: refused: it leads outside the model's folder; a model brings its own files, or "
                    "links that lead into the repository or below a folder of --allow-link",
                    folder.path, name));
  };
  const auto leaves = [](const fs::path& relative) { return relative.empty() || *relative.begin() == ".."; };
  const auto lies_outside = [&](const fs::path& path) {
    return leaves(path.lexically_relative(folder.path)) &&
           std::ranges::all_of(
               folder.roots, [&](const std::string& root) { return leaves(path.lexically_relative(root)); });
  };
  const fs::path plain = fs::path(name).lexically_normal();
  if (plain.is_absolute() || leaves(plain) || name.find('\0') != std::string::npos) return refuse();
  const fs::path wanted = fs::path(folder.path) / plain;
  std::error_code error;
  const fs::path real = fs::weakly_canonical(wanted, error);
  if (error || lies_outside(real)) return refuse();
  if (fs::exists(wanted, error)) return real.string();
  for (fs::path part = folder.path; const fs::path& step : plain) {
    part /= step;
    if (!fs::is_symlink(fs::symlink_status(part, error)) || fs::exists(part, error)) continue;
    const fs::path target = fs::read_symlink(part, error);
    const fs::path leads_to = fs::weakly_canonical(part.parent_path() / target, error);
    if (error || lies_outside(leads_to)) return refuse();
    return Fail(ErrorCode::kNotFound, fmt::format("{} is a link to {}, which is not there: mend or remove it",
                                                  part.string(), target.string()));
  }
  return std::string();
}

Result<Folder> OpenFolder(const std::string& path, const FolderOptions& options) {
  Folder folder = TRY(Named(path, options));
  const Config defaults, &config = folder.config ? *folder.config : defaults;
  std::optional<int64_t> version;
  if (options.version.empty()) {
    version = TRY(NewestVersion(folder.path, config.versions));
  } else if (const auto asked = VersionOf(options.version)) {
    const std::vector<int64_t> there = TRY(VersionsIn(folder.path));
    if (std::ranges::binary_search(there, *asked)) version = asked;
  }
  if (version) {
    folder.version = fmt::format("{}", *version);
    const std::string name = folder.version + "/" + config.model_file;
    if (!TRY(PartOf(folder, name)).empty()) folder.model = (fs::path(folder.path) / name).string();
  }
  if (!folder.model.empty() || config.backend == "emulated") return folder;
  const std::string wanted =
      version ? fmt::format("{}", *version) : (options.version.empty() ? "1" : options.version);
  return Fail(ErrorCode::kNotFound,
              fmt::format("{}/{}/{}: no such file; a model folder holds its model as NAME/VERSION/model.onnx",
                          folder.path, wanted, config.model_file));
}

Result<std::vector<std::string>> FolderVersions(const std::string& path, const FolderOptions& options) {
  const Folder folder = TRY(Named(path, options));
  const Config defaults, &read = folder.config ? *folder.config : defaults;
  std::vector<std::string> versions;
  for (const int64_t version : Wanted(read.versions, TRY(VersionsIn(folder.path))))
    versions.push_back(fmt::format("{}", version));
  // An emulated model needs no version's folder; of the others OpenFolder tells what is missing.
  if (versions.empty()) versions.emplace_back("1");
  return versions;
}

}  // namespace weir::model
