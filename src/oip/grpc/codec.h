// ModelInfer messages of the gRPC protocol, read and written without the generated classes: tensors are
// slices of what came from the socket, and go out as they lie.
#pragma once

#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "infer/call.h"
#include "oip/api.h"

namespace weir::oip {

// A message in pieces, in order. Pieces need not end where fields do.
using Slices = std::vector<Bytes>;

// Reads an inference.ModelInferRequest. A raw tensor that spans pieces, or is not aligned to its element
// size, is copied once into memory of its own; others are slices. kInvalidArgument names what is wrong: a
// broken message, both raw and typed contents, a number of raw tensors that is not that of the inputs,
// counts, shapes and types that do not fit, duplicate names, reserved parameters; kUnsupported for sequences.
// Unknown fields are passed over, as protobuf has it. All outputs are binary.
Result<InferRequest> ParseGrpcRequest(std::span<const Bytes> message);
// An inference.ModelInferResponse; all tensors raw, their data sent as it lies (but for those under a KiB,
// which cost less as a copy than as a piece). `outputs` as they were requested: those in a region carry no
// data.
Slices WriteGrpcResponse(const infer::Response& response, std::span<const RequestedOutput> outputs);

// The client's side.
Slices WriteGrpcRequest(const infer::Request& request, const infer::RequestForm& form = {});
// kPassOver: all but the outputs, of which only the sizes are held against shapes and types.
Result<infer::Response> ParseGrpcResponse(
    std::span<const Bytes> message, infer::RequestForm::Outputs outputs = infer::RequestForm::Outputs::kRead);

}  // namespace weir::oip
