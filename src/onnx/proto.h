// The ONNX messages, and what every file here asks of them.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace weir::onnx {

namespace pb = ::onnx;

// FunctionProto.attribute_proto, since IR 9: the messages linked here do not know it yet.
inline constexpr int kAttributeProtoField = 11;

// Bits of one element of TensorProto::DataType, also for types newer than the messages linked here (float 8,
// 4 bits); absent for text and unknown types.
std::optional<int64_t> ElementBits(int32_t data_type);

// The product of `dims`; absent when one is negative or 63 bits do not hold it.
std::optional<int64_t> Product(const std::vector<int64_t>& dims);

// Attributes that a function gives its operators by default: field kAttributeProtoField.
std::vector<pb::AttributeProto> FunctionDefaults(const pb::FunctionProto& function);

}  // namespace weir::onnx
