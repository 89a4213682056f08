// One inference at a time on a compiled OpenVINO model. Only the files that wrap the library include this.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "infer/engines/openvino_library.h"
#include "infer/tensor.h"

namespace weir::infer {

// An infer request, and where its outputs go. By default that is memory of the request, which the next run
// overwrites, so they are copied. Once a run has shown which shapes come out for the shapes that go in, the
// next runs of the same shapes write straight into memory that is handed on. One thread at a time.
class OpenVinoRequest {
 public:
  // `outputs`: all that the model has, in its order.
  static Result<OpenVinoRequest> Create(const OpenVinoPtr& library, const ov_compiled_model_t* model,
                                        const std::vector<TensorInfo>& outputs);

  // `inputs`: checked, in the order of the model. `wanted`: indices of outputs, none of which is an input:
  // the library has one place for both. kInvalidArgument for values that it would compute as others.
  Result<std::vector<Tensor>> Run(const std::vector<const Tensor*>& inputs,
                                  const std::vector<size_t>& wanted);

 private:
  struct Output {
    TensorInfo declared;
    std::shared_ptr<ov_tensor_t> own;  // the request's memory
    std::optional<Shape> shape;        // that came out of the last run for the shapes that went in
    bool foreseeable = true;           // that shape says what the next run gives: the data do not decide it
    bool placed = false;               // the request holds memory of ours
  };
  Status SetInputs(const std::vector<const Tensor*>& inputs, const std::vector<Bytes>& data);
  // The first gives the request memory for an output, and nothing where the size is not known; the other its
  // own again.
  Result<Bytes> Place(size_t index);
  Status TakeBack(size_t index);
  Status Infer() { return library_->Check(library_->ov_infer_request_infer(request_.get()), "openvino"); }
  Status InferInOwnMemory();
  Result<Tensor> Read(size_t index, const Bytes& placed);

  OpenVinoPtr library_;
  std::shared_ptr<ov_infer_request_t> request_;
  std::vector<Output> outputs_;
  std::vector<Shape> input_shapes_;  // of the last run
};

}  // namespace weir::infer
