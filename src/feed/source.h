// Where samples come from: prepared sets, folders by classes, and the seam for more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "feed/picture.h"
#include "image/reject.h"

namespace weir::feed {

// Memory to read into, kept between samples. One thread at a time.
class ReadBuffer {
 public:
  // Returns `size` bytes whose contents mean nothing. The bytes of the last call become invalid.
  std::span<std::byte> Get(size_t size);

 private:
  std::unique_ptr<std::byte[]> data_;
  size_t capacity_ = 0;
};

// A fixed list of samples. Thread-safe. Implement it to feed from elsewhere: an object store, a database.
class Source {
 public:
  virtual ~Source() = default;

  virtual int64_t size() const = 0;
  // Returns the names of the classes by label; empty where the set has none.
  virtual const std::vector<std::string>& classes() const = 0;
  // Returns the class of a sample, -1 for none. REQUIRES: 0 <= sample < size(); so for the next two.
  virtual int32_t Label(int64_t sample) const = 0;
  // Returns the name of a sample for people: its path, or its shard's path and number. Raw bytes.
  virtual std::string Name(int64_t sample) const = 0;
  // Returns the bytes of a sample: an encoded picture, or a raw record's pixels. They are valid until
  // `buffer` is used again. May block; called from several threads at once.
  virtual image::Accepted<std::span<const std::byte>> Read(int64_t sample, ReadBuffer& buffer) const = 0;
  // Returns the shape of raw records; nullopt for encoded pictures.
  virtual std::optional<RawShape> raw() const { return std::nullopt; }
  // Returns 32 hex digits that are the same for the same samples in the same order.
  virtual const std::string& hash() const = 0;
};

struct SourceOptions {
  // File that keeps the list of a folder's files, so that the next start need not look for them. It is made
  // if it is missing, and refused if it is another set's. Empty: none.
  std::string index;
  // Compares each sample with the hash that its set has of it.
  bool verify = true;
  // Bytes of samples that are kept in memory once they were read (cache.h); 0: none.
  uint64_t cache_bytes = 0;
};

// Opens a prepared set, in any of its formats, or a folder by classes: each folder in it is a class, in byte
// order of their names, with its pictures at any depth; a folder without folders is a set without classes.
// kNotFound; kCorrupt names what is wrong with a set; kInvalidArgument for an empty one.
Result<std::shared_ptr<const Source>> OpenSource(const std::string& path, const SourceOptions& options);

}  // namespace weir::feed
