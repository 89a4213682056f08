#include "onnx/proto.h"

#include <google/protobuf/unknown_field_set.h>

namespace weir::onnx {
std::optional<int64_t> ElementBits(int32_t data_type) {
  switch (data_type) {
    case pb::TensorProto::UINT8:
    case pb::TensorProto::INT8:
    case pb::TensorProto::BOOL:
    case 17:  // FLOAT8E4M3FN
    case 18:  // FLOAT8E4M3FNUZ
    case 19:  // FLOAT8E5M2
    case 20:  // FLOAT8E5M2FNUZ
    case 24:  // FLOAT8E8M0
      return 8;
    case pb::TensorProto::UINT16:
    case pb::TensorProto::INT16:
    case pb::TensorProto::FLOAT16:
    case pb::TensorProto::BFLOAT16:
      return 16;
    case pb::TensorProto::FLOAT:
    case pb::TensorProto::INT32:
    case pb::TensorProto::UINT32:
      return 32;
    case pb::TensorProto::DOUBLE:
    case pb::TensorProto::INT64:
    case pb::TensorProto::UINT64:
    case pb::TensorProto::COMPLEX64:
      return 64;
    case pb::TensorProto::COMPLEX128:
      return 128;
    case 21:  // UINT4
    case 22:  // INT4
    case 23:  // FLOAT4E2M1
      return 4;
    default:
      return std::nullopt;
  }
}

std::optional<int64_t> Product(const std::vector<int64_t>& dims) {
  int64_t product = 1;
  for (const int64_t dim : dims) {
    if (dim < 0 || __builtin_mul_overflow(product, dim, &product)) return std::nullopt;
  }
  return product;
}

std::vector<pb::AttributeProto> FunctionDefaults(const pb::FunctionProto& function) {
  std::vector<pb::AttributeProto> defaults;
  const google::protobuf::UnknownFieldSet& unknown = function.unknown_fields();
  for (int i = 0; i < unknown.field_count(); ++i) {
    const google::protobuf::UnknownField& field = unknown.field(i);
    const bool is_default = field.number() == kAttributeProtoField &&
                            field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED;
    if (is_default && !defaults.emplace_back().ParseFromString(field.length_delimited())) defaults.pop_back();
  }
  return defaults;
}

}  // namespace weir::onnx
