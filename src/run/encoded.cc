#include "run/encoded.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string_view>

#include "image/encode.h"

namespace weir::run {
namespace {

using image::RejectReason;

// Those that a decoder tells.
constexpr std::array kVerdicts = {RejectReason::kEmpty,         RejectReason::kNotAPicture,
                                  RejectReason::kUnsupported,   RejectReason::kDamaged,
                                  RejectReason::kTooManyPixels, RejectReason::kWrongGeometry};

}  // namespace

infer::Tensor JoinFiles(const std::string& name, std::span<const Bytes> files, int64_t items) {
  CHECK(!files.empty() && std::ssize(files) <= items);
  const auto file = [&](int64_t i) -> const Bytes& {
    return files[std::min(static_cast<size_t>(i), files.size() - 1)];
  };
  size_t size = 0;
  for (int64_t i = 0; i < items; ++i) size += sizeof(uint32_t) + file(i).size();
  infer::Tensor tensor{.name = name, .dtype = infer::DType::kBytes, .shape = {items}, .data = {}};
  tensor.data = Bytes::AllocateUninitialized(size);
  std::byte* to = tensor.data.mutable_data();
  for (int64_t i = 0; i < items; ++i) {
    const Bytes& from = file(i);
    CHECK(from.size() <= std::numeric_limits<uint32_t>::max());
    const auto length = static_cast<uint32_t>(from.size());
    std::memcpy(to, &length, sizeof length);
    if (length > 0) std::memcpy(to + sizeof length, from.data(), length);
    to += sizeof length + length;
  }
  return tensor;
}

Bytes BlackPicture(const dataset::Size& size) {
  image::Pixels pixels{.width = size.width, .height = size.height, .channels = 1};
  pixels.data.assign(static_cast<size_t>(size.width) * static_cast<size_t>(size.height), 0);
  return Bytes::Copy(std::string_view(*image::EncodePng(pixels)));
}

image::Reject RejectOfRefusal(const Error& error) {
  constexpr std::string_view kMark = " is rejected: ";
  std::string_view words = error.message;
  if (const size_t at = words.find(kMark); at != std::string_view::npos) {
    words.remove_prefix(at + kMark.size());
    const std::string_view name = words.substr(0, words.find(':'));
    const auto verdict =
        std::ranges::find_if(kVerdicts, [&](RejectReason reason) { return ToString(reason) == name; });
    if (verdict != kVerdicts.end()) {
      words.remove_prefix(std::min(words.size(), name.size() + 2));
      return {*verdict, std::string(words)};
    }
  }
  return {RejectReason::kFailed, error.message};
}

}  // namespace weir::run
