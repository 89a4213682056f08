#include "predict/applicability.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <set>

namespace weir::predict {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kBeyond = 1.25;         // of a range: less far out is still inside
constexpr double kBeyondOfNetwork = 4;   // of the range of its own network, which fewer rows make
constexpr double kFarthest = 1000;       // times beyond, of which nothing measured says anything
constexpr double kOrdinarilyNew = 0.01;  // of a category's rows
constexpr size_t kMostLevels = 6, kFewestForEnds = 3;

// Of some values the second least and the second greatest.
std::pair<double, double> EndsOf(std::vector<double> values) {
  if (values.empty()) return {kInfinity, -kInfinity};
  std::ranges::sort(values);
  const size_t apart = values.size() >= kFewestForEnds ? 1 : 0;
  return {values[apart], values[values.size() - 1 - apart]};
}

// How many times x is beyond a range, where both are above 0; 1 within.
double TimesBeyond(double x, std::pair<double, double> range) {
  const auto& [least, greatest] = range;
  if (std::isnan(x) || !(least <= greatest)) return 1;
  if (x > greatest) return greatest > 0 ? x / greatest : 2;
  if (x < least) return x > 0 ? least / x : 2;
  return 1;
}

std::string BeyondText(const std::string& name, double x, std::pair<double, double> range, double beyond) {
  return fmt::format("{} {:g} is {:.2g} times beyond {:g} to {:g}", name, x, beyond, range.first,
                     range.second);
}

// Whether one more row with a word that nobody measured is nothing new: the share of such rows is about that
// of the words that were seen once (Good 1953).
bool ExpectsNew(const Encoder& encoder, size_t category) {
  double once = 0, rows = 0;
  for (int level = 0; level < encoder.levels(category); ++level) {
    const auto count = static_cast<double>(encoder.Count(category, level));
    once += count == 1 ? 1 : 0;
    rows += count;
  }
  return once >= kOrdinarilyNew * rows;
}

// The words of a category, the first few.
std::string WordsOf(const Encoder& encoder, size_t category) {
  std::vector<std::string> known = encoder.Levels(category);
  const size_t more = known.size() - std::min(known.size(), kMostLevels);
  known.resize(known.size() - more);
  return fmt::format("{}{}", fmt::join(known, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

// The known one that is least far off in the numbers of its table, and in which it is farthest.
std::string NearestText(const Table& table, const std::string& name, const std::vector<std::string>& known) {
  const int64_t asked = table.RowOf(name);
  if (asked < 0) return "";
  int all = 0;
  for (int column = 0; column < std::ssize(table.csv().columns); ++column)
    all += table.At(asked, column).number ? 1 : 0;
  double least = kInfinity;
  std::string text;
  for (const std::string& other : known) {
    const int64_t row = table.RowOf(other);
    if (row < 0) continue;
    double sum = 0, farthest = 0, numbers = 0;
    std::string of;
    for (int column = 0; column < std::ssize(table.csv().columns); ++column) {
      const auto a = table.At(asked, column).number, b = table.At(row, column).number;
      if (!a || !b || !(*a > 0) || !(*b > 0)) continue;
      const double off = std::abs(std::log(*a / *b));
      sum += off;
      numbers += 1;
      if (off < farthest) continue;
      farthest = off;
      of = table.csv().columns[static_cast<size_t>(column)];
    }
    // One of which little is known is near to all.
    if (2 * numbers < all || numbers == 0 || sum / numbers >= least) continue;
    least = sum / numbers;
    text = fmt::format(", {} is nearest: {:.2g} times off at most ({})", other, std::exp(farthest), of);
  }
  return text;
}

Json RangesJson(const std::vector<std::pair<double, double>>& ranges) {
  Json json = Json::array();
  for (const auto& [least, greatest] : ranges)
    json.push_back(least <= greatest ? Json{least, greatest} : Json());
  return json;
}

Result<std::vector<std::pair<double, double>>> RangesFrom(const Json& json, const Spec& spec) {
  const auto corrupt = [] { return Fail(ErrorCode::kCorrupt, "the ranges do not fit the spec"); };
  if (!json.is_array() || json.size() != spec.ranges.size()) return corrupt();
  std::vector<std::pair<double, double>> ranges;
  for (const Json& item : json) {
    if (item.is_null()) {
      ranges.emplace_back(kInfinity, -kInfinity);
    } else if (item.is_array() && item.size() == 2 && item[0].is_number() && item[1].is_number()) {
      ranges.emplace_back(item[0].get<double>(), item[1].get<double>());
    } else {
      return corrupt();
    }
  }
  return ranges;
}

Json NamesJson(const std::vector<std::string>& names) {
  Json json = Json::array();
  for (const std::string& name : names) json.push_back(EscapeBytes(name));
  return json;
}

Result<std::vector<std::string>> NamesFrom(const Json& json, const char* key) {
  std::vector<std::string> names;
  if (!json.contains(key) || !json[key].is_array())
    return Fail(ErrorCode::kCorrupt, fmt::format("{} is missing", key));
  for (const Json& item : json[key]) {
    if (!item.is_string()) return Fail(ErrorCode::kCorrupt, fmt::format("{} holds what is no text", key));
    names.push_back(TRY(UnescapeBytes(item.get<std::string>())));
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

Applicability Applicability::Learn(const Data& data) {
  Applicability known;
  std::set<std::string> hardware, networks;
  std::vector<double> devices;
  for (const Row& row : data.rows) {
    hardware.insert(row.hardware);
    networks.insert(row.network);
    devices.push_back(row.devices);
  }
  known.hardware_.assign(hardware.begin(), hardware.end());
  known.networks_.assign(networks.begin(), networks.end());
  known.devices_ = EndsOf(std::move(devices));
  for (size_t j = 0; j < data.spec.ranges.size(); ++j) {
    std::vector<double> values;
    for (const Row& row : data.rows) {
      const double x = row.ranges[j];
      if (std::isnan(x)) continue;
      values.push_back(x);
      auto& of_network = known.of_network_[row.network];
      of_network.resize(data.spec.ranges.size(), {kInfinity, -kInfinity});
      of_network[j] = {std::min(of_network[j].first, x), std::max(of_network[j].second, x)};
    }
    known.ranges_.push_back(EndsOf(std::move(values)));
  }
  return known;
}

Applicability::Place Applicability::PlaceOf(const Spec& spec, const Encoder& encoder, const Facts& facts,
                                            const Row& row) const {
  Place place;
  std::vector<std::string> why;
  const auto of_network = of_network_.find(row.network);
  const auto beyond_a_range = [&](const std::string& text, double times) {
    why.push_back(text);
    place.widen = std::max(place.widen, 1 + 0.5 * std::log(times));
    place.is_refused = place.is_refused || times > kFarthest;
  };
  for (size_t j = 0; j < row.ranges.size(); ++j) {
    const double x = row.ranges[j];
    if (const double times = TimesBeyond(x, ranges_[j]); times > kBeyond) {
      beyond_a_range(BeyondText(spec.ranges[j], x, ranges_[j], times), times);
    } else if (spec.networks && of_network != of_network_.end()) {
      const Range& range = of_network->second[j];
      const double of_its_own = TimesBeyond(x, range);
      if (of_its_own > kBeyondOfNetwork)
        beyond_a_range(BeyondText(spec.ranges[j], x, range, of_its_own) + " of " + row.network, of_its_own);
    }
  }
  if (row.devices > devices_.second || row.devices < devices_.first) {
    const bool above = row.devices > devices_.second;
    why.push_back(fmt::format("{} {:g} is {} {:g}", spec.devices, row.devices, above ? "above" : "below",
                              above ? devices_.second : devices_.first));
    place.question = Question::kCount;
    place.is_refused = place.is_refused || TimesBeyond(row.devices, devices_) > kFarthest;
  }
  if (spec.networks && !std::ranges::binary_search(networks_, row.network)) {
    why.push_back(fmt::format("{} {} was never measured{}", spec.networks->key, row.network,
                              NearestText(facts.networks, row.network, networks_)));
    place.question = Question::kNetwork;
  }
  if (spec.hardware && !KnowsHardware(row.hardware)) {
    why.push_back(fmt::format("{} {} was never measured{}", spec.hardware->key, row.hardware,
                              NearestText(facts.hardware, row.hardware, hardware_)));
    place.question = Question::kHardware;
  }
  const std::vector<int> codes = encoder.Codes(row);
  for (size_t j = 0; j < spec.categories.size(); ++j) {
    const auto& [column, side] = spec.categories[j];
    const std::string& word = row.categories[j];
    if (codes[j] >= 0 || side != Side::kRun || word.empty() || ExpectsNew(encoder, j)) continue;
    why.push_back(fmt::format("{} \"{}\" was never measured, only {}", column, word, WordsOf(encoder, j)));
    // New hardware comes with its own software, and was left out with it.
    place.is_unheard = place.is_unheard || place.question != Question::kHardware;
  }
  place.outside = fmt::format("{}", fmt::join(why, "; "));
  return place;
}

bool Applicability::KnowsHardware(const std::string& name) const {
  return std::ranges::binary_search(hardware_, name);
}

double Applicability::Doublings(const Row& row) const {
  return std::log2(TimesBeyond(row.devices, devices_));
}

Json Applicability::ToJson() const {
  Json of_network = Json::array();
  for (const auto& [name, ranges] : of_network_)
    of_network.push_back({EscapeBytes(name), RangesJson(ranges)});
  return {{"hardware", NamesJson(hardware_)},
          {"networks", NamesJson(networks_)},
          {"devices", {devices_.first, devices_.second}},
          {"ranges", RangesJson(ranges_)},
          {"ranges_of_network", std::move(of_network)}};
}

Result<Applicability> Applicability::FromJson(const Json& json, const Spec& spec) {
  const auto corrupt = [](const char* what) { return Fail(ErrorCode::kCorrupt, what); };
  for (const char* key : {"devices", "ranges", "ranges_of_network"}) {
    if (!json.contains(key)) return corrupt("what was measured is not whole");
  }
  Applicability known;
  known.hardware_ = TRY(NamesFrom(json, "hardware"));
  known.networks_ = TRY(NamesFrom(json, "networks"));
  const Json& devices = json["devices"];
  if (!devices.is_array() || devices.size() != 2 || !devices[0].is_number() || !devices[1].is_number())
    return corrupt("the counts of devices are no range");
  known.devices_ = {devices[0].get<double>(), devices[1].get<double>()};
  known.ranges_ = TRY(RangesFrom(json["ranges"], spec));
  for (const Json& item : json["ranges_of_network"]) {
    if (!item.is_array() || item.size() != 2 || !item[0].is_string())
      return corrupt("the ranges of networks are not whole");
    known.of_network_[TRY(UnescapeBytes(item[0].get<std::string>()))] = TRY(RangesFrom(item[1], spec));
  }
  return known;
}

}  // namespace weir::predict
