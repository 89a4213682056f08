// The elements of a tensor as JSON, put where the engine will read them.
#pragma once

#include <string_view>

#include "base/error.h"
#include "infer/tensor.h"
#include "oip/http/json_value.h"

namespace weir::oip {

// Reads "data" into `tensor`, whose shape and type are known; `json_size` is the length of the text that it
// is a part of. The array may be flat or nested in any way: the elements are taken in their order, and only
// their number is held against the shape, as Triton does. BOOL is true or false; integers must be written as
// such and fit; floats are the nearest to the decimal, and must be finite or say that they are not; BYTES are
// strings.
Status ReadJsonData(json::value value, infer::Tensor& tensor, std::string_view json_text);

}  // namespace weir::oip
