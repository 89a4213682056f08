// Made embeddings of known structure, so that look-ups have a truth before there are pictures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "identity/vectors_file.h"

namespace weir::identity {

// Identities on a manifold: a point z of `intrinsic` normal variables becomes cos(W z + b) (random Fourier
// features, Rahimi and Recht 2007). The cosine of two of them is about exp(-3 |z - z'|^2 / (2 intrinsic)), so
// strangers are as unlike as exp(-3) on average and their nearest ones are alike, as faces are
// (arXiv 1803.09672: intrinsic dimension near 16). Every vector is a function of the seed and its number.
// Threads: any, once made.
class MadeIdentities {
 public:
  struct Options {
    size_t dimension = 512;
    size_t intrinsic = 16;  // 0: isotropic vectors, which have no structure
    uint64_t seed = 1;
  };
  explicit MadeIdentities(const Options& options);

  static std::string Name(uint64_t number);  // "made-0000012"
  // Returns a vector of length 1.
  std::vector<float> Vector(uint64_t number) const;
  // Returns another vector of the same person, whose cosine with the first is `cosine`: the rest is
  // isotropic.
  std::vector<float> Mate(uint64_t number, double cosine) const;

 private:
  const Options options_;
  std::vector<float> weights_;  // intrinsic x dimension
  std::vector<float> phases_;
};

// Gives the vectors 0 to `count` - 1, made by so many threads.
std::unique_ptr<VectorSource> MakeVectorSource(MadeIdentities made, uint64_t count, int threads);

// Returns a vector of length 1 whose cosine with `vector` (of length 1) is `cosine`, in a direction from
// `seed`.
std::vector<float> PlantMate(const std::vector<float>& vector, double cosine, uint64_t seed);

}  // namespace weir::identity
