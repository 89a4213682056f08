// Where samples come from: prepared sets, folders by classes, stores, arrays, and the seam for more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "feed/picture.h"
#include "image/reject.h"

namespace weir::feed {

class FileIndex;

// Memory to read into, kept between samples. One thread at a time.
class ReadBuffer {
 public:
  // Returns `size` bytes whose contents mean nothing. The bytes of the last call become invalid.
  std::span<std::byte> Get(size_t size);

 private:
  std::unique_ptr<std::byte[]> data_;
  size_t capacity_ = 0;
};

// Records of one form: arrays of numbers, as numpy has them.
struct RecordForm {
  std::string type;            // numpy's name of the numbers and their byte order: "<f4", "|u1"
  std::vector<int64_t> shape;  // of one record
  size_t bytes = 0;            // of one record
  bool operator==(const RecordForm&) const = default;
};

// Reads of many samples at a time, none of which holds a thread. Thread-safe.
class SampleReads {
 public:
  using Done = std::move_only_function<void(image::Accepted<Bytes>)>;
  // Once it is destroyed, no `done` is called.
  virtual ~SampleReads() = default;
  // Begins to read a sample. `done` is called once, from any thread; it must not block. The bytes are not
  // checked (Source::Check).
  virtual void Start(int64_t sample, Done done) = 0;
};

// A fixed list of samples. Thread-safe. Implement it to feed from elsewhere: a database, a service.
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
  // Returns the bytes of a sample, checked: an encoded picture, or a raw record. They are valid until
  // `buffer` is used again. May block; called from several threads at once. A reject kUnreachable says that
  // the source and not the sample is at fault: the feed ends with it under any policy.
  virtual image::Accepted<std::span<const std::byte>> Read(int64_t sample, ReadBuffer& buffer) const = 0;
  // Rejects bytes that are not those that the set tells of.
  virtual image::Accepted<void> Check(int64_t, std::span<const std::byte>) const { return {}; }
  // Returns a number that is the same for the same contents, in any set and run; 0: not known before the
  // sample is read.
  virtual uint64_t Version(int64_t) const { return 0; }
  // Makes reads of which `depth` may be under way. kUnsupported if the source, or this system, has none.
  virtual Result<std::unique_ptr<SampleReads>> ReadMany(int depth) const;
  // Returns how many reads are best under way at a time; 0: each thread reads its own sample.
  virtual int reads_wanted() const { return 0; }
  // Returns the shape of raw pictures; nullopt for encoded pictures and for records.
  virtual std::optional<RawShape> raw() const { return std::nullopt; }
  // Returns the form of records that are no pictures; nullopt for pictures.
  virtual std::optional<RecordForm> records() const { return std::nullopt; }
  // Returns the list of the files that are the samples; null if they are no files.
  virtual const FileIndex* files() const { return nullptr; }
  // Returns 32 hex digits that are the same for the same samples in the same order.
  virtual const std::string& hash() const = 0;
};

struct SourceOptions {
  // File that keeps the list of a folder's files, so that the next start need not look for them. It is made
  // if it is missing, and refused if it is another set's. Empty: none.
  std::string index;
  // Compares each sample with the hash that its set has of it.
  bool verify = true;
};

// Opens what `path` names:
//
// - a prepared set in any of its formats, in a folder, or below a URL of s3, http or https
// - a folder by classes: each folder in it is a class, in byte order of their names, with its pictures at any
//   depth; a folder without folders is a set without classes. The same below s3://BUCKET/PREFIX.
// - an array of numpy, FILE.npy, or a folder of them: one record for each step of the first dimension
//
// kNotFound; kCorrupt names what is wrong with a set; kInvalidArgument for an empty one; of a store the
// errors of object::RequestLoop.
Result<std::shared_ptr<const Source>> OpenSource(const std::string& path, const SourceOptions& options);

// Opens the masks of a set of pictures: for each picture of `pictures` the picture below `path` with the same
// path in its set, the ending apart. kNotFound names the first picture that has none.
Result<std::shared_ptr<const Source>> OpenMasks(const std::string& path, const Source& pictures,
                                                const SourceOptions& options);

}  // namespace weir::feed
