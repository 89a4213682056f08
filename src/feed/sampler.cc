#include "feed/sampler.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "feed/chance.h"

namespace weir::feed {

struct Sampler::State {
  SamplerOptions options;
  uint64_t samples = 0;      // of the set or its subset
  uint64_t positions = 0;    // of an epoch
  std::vector<double> sums;  // weights up to and with each sample
  // Samples by class, one class after the other, and where each class begins (one more at the end).
  std::vector<uint32_t> by_class;
  std::vector<uint64_t> class_begins;
  uint64_t labels_hash = 0;
};

namespace {

constexpr int64_t kMostSamples = int64_t{1} << 32;

std::unexpected<Error> Refuse(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

// Number `i` of the samples in use, as the set counts it.
int64_t InSet(const SamplerOptions& options, uint64_t i) {
  return options.subset ? (*options.subset)[i] : static_cast<int64_t>(i);
}

Status CheckSubset(const std::vector<int64_t>& subset, int64_t count) {
  if (subset.empty()) return Refuse("the subset names no sample");
  for (const int64_t sample : subset) {
    if (sample < 0 || sample >= count)
      return Refuse(fmt::format("the subset names sample {}, and the set has 0 to {}", sample, count - 1));
  }
  return {};
}

}  // namespace

Result<Sampler> Sampler::Make(SamplerOptions options, int64_t count, const std::vector<int32_t>& labels) {
  if (count <= 0) return Refuse("the set is empty");
  if (count > kMostSamples) return Refuse(fmt::format("{} samples: the most is 2^32", count));
  if (options.subset) TRY_STATUS(CheckSubset(*options.subset, count));
  if (options.block < 1 || options.window < 1) return Refuse("block and window must be at least 1");
  auto state = std::make_shared<State>();
  state->samples = options.subset ? options.subset->size() : static_cast<uint64_t>(count);
  state->positions = state->samples;
  state->options = std::move(options);
  const SamplerOptions& kept = state->options;

  if (kept.sampling == Sampling::kWeighted) {
    if (std::ssize(kept.weights) != count)
      return Refuse(fmt::format("{} weights for {} samples: give one for each", kept.weights.size(), count));
    double sum = 0;
    for (uint64_t i = 0; i < state->samples; ++i) {
      const double weight = kept.weights[static_cast<size_t>(InSet(kept, i))];
      if (!(weight >= 0) || !std::isfinite(weight))
        return Refuse(fmt::format("the weight of sample {} is {}: it must be a number of at least 0",
                                  InSet(kept, i), weight));
      state->sums.push_back(sum += weight);
    }
    if (!(sum > 0) || !std::isfinite(sum)) return Refuse("the weights add up to no positive number");
  }
  if (kept.sampling == Sampling::kBalanced) {
    if (std::ssize(labels) != count) return Refuse("balanced sampling needs a set with labels");
    std::map<int32_t, uint64_t> counts;  // labels may be any numbers, with gaps between them
    for (uint64_t i = 0; i < state->samples; ++i) {
      const int32_t label = labels[static_cast<size_t>(InSet(kept, i))];
      if (label >= 0) ++counts[label];
    }
    if (counts.empty()) return Refuse("balanced sampling needs samples with labels");
    state->class_begins.push_back(0);
    for (auto& [label, next] : counts) {  // from here on: where the class's next sample goes
      const uint64_t begin = state->class_begins.back();
      state->class_begins.push_back(begin + next);
      next = begin;
    }
    state->by_class.resize(state->class_begins.back());
    for (uint64_t i = 0; i < state->samples; ++i) {
      const int32_t label = labels[static_cast<size_t>(InSet(kept, i))];
      if (label >= 0) state->by_class[counts.at(label)++] = static_cast<uint32_t>(i);
    }
    const uint64_t used = state->class_begins.size() - 1;
    state->positions = std::max<uint64_t>(1, state->samples / used) * used;
    state->labels_hash = XXH3_64bits(labels.data(), labels.size() * sizeof(labels[0]));
  }
  return Sampler(std::move(state));
}

const SamplerOptions& Sampler::options() const { return state_->options; }
int64_t Sampler::size() const { return static_cast<int64_t>(state_->positions); }
bool Sampler::repeats() const {
  return state_->options.sampling == Sampling::kWeighted || state_->options.sampling == Sampling::kBalanced ||
         state_->options.subset.has_value();
}

EpochOrder Sampler::MakeEpoch(uint64_t seed, uint64_t epoch) const { return {state_, seed, epoch}; }

std::string Sampler::Canonical() const {
  const SamplerOptions& o = state_->options;
  std::string text = fmt::format("sampler 1 {}", ToString(o.sampling));
  if (o.sampling == Sampling::kBlocks) text += fmt::format(" {} {}", o.block, o.window);
  if (o.sampling == Sampling::kWeighted)
    text += fmt::format(" {:016x}", XXH3_64bits(o.weights.data(), o.weights.size() * sizeof(double)));
  if (o.sampling == Sampling::kBalanced) text += fmt::format(" {:016x}", state_->labels_hash);
  if (o.subset)
    text += fmt::format(" subset {:016x}", XXH3_64bits(o.subset->data(), o.subset->size() * sizeof(int64_t)));
  return text;
}

namespace {

uint64_t BlockCount(uint64_t samples, int64_t block) {
  const auto size = static_cast<uint64_t>(block);
  return (samples + size - 1) / size;
}

}  // namespace

EpochOrder::EpochOrder(std::shared_ptr<const Sampler::State> state, uint64_t seed, uint64_t epoch)
    : state_(std::move(state)),
      seed_(seed),
      epoch_(epoch),
      outer_(KeyFor(0, 0), state_->options.sampling == Sampling::kBlocks
                               ? BlockCount(state_->samples, state_->options.block)
                               : state_->samples) {
  if (state_->options.sampling == Sampling::kBlocks) short_slot_ = outer_.PositionOf(outer_.count() - 1);
}

int64_t EpochOrder::size() const { return static_cast<int64_t>(state_->positions); }

uint64_t EpochOrder::KeyFor(uint64_t purpose, uint64_t index) const {
  return Mix(Mix(Mix(Mix(seed_) ^ epoch_) ^ purpose) ^ index);
}

int64_t EpochOrder::At(int64_t position) const {
  CHECK(position >= 0 && position < size());
  const auto place = static_cast<uint64_t>(position);
  uint64_t sample = place;
  switch (state_->options.sampling) {
    case Sampling::kSequential:
      break;
    case Sampling::kGlobal:
      sample = outer_.At(place);
      break;
    case Sampling::kBlocks:
      sample = InBlocks(place);
      break;
    case Sampling::kWeighted:
      sample = Weighted(place);
      break;
    case Sampling::kBalanced:
      sample = Balanced(place);
      break;
  }
  return InSet(state_->options, sample);
}

// A slot is a block's place in the epoch. All slots hold `block` samples but the one of the last block.
uint64_t EpochOrder::InBlocks(uint64_t position) const {
  const auto block = static_cast<uint64_t>(state_->options.block);
  const auto window = static_cast<uint64_t>(state_->options.window);
  const uint64_t blocks = outer_.count();
  const uint64_t missing = blocks * block - state_->samples;  // of the last block
  const auto slot_begin = [&](uint64_t slot) { return slot * block - (slot > short_slot_ ? missing : 0); };
  const auto slot_of = [&](uint64_t place) {
    if (place < slot_begin(short_slot_)) return place / block;
    if (place < slot_begin(short_slot_ + 1)) return short_slot_;
    return (place + missing) / block;
  };
  const uint64_t group = slot_of(position) / window;
  const uint64_t begin = slot_begin(group * window);
  const uint64_t end = slot_begin(std::min(blocks, (group + 1) * window));
  const uint64_t mixed = begin + Permutation(KeyFor(1, group), end - begin).At(position - begin);
  const uint64_t slot = slot_of(mixed);
  return outer_.At(slot) * block + (mixed - slot_begin(slot));
}

uint64_t EpochOrder::Balanced(uint64_t position) const {
  const uint64_t classes = state_->class_begins.size() - 1;
  const uint64_t turn = position / classes;
  const uint64_t chosen = Permutation(KeyFor(2, turn), classes).At(position % classes);
  const uint64_t begin = state_->class_begins[chosen], count = state_->class_begins[chosen + 1] - begin;
  // Each class goes through its samples in a new order as often as the epoch needs.
  const uint64_t key = KeyFor(3, chosen << 32 ^ turn / count);
  return state_->by_class[begin + Permutation(key, count).At(turn % count)];
}

uint64_t EpochOrder::Weighted(uint64_t position) const {
  Chance chance(seed_, epoch_, position, Operation::kWeighted);
  const std::vector<double>& sums = state_->sums;
  const double drawn = chance.Uniform() * sums.back();
  const auto found = std::ranges::upper_bound(sums, drawn);  // never a sample of weight 0
  const auto last = std::ranges::lower_bound(sums, sums.back());
  return static_cast<uint64_t>(std::min(found, last) - sums.begin());
}

namespace {

std::optional<double> SerialCorrelation(const std::vector<int64_t>& samples) {
  if (samples.size() < 3) return std::nullopt;
  const size_t pairs = samples.size() - 1;
  double mean_x = 0, mean_y = 0;
  for (size_t i = 0; i < pairs; ++i) {
    mean_x += static_cast<double>(samples[i]) / static_cast<double>(pairs);
    mean_y += static_cast<double>(samples[i + 1]) / static_cast<double>(pairs);
  }
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < pairs; ++i) {
    const double x = static_cast<double>(samples[i]) - mean_x,
                 y = static_cast<double>(samples[i + 1]) - mean_y;
    xx += x * x;
    yy += y * y;
    xy += x * y;
  }
  if (!(xx > 0) || !(yy > 0)) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

double MeanClasses(const std::vector<int32_t>& labels, size_t batch) {
  double total = 0;
  size_t batches = 0;
  for (size_t begin = 0; begin + batch <= labels.size(); begin += batch, ++batches) {
    total += static_cast<double>(std::set<int32_t>(labels.begin() + static_cast<int64_t>(begin),
                                                   labels.begin() + static_cast<int64_t>(begin + batch))
                                     .size());
  }
  return batches == 0 ? 0 : total / static_cast<double>(batches);
}

// The number of different classes expected in a batch drawn with replacement from `counts`.
double ExpectedClasses(const std::unordered_map<int32_t, int64_t>& counts, size_t samples, size_t batch) {
  double expected = 0;
  for (const auto& [label, count] : counts) {
    const double share = static_cast<double>(count) / static_cast<double>(samples);
    expected += 1 - std::pow(1 - share, static_cast<double>(batch));
  }
  return expected;
}

}  // namespace

Mixing MeasureMixing(const EpochOrder& order, int64_t batch, const std::vector<int32_t>& labels,
                     int64_t positions) {
  const int64_t looked = std::min(order.size(), positions);
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < looked; ++i) samples.push_back(order.At(i));
  Mixing mixing;
  mixing.serial_correlation = SerialCorrelation(samples);
  const auto size = static_cast<size_t>(batch);
  if (labels.empty() || samples.size() < size) return mixing;
  std::vector<int32_t> seen;
  for (const int64_t sample : samples) seen.push_back(labels[static_cast<size_t>(sample)]);
  std::unordered_map<int32_t, int64_t> counts;  // of the whole epoch, or an even part of it
  const int64_t step = std::max<int64_t>(1, order.size() / positions);
  size_t counted = 0;
  for (int64_t i = 0; i < order.size(); i += step, ++counted)
    ++counts[labels[static_cast<size_t>(order.At(i))]];
  mixing.class_share = MeanClasses(seen, size) / ExpectedClasses(counts, counted, size);
  return mixing;
}

}  // namespace weir::feed
