// A picture's form inside a shard: its own bytes, and the bytes around them. Pure functions, so
// that a writer, a resumed writer, and whoever checks a set agree to the byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "dataset/set.h"
#include "image/decode.h"

namespace weir::dataset {

// A record is `before`, the picture's bytes, `after`.
struct Frame {
  std::string before, after;
};

// Returns the bytes around the record that holds `picture` and stands in the manifest as `entry`, whose
// record, source, label, source_hash, hash, width and height are used; `extension` is that of the picture's
// format, without the dot. Nothing of it depends on where the record stands. REQUIRES: a format with shards.
//
// tar, as WebDataset wants it: the members KEY.EXTENSION, KEY.cls (the label as text; none without a label)
// and KEY.json, one after the other, KEY being the record's number in eight digits.
// tfrecord: a tf.Example of image/encoded, image/format, image/height, image/width, image/filename (the
// source) and, where known, image/class/label and image/class/text, between the length and the CRCs.
// raw: the pixels, and zeros to the stride.
Frame MakeFrame(const SetFacts& facts, const SetEntry& entry, std::span<const std::byte> picture,
                std::string_view extension);

// The bytes a finished shard begins with (raw: its header; else none) and ends with (tar: two empty blocks).
std::string ShardBegin(const SetFacts& facts, int64_t first, int64_t records);
std::string ShardEnd(SetFormat format);

// shards/000012.tar
std::string ShardPath(SetFormat format, int64_t shard);

// One line of index.bin, 32 bytes, little-endian: u32 shard, i32 label (-1: none), u64 offset of the
// picture's bytes in the shard, u64 their number, u64 the first half of their hash. The file begins with 64
// bytes: "WEIRIDX1", u32 64, u32 32, then zeros.
inline constexpr int64_t kIndexBegin = 64, kIndexStep = 32;
std::string IndexBegin();
std::string IndexLine(int64_t shard, const SetEntry& entry);

// The extension that a format's files have, without the dot.
std::string_view ExtensionOf(image::PictureFormat format);

}  // namespace weir::dataset
