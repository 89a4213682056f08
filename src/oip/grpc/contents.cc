#include "oip/grpc/contents.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "oip/buffer.h"
#include "oip/infer_rules.h"

namespace weir::oip {
namespace {

std::unexpected<Error> Bad(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}
std::unexpected<Error> Broken() { return Bad("its contents are no protobuf message"); }

// The fields by number.
constexpr std::array<std::string_view, 9> kFields{"",
                                                  "bool_contents",
                                                  "int_contents",
                                                  "int64_contents",
                                                  "uint_contents",
                                                  "uint64_contents",
                                                  "fp32_contents",
                                                  "fp64_contents",
                                                  "bytes_contents"};

// 0 for types without one.
uint32_t FieldOf(infer::DType dtype) {
  switch (dtype) {
    case infer::DType::kBool:
      return 1;
    case infer::DType::kInt8:
    case infer::DType::kInt16:
    case infer::DType::kInt32:
      return 2;
    case infer::DType::kInt64:
      return 3;
    case infer::DType::kUint8:
    case infer::DType::kUint16:
    case infer::DType::kUint32:
      return 4;
    case infer::DType::kUint64:
      return 5;
    case infer::DType::kFp32:
      return 6;
    case infer::DType::kFp64:
      return 7;
    case infer::DType::kBytes:
      return 8;
    case infer::DType::kFp16:
    case infer::DType::kBf16:
      break;
  }
  return 0;
}

// Where elements go that have a fixed size.
class Elements {
 public:
  Elements(infer::Tensor& tensor, size_t count)
      : dtype_(tensor.dtype), next_(tensor.data.mutable_data()), left_(count) {}
  size_t left() const { return left_; }

  // As protobuf has it: the field's own type is the low bits of the varint. The tensor's may be narrower.
  Status PutVarint(uint64_t varint) {
    if (left_ == 0) return Bad("contents have more elements than the shape");
    switch (dtype_) {
      case infer::DType::kBool:
        return Put(static_cast<uint8_t>(varint != 0));
      case infer::DType::kInt8:
        return Narrow<int8_t>(static_cast<int32_t>(varint));
      case infer::DType::kInt16:
        return Narrow<int16_t>(static_cast<int32_t>(varint));
      case infer::DType::kInt32:
        return Put(static_cast<int32_t>(varint));
      case infer::DType::kUint8:
        return Narrow<uint8_t>(static_cast<uint32_t>(varint));
      case infer::DType::kUint16:
        return Narrow<uint16_t>(static_cast<uint32_t>(varint));
      case infer::DType::kUint32:
        return Put(static_cast<uint32_t>(varint));
      default:
        return Put(varint);
    }
  }

  // `reader` holds numbers of `size` bytes, one after the other.
  Status PutFixed(ProtoReader& reader, size_t bytes) {
    const size_t size = infer::ByteSize(dtype_);
    if (bytes % size != 0 || bytes > reader.left()) return Broken();
    if (bytes / size > left_) return Bad("contents have more elements than the shape");
    reader.Read(next_, bytes);
    next_ += bytes;
    left_ -= bytes / size;
    return {};
  }

 private:
  template <typename T>
  Status Put(T value) {
    std::memcpy(next_, &value, sizeof value);
    next_ += sizeof value;
    --left_;
    return {};
  }
  template <typename T, typename Wide>
  Status Narrow(Wide value) {
    if (std::in_range<T>(value)) return Put(static_cast<T>(value));
    return Bad(fmt::format("contents hold {}, which does not fit {}", value, infer::ToString(dtype_)));
  }

