// Every measured request as it was timed, in a file that other programs read too.
//
// All numbers are little-endian. The header:
//   0  8 bytes "weirsmpl"
//   8  u32 version, 1
//  12  u32 bytes of a record, 48
//  16  u64 records
//  24  u64 bytes of the header: where the first record begins, a multiple of 8
//  32  JSON text, an object, with spaces up to the end of the header: what was measured
// Then the records, to the end of the file. Moments are nanoseconds since the start that the writer was
// given; planned may lie before it. In Python:
//   magic, version, size, records, header = struct.unpack("<8sIIQQ", file.read(32))
//   about = json.loads(file.read(header - 32))
//   samples = numpy.fromfile(file, numpy.dtype([("planned", "<i8"), ("sent", "<i8"), ("first_byte", "<i8"),
//       ("done", "<i8"), ("request", "<u4"), ("level", "<u4"), ("repeat", "<u4"), ("outcome", "<u4")]),
//       records)
// `outcome` is the number of a load::Outcome: 0 answered, 1 wrong_answer, 2 timeout, 3 refused, 4 connection,
// 5 rejected, 6 server, 7 unsent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "load/generator/sample.h"

namespace weir::load {

// Written beside its path and renamed at Finish: after a kill at any moment what was there before is there,
// or the whole. One thread at a time. Without Finish nothing stays.
class SampleFile {
 public:
  struct Header {
    Instant start;                // moment 0
    Json about = Json::object();  // what the levels are, at the least; text in it that is not UTF-8 must have
                                  // gone through EscapeBytes
  };
  // kInvalidArgument where the path is there and is not a regular file, or `about` is larger than 16 MiB; kIo
  // and kNotFound as the system says. REQUIRES: an object.
  static Result<std::unique_ptr<SampleFile>> Create(const std::string& path, const Header& header);
  ~SampleFile();
  SampleFile(const SampleFile&) = delete;
  SampleFile& operator=(const SampleFile&) = delete;

  // Through a buffer of a MiB. The first error is that of every later call. REQUIRES: not finished; level and
  // repeat from 0.
  Status Write(int level, int repeat, std::span<const Sample> samples);
  // Puts the file in its place. REQUIRES: not finished.
  Status Finish();

 private:
  SampleFile(std::string path, std::string beside, UniqueFd fd, Instant start);
  Status Put(std::span<const std::byte> bytes, uint64_t offset);
  Status Flush();

  const std::string path_, beside_;
  const Instant start_;
  UniqueFd fd_;
  std::vector<std::byte> buffer_;
  uint64_t written_ = 0;  // bytes of the file
  uint64_t records_ = 0;
  Status status_;
  bool finished_ = false;
};

struct SampleRecord {
  Sample sample;  // its moments count from Instant{}
  int level = 0;
  int repeat = 0;
};

// Believes nothing that it reads. One thread at a time.
class SampleReader {
 public:
  // Reads the header. kCorrupt where it is none, or the file is not as long as it says; kUnsupported for
  // another version; kNotFound, kInvalidArgument and kIo as ReadFile.
  static Result<SampleReader> Open(const std::string& path);
  static Result<SampleReader> OpenBytes(Bytes bytes);

  const Json& about() const { return about_; }
  uint64_t records() const { return records_; }

  // The next records, in the order of writing, and how many they are: fewer than fit only at
  // the end. kCorrupt names the record (from 0) whose outcome, level or repeat there is not, whose moments
  // are beyond 146 years, or that was done before it was sent; then nothing after the last call is read.
  Result<size_t> Next(std::span<SampleRecord> records);

 private:
  struct Source {
    Status ReadAt(uint64_t offset, std::span<std::byte> bytes) const;

    std::string path;  // empty: of memory
    UniqueFd fd;
    Bytes bytes;
    uint64_t size = 0;
  };
  static Result<SampleReader> Open(Source source);
  explicit SampleReader(Source source) : source_(std::move(source)) {}

  Source source_;
  Json about_;
  uint64_t header_bytes_ = 0;
  uint64_t records_ = 0;
  uint64_t next_ = 0;  // record
  std::vector<std::byte> buffer_;
};

}  // namespace weir::load
