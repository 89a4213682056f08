#include "infer/engines/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

namespace weir::infer {
namespace {

void* OpenLibrary(const std::string& path) { return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); }

// "" where the system does not say.
std::string FolderOfProgram() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().string();
}

}  // namespace

Result<SharedLibrary> SharedLibrary::Open(const Names& names) {
  if (const char* named = std::getenv("WEIR_ENGINES"); named != nullptr && *named != '\0')
    return OpenIn({named}, names);
  return OpenIn({FolderOfProgram() + "/../lib/weir", WEIR_DEPS_DIR}, names);
}

Result<SharedLibrary> SharedLibrary::OpenIn(const std::vector<std::string>& folders, const Names& names) {
  for (const std::string& folder : folders) {
    for (const std::string& file : names.files) {
      for (const std::string& path : {folder + "/" + file, folder + "/" + names.folder + "/" + file}) {
        if (access(path.c_str(), F_OK) != 0) continue;
        if (void* handle = OpenLibrary(path)) return SharedLibrary(handle, path);
        return Fail(ErrorCode::kInternal, fmt::format("engine {}: {}", names.engine, dlerror()));
      }
    }
  }
  for (const std::string& file : names.files) {
    if (void* handle = OpenLibrary(file)) return SharedLibrary(handle, file);
  }
  return Fail(
      ErrorCode::kNotFound,
      fmt::format("engine {}: {} is not on this machine (looked in {} and on the system's library path): "
                  "install it with `./dev setup`, or name its folder in WEIR_ENGINES",
                  names.engine, names.files.front(), fmt::join(folders, ", ")));
}

void* SharedLibrary::Find(const char* name) const { return dlsym(handle_, name); }

}  // namespace weir::infer