  const infer::DType dtype_;
  std::byte* next_;
  size_t left_;
};

// Calls `read` with the contents' fields of the tensor's own number; others known must hold nothing.
template <typename Read>
Status ForEachField(ProtoReader message, uint32_t number, uint32_t wanted, Read&& read) {
  while (!message.AtEnd()) {
    uint32_t tag = 0;
    if (!message.ReadTag(tag)) return Broken();
    if (tag != Tag(number, WireType::kLength)) {
      if (!message.SkipValue(tag)) return Broken();
      continue;
    }
    ProtoReader contents = message;
    if (!message.ReadMessage(contents)) return Broken();
    while (!contents.AtEnd()) {
      if (!contents.ReadTag(tag)) return Broken();
      if (tag >> 3 == wanted) {
        TRY_STATUS(read(contents, tag));
        continue;
      }
      const size_t before = contents.left();
      if (!contents.SkipValue(tag)) return Broken();
      const bool known = tag >> 3 < kFields.size();
      const bool nothing =
          (tag & 7) == static_cast<uint32_t>(WireType::kLength) && before - contents.left() == 1;
      if (known && !nothing) {
        return Bad(fmt::format("contents are in {}, its type wants {}", kFields[tag >> 3], kFields[wanted]));
      }
    }
  }
  return {};
}

Status ReadStrings(ProtoReader message, uint32_t number, infer::Tensor& tensor, size_t count) {
  Buffer data(message.left() + 4 * count);
  size_t found = 0;
  TRY_STATUS(ForEachField(message, number, 8, [&](ProtoReader& contents, uint32_t tag) -> Status {
    if ((tag & 7) != static_cast<uint32_t>(WireType::kLength)) {
      if (!contents.SkipValue(tag)) return Broken();
      return {};
    }
    ProtoReader element = contents;
    if (!contents.ReadMessage(element)) return Broken();
    const auto length = static_cast<uint32_t>(element.left());
    char* const to = data.Room(sizeof length + length);
    std::memcpy(to, &length, sizeof length);
    element.Read(to + sizeof length, length);
    data.Advance(sizeof length + length);
    ++found;
    return {};
  }));
  if (found != count) return Bad(fmt::format("contents have {} elements, the shape {}", found, count));
  tensor.data = std::move(data).Take();
  return {};
}

Status ReadNumbers(ProtoReader message, uint32_t number, uint32_t field, infer::Tensor& tensor,
                   size_t count) {
  tensor.data = Bytes::AllocateUninitialized(count * infer::ByteSize(tensor.dtype));
  Elements elements(tensor, count);
  const WireType single = field == 6   ? WireType::kFixed32
                          : field == 7 ? WireType::kFixed64
                                       : WireType::kVarint;
  TRY_STATUS(ForEachField(message, number, field, [&](ProtoReader& contents, uint32_t tag) -> Status {
    ProtoReader packed = contents;
    const bool is_packed = tag == Tag(field, WireType::kLength);
    if (is_packed && !contents.ReadMessage(packed)) return Broken();
    if (!is_packed && tag != Tag(field, single)) {
      if (!contents.SkipValue(tag)) return Broken();
      return {};
    }
    if (single != WireType::kVarint) {
      return is_packed ? elements.PutFixed(packed, packed.left())
                       : elements.PutFixed(contents, infer::ByteSize(tensor.dtype));
    }
    uint64_t value = 0;
    if (!is_packed) {
      if (!contents.ReadVarint(value)) return Broken();
      return elements.PutVarint(value);
    }
    while (!packed.AtEnd()) {
      if (!packed.ReadVarint(value)) return Broken();
      TRY_STATUS(elements.PutVarint(value));
    }
    return {};
  }));
  if (elements.left() == 0) return {};
  return Bad(fmt::format("contents have {} elements, the shape {}", count - elements.left(), count));
}

}  // namespace

Status ReadTypedContents(ProtoReader message, uint32_t number, infer::Tensor& tensor) {
  const int64_t elements = TRY(CountElements(tensor));
  const uint32_t field = FieldOf(tensor.dtype);
  if (field == 0) {
    return Bad(fmt::format("{} has no typed contents: send it in raw_input_contents",
                           infer::ToString(tensor.dtype)));
  }
  // Every element is a byte at least: no memory for what cannot be there.
  if (static_cast<uint64_t>(elements) > message.left()) {
    return Bad(fmt::format("contents have fewer elements than shape {}", infer::ToString(tensor.shape)));
  }
  const auto count = static_cast<size_t>(elements);
  return tensor.dtype == infer::DType::kBytes ? ReadStrings(message, number, tensor, count)
                                              : ReadNumbers(message, number, field, tensor, count);
}

}  // namespace weir::oip
