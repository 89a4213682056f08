// Which sample stands at which position of an epoch. Pure; every position can be asked for by itself.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/choices.h"
#include "base/error.h"
#include "feed/order.h"

namespace weir::feed {

enum class Sampling {
  kSequential,  // in the set's order
  kGlobal,      // every sample once, in a new order each epoch
  kBlocks,      // blocks of neighbours in a new order, shuffled within windows of blocks
  kWeighted,    // with replacement, each sample in proportion to its weight
  kBalanced,    // every class as often as every other
};
inline constexpr Choices<Sampling, 5> kSamplings{{{Sampling::kSequential, "sequential"},
                                                  {Sampling::kGlobal, "global"},
                                                  {Sampling::kBlocks, "blocks"},
                                                  {Sampling::kWeighted, "weighted"},
                                                  {Sampling::kBalanced, "balanced"}}};
constexpr std::string_view ToString(Sampling sampling) { return WordOf(kSamplings, sampling); }

struct SamplerOptions {
  Sampling sampling = Sampling::kGlobal;
  int64_t block = 1024;         // samples in a block (kBlocks)
  int64_t window = 8;           // blocks that are shuffled together (kBlocks)
  std::vector<double> weights;  // one for each sample of the set (kWeighted)
  // The samples to use, by number, in the order that kSequential gives them; nullopt: all of the set.
  std::optional<std::vector<int64_t>> subset;
};

// The order of one epoch. Thread-safe; a copy is cheap.
class EpochOrder;

// The rule that makes each epoch's order. Immutable and thread-safe. Memory: none for kSequential, kGlobal
// and kBlocks; 8 bytes a sample for kWeighted and for a subset; 4 bytes a sample for kBalanced.
class Sampler {
 public:
  // `count` is the number of samples in the set, `labels` their classes (kBalanced only; -1: none).
  // kInvalidArgument names the option that does not fit: an empty set, weights that are negative, not finite
  // or all 0, a subset's number outside the set, labels missing.
  static Result<Sampler> Make(SamplerOptions options, int64_t count, const std::vector<int32_t>& labels = {});

  const SamplerOptions& options() const;
  // Positions of an epoch. kBalanced: the largest multiple of the number of classes that is no more than the
  // samples, at least one of each class.
  int64_t size() const;
  // True if a sample can stand at several positions of an epoch.
  bool repeats() const;
  EpochOrder MakeEpoch(uint64_t seed, uint64_t epoch) const;
  // A text that is the same for samplers that give the same orders of the same set.
  std::string Canonical() const;

 private:
  friend class EpochOrder;
  struct State;
  explicit Sampler(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

class EpochOrder {
 public:
  // Returns the sample's number in the set. REQUIRES: 0 <= position < size().
  int64_t At(int64_t position) const;
  int64_t size() const;

 private:
  friend class Sampler;
  EpochOrder(std::shared_ptr<const Sampler::State> state, uint64_t seed, uint64_t epoch);
  uint64_t KeyFor(uint64_t purpose, uint64_t index) const;
  uint64_t InBlocks(uint64_t position) const;
  uint64_t Balanced(uint64_t position) const;
  uint64_t Weighted(uint64_t position) const;

  std::shared_ptr<const Sampler::State> state_;
  uint64_t seed_, epoch_;
  Permutation outer_;        // of the samples, or of the blocks
  uint64_t short_slot_ = 0;  // where the last block, which may be short, stands among the blocks
};

// How far an order mixes the set. Pure.
struct Mixing {
  // Pearson's correlation of the sample's number at one position with that at the next. About 0 for a global
  // shuffle, near 1 for the set's own order. Absent for fewer than 3 positions, and where a number never
  // changes.
  std::optional<double> serial_correlation;
  // Mean number of different classes in a batch, over the same of batches drawn by chance from the whole
  // epoch: 1 for a global shuffle. Absent without labels.
  std::optional<double> class_share;
};
// Looks at the first `positions` of an order at most.
Mixing MeasureMixing(const EpochOrder& order, int64_t batch, const std::vector<int32_t>& labels,
                     int64_t positions = 65536);

}  // namespace weir::feed
