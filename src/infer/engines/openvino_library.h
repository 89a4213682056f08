// The C API of OpenVINO, opened while the program runs. Only the files that wrap the library include this.
#pragma once

#include <openvino/c/openvino.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "infer/engines/shared_library.h"
#include "infer/tensor.h"

namespace weir::infer {

// The functions of the C API that are used, each under its own name.
#define WEIR_OPENVINO_FUNCTIONS(X)               \
  X(ov_get_last_err_msg)                         \
  X(ov_free)                                     \
  X(ov_get_openvino_version)                     \
  X(ov_version_free)                             \
  X(ov_core_create)                              \
  X(ov_core_free)                                \
  X(ov_core_get_available_devices)               \
  X(ov_available_devices_free)                   \
  X(ov_core_read_model)                          \
  X(ov_core_compile_model)                       \
  X(ov_core_compile_model_from_file)             \
  X(ov_model_reshape)                            \
  X(ov_model_free)                               \
  X(ov_compiled_model_free)                      \
  X(ov_compiled_model_inputs_size)               \
  X(ov_compiled_model_input_by_index)            \
  X(ov_compiled_model_input_by_name)             \
  X(ov_compiled_model_output_by_name)            \
  X(ov_compiled_model_outputs_size)              \
  X(ov_compiled_model_output_by_index)           \
  X(ov_compiled_model_get_property)              \
  X(ov_compiled_model_create_infer_request)      \
  X(ov_port_get_any_name)                        \
  X(ov_port_get_element_type)                    \
  X(ov_port_get_partial_shape)                   \
  X(ov_output_const_port_free)                   \
  X(ov_partial_shape_free)                       \
  X(ov_infer_request_free)                       \
  X(ov_infer_request_set_input_tensor_by_index)  \
  X(ov_infer_request_set_output_tensor_by_index) \
  X(ov_infer_request_get_output_tensor_by_index) \
  X(ov_infer_request_infer)                      \
  X(ov_tensor_create_from_host_ptr)              \
  X(ov_tensor_get_shape)                         \
  X(ov_tensor_data)                              \
  X(ov_tensor_free)                              \
  X(ov_shape_free)

// Thread-safe.
class OpenVinoLibrary {
 public:
  static Result<std::shared_ptr<const OpenVinoLibrary>> Open();

#define WEIR_DECLARE(name) decltype(&::name) name = nullptr;
  WEIR_OPENVINO_FUNCTIONS(WEIR_DECLARE)
#undef WEIR_DECLARE
  std::string version;

  // `what` is said first, then the library's own words.
  Status Check(ov_status_e status, std::string_view what, ErrorCode code = ErrorCode::kInternal) const;

 private:
  Status Bind(const SharedLibrary& file);
};
using OpenVinoPtr = std::shared_ptr<const OpenVinoLibrary>;

// An object of the library, which it keeps alive.
template <typename T>
std::shared_ptr<T> Own(const OpenVinoPtr& library, T* object, void (*OpenVinoLibrary::*release)(T*)) {
  return {object, [library, release](T* p) { (library.get()->*release)(p); }};
}

// kUnsupported for types that a Tensor does not have.
Result<DType> FromOpenVino(ov_element_type_e type);
ov_element_type_e ToOpenVino(DType dtype);

}  // namespace weir::infer
