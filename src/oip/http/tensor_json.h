// Numbers and strings of a tensor as a JSON array.
#pragma once

#include <string_view>

#include "base/error.h"
#include "infer/tensor.h"
#include "oip/buffer.h"

namespace weir::oip {

// "text", with quotes and escapes; bytes that are not UTF-8 as \xNN.
void AppendJsonString(std::string_view text, Buffer& out);
// The shortest decimal that reads back as the same number; NaN, Infinity and -Infinity as Python and Triton
// write them.
void AppendJsonNumber(double value, Buffer& out);
void AppendJsonNumber(int64_t value, Buffer& out);
void AppendJsonNumber(uint64_t value, Buffer& out);

// The bytes that the array will take, about.
size_t JsonSize(const infer::Tensor& tensor);
// [1,2,3]: flat, whatever the shape. kInvalidArgument for what has no JSON form: BYTES that are not UTF-8.
Status AppendJsonData(const infer::Tensor& tensor, Buffer& out);

}  // namespace weir::oip
