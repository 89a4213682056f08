#include "base/temporary_folder.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <utility>

namespace weir {

Result<TemporaryFolder> TemporaryFolder::Make(std::string_view name) {
  std::error_code none;
  std::string path = (std::filesystem::temp_directory_path(none) / fmt::format("{}-XXXXXX", name)).string();
  if (::mkdtemp(path.data()) == nullptr) return FailErrno(path, errno);
  return TemporaryFolder(std::move(path));
}

TemporaryFolder::TemporaryFolder(std::string path) : path_(std::move(path)) {}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace weir
