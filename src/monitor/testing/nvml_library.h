// The fake NVML library, held open so that what a test puts into it stays there.
#pragma once

#include <dlfcn.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "monitor/testing/fake_nvml.h"

namespace weir::monitor {

class NvmlLibrary {
 public:
  // FAKE_NVML or FAKE_NVML_OLD, the paths that the build gives.
  explicit NvmlLibrary(std::string path)
      : path_(std::move(path)), library_(::dlopen(path_.c_str(), RTLD_NOW), ::dlclose) {
    CHECK(library_ != nullptr);
    state_ = reinterpret_cast<FakeNvmlFunction*>(::dlsym(library_.get(), "FakeNvml"))();
    *state_ = {};  // another test may hold the library still
  }

  const std::string& path() const { return path_; }
  FakeNvmlState& state() { return *state_; }

 private:
  std::string path_;
  std::unique_ptr<void, int (*)(void*)> library_;
  FakeNvmlState* state_ = nullptr;
};

}  // namespace weir::monitor
