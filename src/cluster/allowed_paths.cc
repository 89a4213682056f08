#include "cluster/allowed_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/contains.h"
#include "base/text.h"

namespace weir::cluster {
namespace {

namespace fs = std::filesystem;

bool IsUrl(const std::string& place) { return place.contains("://"); }

std::string WithSlash(std::string text) {
  if (!text.ends_with('/')) text += '/';
  return text;
}

// Whether a server could take the URL for one of another place: a key of S3 may have such parts, too.
bool MayLeave(const std::string& url) {
  return url.contains("/../") || url.ends_with("/..") || url.contains('%') || url.contains('\\') ||
         url.contains('?') || url.contains('#');
}

}  // namespace

Result<AllowedPaths> AllowedPaths::Make(const std::vector<std::string>& places) {
  AllowedPaths made;
  for (const std::string& place : places) {
    std::error_code error;
    const fs::path folder = IsUrl(place) ? fs::path() : fs::canonical(place, error);
    if (!IsUrl(place) && (error || !fs::is_directory(folder, error)))
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("--allow-path {}: name a folder that is there, or the URL of a store", Quoted(place)));
    made.places_.push_back(WithSlash(IsUrl(place) ? place : folder.string()));
  }
  return made;
}

bool AllowedPaths::Holds(const std::string& path) const {
  if (Contains(places_, "/")) return true;
  if (path.contains('\0')) return false;
  std::string whole = path;
  if (IsUrl(path)) {
    if (MayLeave(path)) return false;
  } else {
    std::error_code error;
    whole = fs::weakly_canonical(fs::absolute(path, error), error).string();
    if (error) return false;
  }
  return std::ranges::any_of(places_,
                             [&](const std::string& place) { return WithSlash(whole).starts_with(place); });
}

Status AllowedPaths::Check(const std::string& flag, const std::string& path) const {
  if (path.empty() || Holds(path)) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{} {}: this agent opens no file outside of its --allow-path folders for a caller: "
                          "start it with --allow-path {}",
                          flag, Quoted(path), places_.empty() ? "DIR" : "that holds the file"));
}

}  // namespace weir::cluster
