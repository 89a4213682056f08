// Chance from one number. A run has one Seed, printed and recorded; every use of chance takes a named stream
// of it.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir {

// A source of random numbers (xoshiro256**, Blackman and Vigna 2018, seeded by splitmix64). The same seed
// gives the same numbers on every machine: no standard-library distribution is used. One thread at a time.
class Random {
 public:
  explicit Random(uint64_t seed);
  uint64_t Next();
  double Uniform();  // [0, 1)
  double Uniform(double low, double high);
  int64_t Integer(int64_t low, int64_t high);  // [low, high], both included; low <= high
  double Normal();                             // mean 0, variance 1 (Box and Muller)

 private:
  uint64_t state_[4];
  double spare_ = 0;
  bool has_spare_ = false;
};

class Seed {
 public:
  explicit constexpr Seed(uint64_t value) : value_(value) {}
  uint64_t value() const { return value_; }

  // An independent stream for one purpose, or for one item of many.
  Seed Stream(std::string_view purpose) const;
  Seed Stream(uint64_t index) const;
  Random MakeRandom() const { return Random(value_); }

 private:
  uint64_t value_;
};

}  // namespace weir
