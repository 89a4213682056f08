#include "synth/whole_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/file.h"

namespace weir::synth {
namespace {

std::unexpected<Error> FailThere(const std::string& path) {
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("{} is there already: choose another folder, or say that it is to be replaced", path));
}

bool IsThere(const std::string& path) {
  struct stat facts{};
  return ::lstat(path.c_str(), &facts) == 0;
}

}  // namespace

WholeFolder::WholeFolder(std::string wanted, std::string filling, IfThere if_there)
    : wanted_(std::move(wanted)), if_there_(if_there), filling_(std::move(filling)) {}

WholeFolder::WholeFolder(WholeFolder&& other) noexcept
    : wanted_(other.wanted_), if_there_(other.if_there_), filling_(std::exchange(other.filling_, {})) {}

WholeFolder::~WholeFolder() {
  std::error_code ignored;
  if (!filling_.empty()) std::filesystem::remove_all(filling_, ignored);
}

Result<WholeFolder> WholeFolder::Create(const std::string& path, IfThere if_there) {
  if (if_there == IfThere::kRefuse && IsThere(path)) return FailThere(path);
  const std::filesystem::path wanted(path);
  const std::filesystem::path parent = wanted.has_parent_path() ? wanted.parent_path() : ".";
  TRY_STATUS(MakeFolders(parent));
  std::string filling = parent / fmt::format(".{}.XXXXXX", wanted.filename().string());
  if (::mkdtemp(filling.data()) == nullptr) return FailErrno(parent.string(), errno);
  WholeFolder folder(path, filling, if_there);
  if (::chmod(filling.c_str(), 0755) != 0) return FailErrno(filling, errno);  // mkdtemp keeps others out
  return folder;
}

Status WholeFolder::Publish() {
  const auto rename = [&](unsigned flags) {
    return ::renameat2(AT_FDCWD, filling_.c_str(), AT_FDCWD, wanted_.c_str(), flags) == 0;
  };
  if (rename(RENAME_NOREPLACE)) {
    filling_.clear();
    return {};
  }
  if (errno != EEXIST) return FailErrno(wanted_, errno);
  if (if_there_ == IfThere::kRefuse) return FailThere(wanted_);
  if (!rename(RENAME_EXCHANGE)) return FailErrno(wanted_, errno);
  return {};  // what was replaced lies in filling_ now and goes with this object
}

}  // namespace weir::synth
