// Embeddings with names, as people bring them and take them away.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "identity/log.h"

namespace weir::identity {

// Parses one line {"name": "...", "embedding": [...]}; "name" may be absent for a query.
Result<Enrolment> ParseVectorLine(std::string_view line);
// Parses JSON lines; empty lines are skipped. kCorrupt names the line, from 1.
Result<std::vector<Enrolment>> ParseVectorLines(std::string_view text);
std::string FormatVectorLine(const Enrolment& row);

// The head of a NumPy file (format versions 1 to 3) of two dimensions.
struct NpyHeader {
  size_t data_offset = 0;  // bytes before the values
  uint64_t rows = 0, columns = 0;
};
// Parses the beginning of a file. kUnsupported for another type than little-endian float32 in C order, with
// the remedy; kCorrupt for what is no such file.
Result<NpyHeader> ParseNpyHeader(std::string_view bytes);

// Vectors in order, some at a time. One thread at a time.
class VectorSource {
 public:
  virtual ~VectorSource() = default;
  // Returns at most `most` vectors; none at the end.
  virtual Result<std::vector<Enrolment>> Next(size_t most) = 0;
};

// Opens "FILE.npy", whose names stand in `names`, one a line (empty: numbers from 0), or JSON lines ("-":
// standard input). Errors name the file and the line.
Result<std::unique_ptr<VectorSource>> OpenVectors(const std::string& path, const std::string& names);

// Reads all vectors of a file. Returns none for an empty path.
Result<std::vector<Enrolment>> ReadVectors(const std::string& path);

// Returns a source of the same vectors. Sets `dimension` to that of the first one where it is 0.
// kInvalidArgument for a source without vectors.
Result<std::unique_ptr<VectorSource>> PeekDimension(std::unique_ptr<VectorSource> source, int& dimension);

}  // namespace weir::identity
