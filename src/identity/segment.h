// A sealed file of identities: never changed, written whole, mapped for look-ups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace weir::identity {

constexpr size_t kMaxDimension = 65536, kMaxName = 1024;

// A unit vector as the index keeps it: value[i] * scale approximates the vector.
struct Row {
  std::string name;
  std::vector<int8_t> values;
  float scale = 0;
  std::vector<uint64_t> signs;  // WordsOf(dimension) words
};

// Scales `vector` to length 1 and quantises it. kInvalidArgument for a length of zero, values that are not
// finite, and names that are empty, longer than kMaxName or hold a control character.
Result<Row> MakeRow(std::string_view name, std::span<const float> vector);

// The parts of a segment's bytes. They point into those bytes.
struct SegmentView {
  size_t dimension = 0;
  uint64_t rows = 0;
  const int8_t* values = nullptr;          // rows x dimension
  const float* scales = nullptr;           // rows
  const uint64_t* codes = nullptr;         // CodeWords(rows, dimension)
  const uint64_t* name_offsets = nullptr;  // rows + 1
  const char* names = nullptr;
  std::string_view name(uint64_t row) const {
    return {names + name_offsets[row], name_offsets[row + 1] - name_offsets[row]};
  }
};

// Checks the header, the lengths of the sections, the checksum of every block and the names' offsets. `bytes`
// start on an 8-byte boundary. kCorrupt says which of them is wrong.
Result<SegmentView> ParseSegment(std::span<const std::byte> bytes);

// Writes one segment, row by row. One thread at a time. Without Finish the file stays absent.
class SegmentWriter {
 public:
  static Result<SegmentWriter> Open(const std::string& path, size_t dimension);
  SegmentWriter(SegmentWriter&&) = default;
  SegmentWriter& operator=(SegmentWriter&&) = delete;
  ~SegmentWriter();
  Status Add(const Row& row);
  Status Finish();  // waits for the disk, then gives the file its name
  uint64_t rows() const { return scales_.size(); }

 private:
  SegmentWriter(std::string path, std::string beside, UniqueFd fd, size_t dimension);
  Status Put(std::span<const std::byte> bytes);
  Status Flush();

  std::string path_, beside_;
  UniqueFd fd_;
  size_t dimension_;
  std::vector<float> scales_;
  std::vector<uint64_t> codes_, offsets_{0};
  std::string names_;
  std::vector<std::byte> block_;
  std::vector<uint32_t> checksums_;
};

// A mapped segment. Threads: any, once opened.
class Segment {
 public:
  static Result<std::shared_ptr<const Segment>> Open(const std::string& path);
  Segment(const Segment&) = delete;
  ~Segment();
  const SegmentView& view() const { return view_; }

 private:
  Segment() = default;
  void* memory_ = nullptr;
  size_t size_ = 0;
  SegmentView view_;
};

// Writes a file that only its owner may read; whole or not at all, and on the disk when it returns.
Status WritePrivateFile(const std::string& path, std::string_view contents);
Status SyncFolder(const std::string& path);
Status WriteAll(int fd, const std::string& path, std::span<const std::byte> bytes);

}  // namespace weir::identity
