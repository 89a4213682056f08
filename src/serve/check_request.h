// Whether a request is one that a model can answer.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "infer/tensor.h"
#include "oip/api.h"
#include "oip/status.h"
#include "serve/loaded_model.h"

namespace weir::serve {

// The rows of the request: its batch; 1 where the model has no batch dimension. kInvalidArgument names the
// model and the tensor whose name, type, shape, size or number of rows does not fit, or a priority that the
// model does not have. `compat` chooses the words.
Result<int64_t> CheckRequest(const ServedModel& served, const oip::InferRequest& request,
                             oip::Compat compat = oip::Compat::kNone);

// `actual`, a shape of the form `from` (-1: free), in the form `to`: free dimensions keep their order.
// kInvalidArgument where it is not of that form, or the other holds another number of elements.
Result<infer::Shape> Reshape(const infer::Shape& actual, const infer::Shape& from, const infer::Shape& to);

// Puts the inputs of a request that CheckRequest took into the shapes that the model's own file has.
Status TakeModelShapes(const ServedModel& served, std::vector<infer::Tensor>& inputs);

}  // namespace weir::serve
