// Shapes of all values of a Net, from its inputs to its outputs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "onnx/net.h"
#include "onnx/op.h"

namespace weir::onnx {

// Fills origin, type, dims, content and storage of every value, with `batch` for the free first dimension of
// the inputs. Where no rule knows a shape, the one that the file declares is believed.
void PropagateShapes(Net& net, int64_t batch);

// Whether the operator has a rule here; one without may do any amount of work.
bool IsKnownOperator(const pb::NodeProto& node);

// The size of each letter of an Einsum (kUnknownDim where no operand knows it); absent for equations with an
// ellipsis.
std::optional<std::map<char, int64_t>> EinsumSizes(const Op& op);

}  // namespace weir::onnx
