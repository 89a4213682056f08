// Libraries that are opened while the program runs, so that it starts without them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace weir::infer {

// An open library. It is never closed: inference libraries keep threads and process-wide state. A value.
class SharedLibrary {
 public:
  struct Names {
    std::string engine;              // "openvino", for messages
    std::vector<std::string> files;  // by which names the file may go, the best first
    std::string folder;              // where `./dev setup` puts it, below its own folder
  };
  // Looks in the folder that the environment variable WEIR_ENGINES names, or else in ../lib/weir beside the
  // program and where `./dev setup` puts engines in this checkout; then leaves it to the system's loader.
  // kNotFound says where it looked and what installs it; kInternal is a file that is there and cannot be
  // opened, with the loader's words.
  static Result<SharedLibrary> Open(const Names& names);
  // The same in the given folders, and the system's loader.
  static Result<SharedLibrary> OpenIn(const std::vector<std::string>& folders, const Names& names);

  const std::string& path() const { return path_; }
  // The function or variable called `name`; nullptr when there is none.
  void* Find(const char* name) const;

 private:
  SharedLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}

  void* handle_;
  std::string path_;
};

}  // namespace weir::infer
