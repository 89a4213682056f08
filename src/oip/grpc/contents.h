// InferTensorContents: the elements of a tensor as typed fields, which gRPC clients may send instead of raw
// bytes.
#pragma once

#include "base/error.h"
#include "infer/tensor.h"
#include "oip/grpc/proto_reader.h"

namespace weir::oip {

// Reads the elements of `tensor`, whose shape and type are known, from every field `number` of `message`
// (there is one; protobuf takes more of them together). kInvalidArgument for a field of another type, a count
// that does not fit the shape, integers out of range, and types that have no field (FP16, BF16).
Status ReadTypedContents(ProtoReader message, uint32_t number, infer::Tensor& tensor);

}  // namespace weir::oip
