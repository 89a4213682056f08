#include "identity/made.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/seed.h"
#include "identity/team.h"

namespace weir::identity {
namespace {

void Normalise(std::vector<float>& vector) {
  double squares = 0;
  for (const float value : vector) squares += static_cast<double>(value) * static_cast<double>(value);
  const auto scale = static_cast<float>(1 / std::sqrt(squares));
  for (float& value : vector) value *= scale;
}

class MadeSource final : public VectorSource {
 public:
  MadeSource(MadeIdentities made, uint64_t count, int threads)
      : made_(std::move(made)), count_(count), team_(threads) {}
  Result<std::vector<Enrolment>> Next(size_t most) override {
    std::vector<Enrolment> rows(std::min<uint64_t>(most, count_ - next_));
    team_.ForEachPart(rows.size(), 64, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i)
        rows[i] = {MadeIdentities::Name(next_ + i), made_.Vector(next_ + i)};
    });
    next_ += rows.size();
    return rows;
  }

 private:
  const MadeIdentities made_;
  const uint64_t count_;
  Team team_;
  uint64_t next_ = 0;
};

}  // namespace

MadeIdentities::MadeIdentities(const Options& options) : options_(options) {
  Random random = Seed(options.seed).Stream("weights").MakeRandom();
  const double bandwidth = std::sqrt(3.0 / static_cast<double>(std::max<size_t>(options.intrinsic, 1)));
  for (size_t i = 0; i < options.intrinsic * options.dimension; ++i)
    weights_.push_back(static_cast<float>(random.Normal() * bandwidth));
  for (size_t i = 0; i < options.dimension; ++i)
    phases_.push_back(static_cast<float>(random.Uniform(0, 2 * M_PI)));
}

std::string MadeIdentities::Name(uint64_t number) { return fmt::format("made-{:07}", number); }

std::vector<float> MadeIdentities::Vector(uint64_t number) const {
  Random random = Seed(options_.seed).Stream("identity").Stream(number).MakeRandom();
  std::vector<float> vector(phases_);
  if (options_.intrinsic == 0) {
    for (float& value : vector) value = static_cast<float>(random.Normal());
  } else {
    float* const to = vector.data();
    for (size_t k = 0; k < options_.intrinsic; ++k) {
      const auto z = static_cast<float>(random.Normal());
      const float* const weights = weights_.data() + k * options_.dimension;
      for (size_t i = 0; i < options_.dimension; ++i) to[i] += weights[i] * z;
    }
    for (size_t i = 0; i < options_.dimension; ++i) to[i] = std::cos(to[i]);
  }
  Normalise(vector);
  return vector;
}

std::vector<float> MadeIdentities::Mate(uint64_t number, double cosine) const {
  return PlantMate(Vector(number), cosine, Seed(options_.seed).Stream("mate").Stream(number).value());
}

std::unique_ptr<VectorSource> MakeVectorSource(MadeIdentities made, uint64_t count, int threads) {
  return std::make_unique<MadeSource>(std::move(made), count, threads);
}

std::vector<float> PlantMate(const std::vector<float>& vector, double cosine, uint64_t seed) {
  Random random(seed);
  std::vector<float> other(vector.size());
  for (float& value : other) value = static_cast<float>(random.Normal());
  double along = 0;
  for (size_t i = 0; i < other.size(); ++i)
    along += static_cast<double>(other[i]) * static_cast<double>(vector[i]);
  for (size_t i = 0; i < other.size(); ++i) other[i] -= static_cast<float>(along) * vector[i];
  Normalise(other);
  const auto part = static_cast<float>(cosine), rest = static_cast<float>(std::sqrt(1 - cosine * cosine));
  for (size_t i = 0; i < other.size(); ++i) other[i] = part * vector[i] + rest * other[i];
  return other;
}

}  // namespace weir::identity
