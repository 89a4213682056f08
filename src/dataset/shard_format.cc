#include "dataset/shard_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/json.h"
#include "dataset/hash.h"
#include "dataset/set_text.h"
#include "dataset/tar.h"

namespace weir::dataset {
namespace {

template <typename Number>
void Put(std::string& out, Number value) {
  static_assert(std::endian::native == std::endian::little);
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string Member(const std::string& name, std::string_view contents) {
  const auto size = static_cast<int64_t>(contents.size());
  return FormatTarHeader(name, size) + std::string(contents) + TarPadding(size);
}

Frame TarFrame(const SetFacts& facts, const SetEntry& entry, int64_t picture_bytes,
               std::string_view extension) {
  const std::string key = fmt::format("{:08}", entry.record);
  Json about = {{"source", entry.source}};
  if (entry.label) {
    about["label"] = *entry.label;
    if (static_cast<size_t>(*entry.label) < facts.classes.size()) {
      about["class"] = facts.classes[static_cast<size_t>(*entry.label)];
    }
  }
  if (entry.width > 0) {
    about["width"] = entry.width;
    about["height"] = entry.height;
  }
  about["hash"] = entry.hash;
  if (!entry.source_hash.empty()) about["source_hash"] = entry.source_hash;
  Frame frame;
  frame.before = FormatTarHeader(fmt::format("{}.{}", key, extension), picture_bytes);
  frame.after = TarPadding(picture_bytes);
  if (entry.label) frame.after += Member(key + ".cls", std::to_string(*entry.label));
  frame.after += Member(key + ".json", DumpJson(about));
  return frame;
}

// Protocol buffers' wire format (protobuf.dev/programming-guides/encoding): a field is its number and kind,
// then its length and bytes.
void PutVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void PutField(std::string& out, int number, std::string_view bytes) {
  PutVarint(out, static_cast<uint64_t>(number) << 3 | 2);  // 2: length-delimited
  PutVarint(out, bytes.size());
  out += bytes;
}

// tensorflow/core/example/feature.proto: Feature { BytesList bytes_list = 1; Int64List int64_list = 3; },
// BytesList { repeated bytes value = 1; }, Int64List { repeated int64 value = 1 [packed]; }.
std::string BytesFeature(std::string_view value) {
  std::string list, feature;
  PutField(list, 1, value);
  PutField(feature, 1, list);
  return feature;
}

std::string IntegerFeature(int64_t value) {
  std::string packed, list, feature;
  PutVarint(packed, static_cast<uint64_t>(value));
  PutField(list, 1, packed);
  PutField(feature, 3, list);
  return feature;
}

// Features { map<string, Feature> feature = 1; }: a map is repeated entries { key = 1; value = 2; }.
void PutFeature(std::string& features, std::string_view key, const std::string& feature) {
  std::string entry;
  PutField(entry, 1, key);
  PutField(entry, 2, feature);
  PutField(features, 1, entry);
}

// The front of image/encoded's map entry, up to the picture's own bytes.
std::string EncodedFront(int64_t picture_bytes) {
  const auto front_of = [](int number, size_t length) {
    std::string front;
    PutVarint(front, static_cast<uint64_t>(number) << 3 | 2);
    PutVarint(front, length);
    return front;
  };
  const auto size = static_cast<size_t>(picture_bytes);
  const std::string value = front_of(1, size);
  const std::string list = front_of(1, value.size() + size) + value;
  const std::string feature = front_of(2, list.size() + size) + list;
  std::string key;
  PutField(key, 1, "image/encoded");
  return front_of(1, key.size() + feature.size() + size) + key + feature;
}

std::string_view FormatName(std::string_view extension) {
  const auto found =
      std::ranges::find(image::kPictureFormats, extension, &image::PictureFormatFacts::extension);
  return found == image::kPictureFormats.end() ? extension : found->record_name;
}

Frame TfrecordFrame(const SetFacts& facts, const SetEntry& entry, std::span<const std::byte> picture,
                    std::string_view extension) {
  std::string first, last;  // features before image/encoded and after it
  if (entry.label) {
    PutFeature(first, "image/class/label", IntegerFeature(*entry.label));
    if (static_cast<size_t>(*entry.label) < facts.classes.size()) {
      PutFeature(first, "image/class/text", BytesFeature(facts.classes[static_cast<size_t>(*entry.label)]));
    }
  }
  first += EncodedFront(std::ssize(picture));
  PutFeature(last, "image/filename", BytesFeature(entry.source));
  PutFeature(last, "image/format", BytesFeature(FormatName(extension)));
  if (entry.width > 0) {
    PutFeature(last, "image/height", IntegerFeature(entry.height));
    PutFeature(last, "image/width", IntegerFeature(entry.width));
  }
  // Example { Features features = 1; }
  const size_t features = first.size() + picture.size() + last.size();
  std::string example;
  PutVarint(example, 1 << 3 | 2);
  PutVarint(example, features);
  example += first;

  Frame frame;
  Put(frame.before, static_cast<uint64_t>(example.size() + picture.size() + last.size()));
  Put(frame.before, MaskCrc32c(Crc32c(BytesOf(frame.before))));
  frame.before += example;
  const uint32_t crc = Crc32c(BytesOf(last), Crc32c(picture, Crc32c(BytesOf(example))));
  frame.after = last;
  Put(frame.after, MaskCrc32c(crc));
  return frame;
}

}  // namespace

Frame MakeFrame(const SetFacts& facts, const SetEntry& entry, std::span<const std::byte> picture,
                std::string_view extension) {
  switch (facts.format) {
    case SetFormat::kTar:
      return TarFrame(facts, entry, std::ssize(picture), extension);
    case SetFormat::kTfrecord:
      return TfrecordFrame(facts, entry, picture, extension);
    case SetFormat::kRaw:
      return {"", std::string(static_cast<size_t>(facts.record_stride()) - picture.size(), '\0')};
    case SetFormat::kFiles:
      break;
  }
  CHECK(facts.format != SetFormat::kFiles);
  return {};
}

std::string ShardBegin(const SetFacts& facts, int64_t first, int64_t records) {
  return facts.format == SetFormat::kRaw ? FormatShardHeader(facts, first, records) : "";
}

std::string ShardEnd(SetFormat format) {
  return format == SetFormat::kTar ? std::string(2 * kTarBlock, '\0') : "";
}

std::string ShardPath(SetFormat format, int64_t shard) {
  return fmt::format("shards/{:06}.{}", shard, ToString(format));
}

std::string IndexBegin() {
  std::string begin = "WEIRIDX1";
  Put(begin, static_cast<uint32_t>(kIndexBegin));
  Put(begin, static_cast<uint32_t>(kIndexStep));
  begin.resize(kIndexBegin, '\0');
  return begin;
}

std::string IndexLine(int64_t shard, const SetEntry& entry) {
  uint64_t hash = 0;
  std::from_chars(entry.hash.data(), entry.hash.data() + std::min<size_t>(entry.hash.size(), 16), hash, 16);
  std::string line;
  Put(line, static_cast<uint32_t>(shard));
  Put(line, static_cast<int32_t>(entry.label.value_or(-1)));
  Put(line, static_cast<uint64_t>(entry.offset));
  Put(line, static_cast<uint64_t>(entry.bytes));
  Put(line, hash);
  return line;
}

std::string_view ExtensionOf(image::PictureFormat format) { return image::FactsOf(format).extension; }

}  // namespace weir::dataset
