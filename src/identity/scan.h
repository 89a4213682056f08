// The two inner loops of a look-up: Hamming distance over sign codes, and products of int8 rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::identity {

// Sign codes lie in groups of eight rows, word by word: word w of row r is codes[(r / 8) * 8 * words + 8 * w
// + r % 8].
constexpr size_t kGroup = 8;

inline size_t WordsOf(size_t dimension) { return (dimension + 63) / 64; }
// Returns the 64-bit words that the codes of `rows` rows take, whole groups.
inline size_t CodeWords(size_t rows, size_t dimension) {
  return (rows + kGroup - 1) / kGroup * kGroup * WordsOf(dimension);
}

struct Candidate {
  uint32_t distance = 0;  // bits that differ
  uint64_t row = 0;
};

// Keeps the `wanted` rows of least distance. One thread at a time.
class Nearest {
 public:
  explicit Nearest(size_t wanted);
  uint32_t bound() const { return bound_; }  // a row must be nearer than this to be kept
  void Add(Candidate candidate);
  std::vector<Candidate> Take();  // at most `wanted`, nearest first, equal distances by row

 private:
  void Shrink();
  size_t wanted_;
  uint32_t bound_ = UINT32_MAX;
  std::vector<Candidate> kept_;
};

// Offers rows [first, last) to the Nearest of each query, in one pass over the codes. `first` is a multiple
// of kGroup. `queries` has WordsOf(dimension) words for each of `nearest`.
void ScanCodes(const uint64_t* codes, size_t first, size_t last, size_t words, const uint64_t* queries,
               std::span<Nearest> nearest);

// Returns the sum of a[i] * b[i]. Values lie in [-127, 127]; `size` is at most 65,536, so the sum fits.
int32_t Product(const int8_t* a, const int8_t* b, size_t size);

}  // namespace weir::identity
