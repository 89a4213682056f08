#include "onnx/parse_cost.h"

#include <google/protobuf/message.h>

#include <algorithm>
#include <string>
#include <unordered_map>

#include "onnx/proto.h"

namespace weir::onnx {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::io::CodedInputStream;

constexpr int kMaxNesting = 100;  // as the parser has it
constexpr uint64_t kAllocation = 16;
constexpr uint64_t kPointer = 8;
constexpr uint64_t kString = sizeof(std::string) + kAllocation;
constexpr uint64_t kUnknownField = 16;

enum WireType : uint8_t { kVarint, kFixed64, kBytes, kStartGroup, kEndGroup, kFixed32 };

uint64_t NumberBytes(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return 1;
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT64:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return 8;
    default:
      return 4;
  }
}

bool IsNumber(const FieldDescriptor& field) {
  return field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE &&
         field.cpp_type() != FieldDescriptor::CPPTYPE_STRING;
}

// The type of what stands in the field, also where the messages linked here do not know it yet.
const Descriptor* MessageIn(const Descriptor& type, const FieldDescriptor* field, int number) {
  if (field != nullptr) return field->message_type();
  const bool is_default = &type == pb::FunctionProto::descriptor() && number == kAttributeProtoField;
  return is_default ? pb::AttributeProto::descriptor() : nullptr;
}

class Estimate {
 public:
  Estimate(CodedInputStream& input, uint64_t limit) : input_(input), limit_(limit) {}

  // Reads to the end of the message. False: it is none.
  bool AddMessage(const Descriptor& type, int depth) {
    if (depth > kMaxNesting) return false;
    while (!is_over()) {
      const uint32_t tag = input_.ReadTag();
      if (tag == 0) return input_.ConsumedEntireMessage();
      if (!AddField(&type, tag, depth)) return false;
    }
    return true;
  }

  uint64_t bytes() const { return bytes_; }

 private:
  bool is_over() const { return bytes_ > limit_; }

  // `type` is null inside of a group, of which nothing is known.
  bool AddField(const Descriptor* type, uint32_t tag, int depth) {
    const int number = static_cast<int>(tag >> 3);
    const FieldDescriptor* field = type == nullptr ? nullptr : type->FindFieldByNumber(number);
    uint64_t ignored = 0;
    uint32_t ignored32 = 0;
    switch (tag & 7) {
      case kVarint:
        AddNumber(field);
        return input_.ReadVarint64(&ignored);
      case kFixed64:
        AddNumber(field);
        return input_.ReadLittleEndian64(&ignored);
      case kFixed32:
        AddNumber(field);
        return input_.ReadLittleEndian32(&ignored32);
      case kBytes:
        return AddBytes(type, field, number, depth);
      case kStartGroup:
        return AddGroup(number, depth + 1);
      default:
        return false;
    }
  }

  void AddNumber(const FieldDescriptor* field) {
    if (field == nullptr || !IsNumber(*field)) {
      bytes_ += kUnknownField;
    } else if (field->is_repeated()) {
      bytes_ += NumberBytes(*field);
    }
  }

  bool AddGroup(int number, int depth) {
    if (depth > kMaxNesting) return false;
    bytes_ += kUnknownField + kAllocation + sizeof(void*) * 3;
    while (!is_over()) {
      const uint32_t tag = input_.ReadTag();
      if (tag == 0) return false;
      if ((tag & 7) == kEndGroup) return static_cast<int>(tag >> 3) == number;
      if (!AddField(nullptr, tag, depth)) return false;
    }
    return true;
  }

  bool AddBytes(const Descriptor* type, const FieldDescriptor* field, int number, int depth) {
    int length = 0;
    if (!input_.ReadVarintSizeAsInt(&length)) return false;
    const Descriptor* const message = type == nullptr ? nullptr : MessageIn(*type, field, number);
    if (message != nullptr) {
      bytes_ += MessageBytes(*message) + kAllocation + kPointer;
      if (field == nullptr) bytes_ += kUnknownField + kString + static_cast<uint64_t>(length);
      const int left = input_.BytesUntilLimit();
      if (left >= 0 && length > left) return false;
      const CodedInputStream::Limit outer = input_.PushLimit(length);
      const bool whole = AddMessage(*message, depth + 1);
      input_.PopLimit(outer);
      return whole;
    }
    if (field != nullptr && field->is_packable()) return AddPacked(*field, length);
    bytes_ += kString + kPointer + static_cast<uint64_t>(length);
    if (field == nullptr) bytes_ += kUnknownField;
    return input_.Skip(length);
  }

  bool AddPacked(const FieldDescriptor& field, int length) {
    const bool is_fixed =
        field.cpp_type() == FieldDescriptor::CPPTYPE_FLOAT ||
        field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE ||
        field.type() == FieldDescriptor::TYPE_FIXED32 || field.type() == FieldDescriptor::TYPE_FIXED64 ||
        field.type() == FieldDescriptor::TYPE_SFIXED32 || field.type() == FieldDescriptor::TYPE_SFIXED64;
    if (is_fixed) {
      bytes_ += static_cast<uint64_t>(length);
      return input_.Skip(length);
    }
    while (length > 0 && !is_over()) {
      const void* data = nullptr;
      int size = 0;
      if (!input_.GetDirectBufferPointer(&data, &size)) return false;
      size = std::min(size, length);
      bytes_ += NumberBytes(field) * LastBytes(static_cast<const uint8_t*>(data), size);
      if (!input_.Skip(size)) return false;
      length -= size;
    }
    return true;
  }

  // How many numbers end in these bytes.
  static uint64_t LastBytes(const uint8_t* data, int size) {
    return static_cast<uint64_t>(std::count_if(data, data + size, [](uint8_t byte) { return byte < 0x80; }));
  }

  uint64_t MessageBytes(const Descriptor& type) {
    uint64_t& size = sizes_[&type];
    if (size == 0) {
      const auto* const prototype =
          google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type);
      size = prototype == nullptr ? kAllocation : prototype->SpaceUsedLong();
    }
    return size;
  }

  CodedInputStream& input_;
  const uint64_t limit_;
  uint64_t bytes_ = 0;
  std::unordered_map<const Descriptor*, uint64_t> sizes_;
};

}  // namespace

std::optional<uint64_t> EstimateParsedBytes(CodedInputStream& input, const Descriptor& type, uint64_t limit) {
  Estimate estimate(input, limit);
  if (!estimate.AddMessage(type, 0)) return std::nullopt;
  return estimate.bytes();
}

}  // namespace weir::onnx
