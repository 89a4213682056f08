// ONNX Runtime as a library: its function table, its environment, and what its sessions say of their tensors.
// Only files that have its headers include this one.
#pragma once

#include <onnxruntime_c_api.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "infer/engine.h"
#include "infer/engines/shared_library.h"
#include "infer/tensor.h"

namespace weir::infer {

// The function table, and the one environment (its log goes nowhere: every failure comes back as a status
// too). Shared by all that hold memory of the library. Thread-safe.
class OrtLibrary {
 public:
  static Result<std::shared_ptr<const OrtLibrary>> Open(const SharedLibrary& file);
  ~OrtLibrary() { api_->ReleaseEnv(env_); }
  OrtLibrary(const OrtLibrary&) = delete;
  OrtLibrary& operator=(const OrtLibrary&) = delete;

  const OrtApi& api() const { return *api_; }
  const OrtEnv* env() const { return env_; }
  const OrtMemoryInfo* cpu_memory() const { return cpu_memory_.get(); }
  const std::string& version() const { return version_; }

  // Takes over `status`. `what` is said first; the library's own code decides where it says more than
  // "failed".
  Status Check(OrtStatus* status, std::string_view what, ErrorCode otherwise = ErrorCode::kInternal) const;

 private:
  OrtLibrary(const OrtApi* api, std::string version) : api_(api), version_(std::move(version)) {}
  Status Prepare();

  const OrtApi* api_;
  const std::string version_;
  OrtEnv* env_ = nullptr;
  std::unique_ptr<OrtMemoryInfo, void (*)(OrtMemoryInfo*)> cpu_memory_{nullptr, nullptr};
};
using OrtLibraryPtr = std::shared_ptr<const OrtLibrary>;

// An object of the library, which it keeps alive. Null is fine.
template <typename T>
std::shared_ptr<T> Own(const OrtLibraryPtr& library, T* object, void (*OrtApi::*release)(T*)) {
  return {object, [library, release](T* p) { (library->api().*release)(p); }};
}
using OrtValuePtr = std::shared_ptr<OrtValue>;

// Keeps what the library logs on this thread while it lives.
class OrtLog {
 public:
  OrtLog();
  ~OrtLog();
  OrtLog(const OrtLog&) = delete;
  OrtLog& operator=(const OrtLog&) = delete;
  const std::string& text() const { return text_; }  // the messages, one a line
  void Add(const char* message) { text_ += std::string(message) + "\n"; }

 private:
  std::string text_;
};

ONNXTensorElementDataType ToOrt(DType dtype);

// Returns the type and shape in `facts`; the name is left empty.
Result<TensorInfo> Describe(const OrtLibrary& library, const OrtTensorTypeAndShapeInfo* facts);

// The inputs and outputs of a session.
struct OrtTensors {
  std::vector<TensorInfo> inputs, outputs;
};
// Outputs that are no tensors, or of a type that cannot be sent, are left out: kUnsupported where none is
// left. A value of the file that may be replaced is an input where `source` has it among its inputs.
Result<OrtTensors> ReadTensors(const OrtLibraryPtr& library, const OrtSession* session,
                               const ModelSource& source);

// The options that sessions on every device share.
Result<std::shared_ptr<OrtSessionOptions>> MakeOrtOptions(const OrtLibraryPtr& library);

}  // namespace weir::infer
