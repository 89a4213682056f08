// Random numbers by counter. A number depends on its key alone, so no thread, process or rank can change it.
#pragma once

#include <array>
#include <cstdint>

namespace weir::feed {

// Mixes 64 bits; the finaliser of SplitMix64 (Steele, Lea and Flood 2014).
constexpr uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// The uses of chance. Each draws from numbers of its own, so a new operation never changes the draws of
// another. The values are part of the order that a state resumes: never renumber them.
enum class Operation : uint32_t {
  kOrder = 1,
  kWeighted = 2,
  kReplace = 3,
  kCrop = 16,
  kFlip = 17,
  kVerticalFlip = 18,
  kRotation = 19,
  kJitter = 20,
  kGrayscale = 21,
  kUser = 1024,  // those of PixelOperation count from here
};

// One block of Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").
std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// The random numbers of one operation on one sample in one epoch. A value of 32 bytes; one thread at a time.
class Chance {
 public:
  // `item` is the sample's number, or whatever else tells two draws of an epoch apart.
  Chance(uint64_t seed, uint64_t epoch, uint64_t item, Operation operation);

  uint32_t Next();
  // Returns a number in [0, 1) with 53 random bits.
  double Uniform();
  // Returns a number in [low, high).
  double Uniform(double low, double high);
  // Returns a whole number in [low, high], both included. REQUIRES: low <= high.
  int64_t Integer(int64_t low, int64_t high);

 private:
  const std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  uint32_t used_ = 4;
};

}  // namespace weir::feed
