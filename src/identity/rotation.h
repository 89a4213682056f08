// A fixed random rotation that spreads each vector's energy over all of its values.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace weir::identity {

// An orthogonal map of R^dimension: four rounds of random signs and a Walsh-Hadamard transform, which covers
// the first and the last 2^k values in turn (the "FHT-Kac" rotation of the RaBitQ library without its Kac
// steps). It depends on the dimension alone, so it is part of the file format. Cosines stay as they are.
// Few-bit codes need it: without it, vectors whose energy lies in few values would lose nearly all of it.
// Threads: any, once made.
class Rotation {
 public:
  explicit Rotation(size_t dimension);  // at least 1
  size_t dimension() const { return dimension_; }
  // `vector` has dimension() values and is changed in place.
  void Apply(std::span<float> vector) const;
  void Undo(std::span<float> vector) const;

 private:
  static constexpr int kRounds = 4;
  void Transform(float* values) const;  // its own inverse

  size_t dimension_, power_ = 1;
  float scale_;               // of one transform
  std::vector<float> signs_;  // kRounds x dimension_, each 1 or -1
};

}  // namespace weir::identity
