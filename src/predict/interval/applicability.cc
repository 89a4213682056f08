#include "predict/interval/applicability.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "base/contains.h"
#include "base/count.h"
#include "predict/features/network_facts.h"

namespace weir::predict {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr double kBeyond = 1.25;        // times a range; less is still inside
constexpr double kBeyondOfNetwork = 4;  // the same of its own network's range, which has fewer rows
constexpr double kFarthest = 1000;      // times beyond, where no measurement supports an answer
constexpr double kLeastNew = 0.02;      // share of left-out rows
constexpr double kDoesNotFit = 1.5;     // times the memory that measured rows fill
constexpr double kFilled = 0.99;        // share of the rows that fill no more
constexpr double kAnotherVendor = 1.5;  // factor of the interval
constexpr double kPerhapsNoFit = 1.25;  // the same
constexpr size_t kMostLevels = 6, kFewestForEnds = 3;
constexpr const char* kNoSupport = ": no measurement supports an answer";

// Returns the second least and the second greatest value.
Range EndsOf(std::vector<double> values) {
  if (values.empty()) return {kInfinity, -kInfinity};
  std::ranges::sort(values);
  const size_t apart = values.size() >= kFewestForEnds ? 1 : 0;
  return {values[apart], values[values.size() - 1 - apart]};
}

// Returns how many times x is beyond a range of values above 0; 1 within.
double TimesBeyond(double x, const Range& range) {
  const auto& [least, greatest] = range;
  if (std::isnan(x) || !(least <= greatest)) return 1;
  if (x > greatest) return greatest > 0 ? x / greatest : 2;
  if (x < least) return x > 0 ? least / x : 2;
  return 1;
}

// Returns two digits, or all of a whole number.
std::string Brief(double x) { return x < 99.5 ? fmt::format("{:.2g}", x) : Short(x); }

std::string BeyondText(const std::string& name, double x, const Range& range, double beyond) {
  return fmt::format("{} {:g} is {} times beyond {:g} to {:g}", name, x, Brief(beyond), range.least,
                     range.greatest);
}

// Returns the first values of a category.
std::string LevelsText(const Encoder& encoder, size_t category) {
  std::vector<std::string> known = encoder.Levels(category);
  const size_t more = known.size() - std::min(known.size(), kMostLevels);
  known.resize(known.size() - more);
  return fmt::format("{}{}", fmt::join(known, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

void Applicability::Learn(const Spec& spec, Side side, const std::string& name, const Row& row,
                          Known& known) {
  const auto [entry, is_new] = known.try_emplace(name);
  size_t k = 0;
  for (size_t j = 0; j < spec.numbers.size(); ++j) {
    if (spec.numbers[j].side != side) continue;
    if (is_new) {
      entry->second.push_back(row.numbers[j]);
    } else if (entry->second[k] != row.numbers[j]) {
      entry->second[k] = kUnknown;
    }
    ++k;
  }
}

Applicability Applicability::Learn(const Data& data, const Facts& facts, const std::vector<Kink>& kinks) {
  Applicability known;
  const Spec& spec = data.spec;
  std::set<std::string> vendors;
  std::vector<double> devices, filled;
  for (const Row& row : data.rows) {
    Learn(spec, Side::kHardware, row.hardware, row, known.hardware_);
    Learn(spec, Side::kNetwork, row.network, row, known.networks_);
    if (!row.vendor.empty()) vendors.insert(row.vendor);
    devices.push_back(row.devices);
    const double share = std::reduce(row.memory.begin(), row.memory.end()) / row.memory_capacity;
    if (!row.memory.empty() && std::isfinite(share)) filled.push_back(share);
  }
  known.vendors_.assign(vendors.begin(), vendors.end());
  known.terms_use_network_ = TermsUseNetwork(spec, facts);
  known.devices_ = EndsOf(std::move(devices));
  if (!filled.empty()) {
    // A few rows may state their degrees of parallelism wrongly.
    std::ranges::sort(filled);
    known.filled_ =
        std::max(1.0, filled[static_cast<size_t>(kFilled * static_cast<double>(filled.size() - 1))]);
  }
  for (size_t j = 0; j < spec.ranges.size(); ++j) {
    std::vector<double> values;
    for (const Row& row : data.rows) {
      const double x = row.ranges[j];
      if (std::isnan(x)) continue;
      values.push_back(x);
      auto& of_network = known.of_network_[row.network];
      of_network.resize(spec.ranges.size(), {kInfinity, -kInfinity});
      of_network[j] = {std::min(of_network[j].least, x), std::max(of_network[j].greatest, x)};
    }
    known.ranges_.push_back(EndsOf(std::move(values)));
  }
  for (const Kink& kink : kinks) {
    double& most = known.kinks_[kink.hardware];
    most = std::max(most, std::abs(std::log(kink.factor)));
  }
  return known;
}

void Applicability::LearnNewWords(const Data& data, Split split, const std::vector<Fold>& folds) {
  for (size_t j = 0; j < data.spec.categories.size(); ++j) {
    double fresh = 0, all = 0;
    for (const Fold& fold : folds) {
      std::set<int> known;
      for (const int i : fold.train) known.insert(data.points.CodesOf(i)[j]);
      for (const int i : fold.test) fresh += known.contains(data.points.CodesOf(i)[j]) ? 0 : 1;
      all += static_cast<double>(fold.test.size());
    }
    if (all > 0 && fresh >= kLeastNew * all)
      new_words_[std::string(ToString(split))].push_back(static_cast<int>(j));
  }
}

std::string Applicability::NearestText(const Spec& spec, Side side, const Known& known, const Row& row) {
  std::vector<std::pair<std::string, double>> asked;  // by name of the feature
  for (size_t j = 0; j < spec.numbers.size(); ++j) {
    if (spec.numbers[j].side == side) asked.emplace_back(spec.numbers[j].named.name, row.numbers[j]);
  }
  const auto there = std::ranges::count_if(asked, [](const auto& one) { return one.second > 0; });
  double least = kInfinity;
  std::string text;
  for (const auto& [name, numbers] : known) {
    double sum = 0, farthest = 0, count = 0;
    std::string of;
    for (size_t k = 0; k < asked.size(); ++k) {
      if (!(asked[k].second > 0) || !(numbers[k] > 0)) continue;
      const double off = std::abs(std::log(asked[k].second / numbers[k]));
      sum += off;
      count += 1;
      if (off < farthest) continue;
      farthest = off;
      of = asked[k].first;
    }
    // A name of which little is known would be near to all.
    if (count == 0 || 2 * count < static_cast<double>(there) || sum / count >= least) continue;
    least = sum / count;
    text = fmt::format(", {} is nearest: {} times off at most ({})", name, Brief(std::exp(farthest)), of);
  }
  return text;
}

void Applicability::PlaceRanges(const Spec& spec, const Row& row, std::vector<std::string>& why,
                                Position& position) const {
  const auto of_network = of_network_.find(row.network);
  const auto beyond = [&](const std::string& text, double times) {
    why.push_back(text);
    position.widen = std::max(position.widen, 1 + 0.5 * std::log(times));
    if (times > kFarthest) position.refusal = text + kNoSupport;
  };
  for (size_t j = 0; j < row.ranges.size(); ++j) {
    const double x = row.ranges[j];
    if (const double times = TimesBeyond(x, ranges_[j]); times > kBeyond) {
      beyond(BeyondText(spec.ranges[j], x, ranges_[j], times), times);
    } else if (spec.networks && of_network != of_network_.end()) {
      const Range& range = of_network->second[j];
      const double of_its_own = TimesBeyond(x, range);
      if (of_its_own > kBeyondOfNetwork)
        beyond(BeyondText(spec.ranges[j], x, range, of_its_own) + " of " + row.network, of_its_own);
    }
  }
  if (row.devices >= devices_.least && row.devices <= devices_.greatest) return;
  const bool above = row.devices > devices_.greatest;
  why.push_back(fmt::format("{} {:g} is {} {:g}", spec.devices, row.devices, above ? "above" : "below",
                            above ? devices_.greatest : devices_.least));
  position.split = Split::kCount;
  if (TimesBeyond(row.devices, devices_) > kFarthest) position.refusal = why.back() + kNoSupport;
  const auto kink = kinks_.find(row.hardware);
  if (!above || kink == kinks_.end()) return;
  why.push_back(fmt::format("measured times of {} jump by up to {:.2g} times between counts", row.hardware,
                            std::exp(kink->second)));
  position.add = kink->second;
}

void Applicability::PlaceNames(const Spec& spec, const Row& row, std::vector<std::string>& why,
                               Position& position) const {
  if (spec.networks && !networks_.contains(row.network)) {
    why.push_back(fmt::format("{} {} was never measured{}", spec.networks->key, row.network,
                              NearestText(spec, Side::kNetwork, networks_, row)));
    position.split = Split::kNetwork;
    position.is_new_network = true;
    if (!terms_use_network_)
      position.refusal = why.back() + "; no term of the physical model uses a fact of the network";
  }
  if (!spec.hardware || KnowsHardware(row.hardware)) return;
  why.push_back(fmt::format("{} {} was never measured{}", spec.hardware->key, row.hardware,
                            NearestText(spec, Side::kHardware, hardware_, row)));
  position.split = Split::kHardware;
  if (vendors_.empty() || std::ranges::binary_search(vendors_, row.vendor)) return;
  why.push_back(row.vendor.empty() ? fmt::format("the vendor is not given (--set vendor=NAME; measured: {})",
                                                 fmt::join(vendors_, ", "))
                                   : fmt::format("hardware of {} was never measured, only of {}", row.vendor,
                                                 fmt::join(vendors_, ", ")));
  position.widen *= kAnotherVendor;
  position.is_unvalidated = true;
}

void Applicability::PlaceWords(const Spec& spec, const Encoder& encoder, const Row& row,
                               std::vector<std::string>& why, Position& position) const {
  const auto validated = new_words_.find(std::string(ToString(position.split)));
  const std::vector<int> codes = encoder.Codes(row);
  for (size_t j = 0; j < spec.categories.size(); ++j) {
    const auto& [column, side] = spec.categories[j];
    const std::string& word = row.categories[j];
    if (codes[j] >= 0 || side != Side::kRun || word.empty()) continue;
    why.push_back(fmt::format("{} \"{}\" was never measured, only {}", column, word, LevelsText(encoder, j)));
    const bool was_left_out =
        validated != new_words_.end() && Contains(validated->second, static_cast<int>(j));
    position.is_unvalidated = position.is_unvalidated || !was_left_out;
  }
}

void Applicability::PlaceMemory(const Spec& spec, const Row& row, std::vector<std::string>& why,
                                Position& position) const {
  double need = 0;  // what is known of it
  for (const double part : row.memory) need += part > 0 ? part : 0;
  const double share = need / row.memory_capacity;
  if (row.memory.empty() || !(share > filled_)) return;
  std::string parts;
  for (size_t k = 0; k < row.memory.size(); ++k) {
    if (row.memory[k] > 0)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", spec.memory[k].name, Brief(row.memory[k]));
  }
  const bool refused = share > kDoesNotFit * filled_;
  why.push_back(fmt::format("{} about {} GB of memory a device ({}), it has {:.3g}: {}",
                            refused ? "needs" : "may need", Brief(need), parts, row.memory_capacity,
                            refused ? "it does not fit" : "it may not fit"));
  if (refused) position.refusal = why.back();
  position.widen *= kPerhapsNoFit;
}

Applicability::Position Applicability::PositionOf(const Spec& spec, const Encoder& encoder,
                                                  const Row& row) const {
  Position position;
  std::vector<std::string> why;
  PlaceRanges(spec, row, why, position);
  PlaceNames(spec, row, why, position);
  PlaceWords(spec, encoder, row, why, position);
  PlaceMemory(spec, row, why, position);
  for (const std::string& name : row.missing)
    why.push_back(fmt::format("{} is not given and matters here: it is taken as in the measured rows", name));
  for (const std::string& name : row.contradictions) {
    why.push_back(fmt::format("the row contradicts \"{}\" of the SPEC: check its columns", name));
    position.is_unvalidated = true;
  }
  position.outside = fmt::format("{}", fmt::join(why, "; "));
  return position;
}

double Applicability::Doublings(const Row& row) const {
  return std::log2(TimesBeyond(row.devices, devices_));
}

bool Applicability::Fits(const Spec& spec) const {
  const auto count = [&spec](Side side) {
    return static_cast<size_t>(std::ranges::count(spec.numbers, side, &Number::side));
  };
  const auto all = [](const auto& map, size_t size) {
    return std::ranges::all_of(map, [size](const auto& item) { return item.second.size() == size; });
  };
  return all(hardware_, count(Side::kHardware)) && all(networks_, count(Side::kNetwork)) &&
         all(of_network_, spec.ranges.size()) && ranges_.size() == spec.ranges.size();
}

}  // namespace weir::predict
