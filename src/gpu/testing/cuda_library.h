// The fake driver, held open and put back to its beginning.
#pragma once

#include <dlfcn.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "gpu/testing/fake_cuda.h"

namespace weir::gpu {

class CudaLibrary {
 public:
  explicit CudaLibrary(const std::string& path) : library_(::dlopen(path.c_str(), RTLD_NOW), ::dlclose) {
    CHECK(library_ != nullptr);
    state_ = reinterpret_cast<FakeCudaFunction*>(::dlsym(library_.get(), "FakeCuda"))();
    const FakeCudaState before = *state_;
    *state_ = {};
    for (int i = 0; i < 4; ++i) {
      state_->devices[i].uuid_first = static_cast<unsigned char>(0x10 + i);
      state_->devices[i].memory_used = before.devices[i].memory_used;
    }
  }
  FakeCudaState& state() { return *state_; }

 private:
  std::unique_ptr<void, int (*)(void*)> library_;
  FakeCudaState* state_ = nullptr;
};

// While it lives, the first device has no memory left.
class FakeDeviceFull {
 public:
  explicit FakeDeviceFull(FakeCudaState& state) : device_(state.devices[0]), before_(device_.memory_total) {
    device_.memory_total = device_.memory_used;
  }
  ~FakeDeviceFull() { device_.memory_total = before_; }
  FakeDeviceFull(const FakeDeviceFull&) = delete;
  FakeDeviceFull& operator=(const FakeDeviceFull&) = delete;

 private:
  FakeCudaDevice& device_;
  size_t before_;
};

}  // namespace weir::gpu
