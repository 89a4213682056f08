// The two inner loops of a look-up: scores from few-bit codes, and products of int8 rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::identity {

// Codes lie in groups of 32 rows, column by column: a column holds one byte of each row. The byte of slot s
// of a group is byte (s % 16) * 2 + s / 16 of the column.
constexpr size_t kGroup = 32;
inline size_t BytePlace(size_t slot) { return slot % 16 * 2 + slot / 16; }

// A query as look-up tables for the 4-bit halves of the code bytes (the "fast scan" of Andre, Kermarrec and
// Le Scouarnec, VLDB 2015): the product of the query and a row's code is about bias + step * sum of its
// entries.
struct QueryTables {
  std::vector<uint8_t> entries;  // 2 tables of 16 entries for each column, low half first; at most 127 each
  float step = 0, bias = 0;
};

struct Candidate {
  float score = 0;
  uint32_t segment = 0;
  uint64_t row = 0;
};

// Keeps the `wanted` rows of the highest score. One thread at a time.
class Highest {
 public:
  explicit Highest(size_t wanted);
  float bound() const { return bound_; }  // a row must score more than this to be kept
  void Add(Candidate candidate);
  std::vector<Candidate> Take();  // at most `wanted`, best first, equal scores by segment and row

 private:
  void Shrink();
  size_t wanted_;
  float bound_ = -1e30F;
  std::vector<Candidate> kept_;
};

// One list of rows for one query.
struct ScanJob {
  const uint8_t* codes = nullptr;  // whole groups of `columns` columns
  const float* factors = nullptr;  // one for each slot of the groups
  size_t rows = 0;
  size_t columns = 0;
  uint64_t first_row = 0;  // the number of the first row
  uint32_t segment = 0;
};

// Offers each row with the score base + factor * (bias + step * sum) to `highest`.
void ScanList(const ScanJob& job, const QueryTables& tables, float base, Highest& highest);

// Returns the sum of a[i] * b[i]. Values lie in [-127, 127]; `size` is at most 65,536, so the sum fits.
int32_t Product(const int8_t* a, const int8_t* b, size_t size);

// Writes Product(vector, rows + r * size, size) for each of `count` rows.
void Products(const int8_t* vector, const int8_t* rows, size_t size, size_t count, int32_t* products);

}  // namespace weir::identity
