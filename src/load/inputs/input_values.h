// The values of one tensor as an --input-data file has them. Private to input_data.cc. Every error is
// kInvalidArgument with the remedy.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/error.h"
#include "base/json.h"
#include "infer/tensor.h"

namespace weir::load {

// REQUIRES: `list` is a list. Its items as numbers of that type, or texts; the first that is none is named.
Result<Bytes> ReadList(const Json& list, infer::DType dtype);
// Strict: the alphabet of RFC 4648, padded, no line breaks.
Result<Bytes> ReadBase64(const Json& text);
// Whole elements of that type.
Result<int64_t> CountElements(const Bytes& data, infer::DType dtype);

// A whole number from 0 on; nothing where it is none.
std::optional<int64_t> ReadSize(const Json& json);

}  // namespace weir::load
