#include "predict/validation/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/contains.h"
#include "predict/estimators/recipes.h"
#include "predict/validation/cross_validation.h"
#include "predict/validation/kinks.h"
#include "predict/validation/splits.h"
#include "stats/median.h"

namespace weir::predict {
namespace {

// Factor of a fact. Cards of one kind differ by 2 (peaks halved on consumer cards), so a fact ten times too
// high is still five times off. Bandwidths differ by up to 5.1, so two laws must agree.
constexpr double kFactOff = 4.5;
// Winograd convolutions need 2.25 times less work than is counted (Lavin and Gray 2016), and cards boost
// above their data sheet.
constexpr double kNoCard = 10;  // times beyond all cards
constexpr double kPeakSlack = 2.5;
constexpr double kPeersNoise =
    0.5;  // of the kernel: one row that is far off does not carry its neighbours along
constexpr double kWorstScaling = 0.35, kBestScaling = 1.3;
constexpr size_t kMostPeers = 3000;
constexpr double kOffDataSheet = 2.5;  // times, of the median row of one hardware
constexpr size_t kFewestPeers = 4, kFewestOfHardware = 10;
constexpr double kFarFactor = 4, kFarDeviations = 12;

// The factors of wrong units.
constexpr std::pair<double, std::string_view> kUnits[] = {
    {60, "minutes or seconds"}, {1000, "milliseconds or seconds"},   {1024, "a K too many"},
    {3600, "hours or seconds"}, {60'000, "minutes or milliseconds"}, {1e6, "microseconds or seconds"}};

// A ratio that hardware of one kind should have in common.
struct Law {
  const char* column;
  const char* kind;                  // column of equals that are peers
  std::vector<const char*> factors;  // the column is proportional to their product
};
const std::vector<Law>& Laws() {
  static const std::vector<Law> laws = {
      {"fp32_tflops", "vendor", {"cuda_cores", "boost_clock_mhz"}},
      {"tf32_tensor_tflops", "compute_capability", {"cuda_cores", "boost_clock_mhz"}},
      {"fp16_vector_tflops", "compute_capability", {"cuda_cores", "boost_clock_mhz"}},
      {"fp16_tensor_tflops", "compute_capability", {"cuda_cores", "boost_clock_mhz"}},
      {"fp16_tensor_fp32acc_tflops", "compute_capability", {"cuda_cores", "boost_clock_mhz"}},
      {"fp8_tensor_tflops", "compute_capability", {"cuda_cores", "boost_clock_mhz"}},
      {"int8_tops", "compute_capability", {"cuda_cores", "boost_clock_mhz"}},
      {"fp4_tensor_tflops", "compute_capability", {"cuda_cores", "boost_clock_mhz"}},
      {"memory_bandwidth_gbps", "memory_type", {}},
      {"memory_bandwidth_gbps", "architecture", {"sm_count"}}};
  return laws;
}

// Returns each hardware row that breaks the law, and how many times it is off.
std::vector<std::pair<int64_t, double>> Breaches(const Law& law, const Table& table) {
  const int column = table.Column(law.column), kind = table.Column(law.kind);
  const int architecture = table.Column("architecture");  // of those that have no compute capability
  if (column < 0 || kind < 0) return {};
  std::map<std::string, std::vector<std::pair<int64_t, double>>> kinds;
  for (int64_t row = 0; row < table.rows(); ++row) {
    auto ratio = table.At(row, column).number;
    for (const char* factor : law.factors) {
      const int other = table.Column(factor);
      const auto value = other < 0 ? std::nullopt : table.At(row, other).number;
      ratio = ratio && value && *value > 0 ? std::optional(*ratio / *value) : std::nullopt;
    }
    if (!ratio || *ratio <= 0) continue;
    std::string name(table.Cell(row, kind));
    if (name.empty() && architecture >= 0) name = table.Cell(row, architecture);
    kinds[std::move(name)].emplace_back(row, std::log(*ratio));
  }
  std::vector<std::pair<int64_t, double>> breaches;
  for (const auto& [name, members] : kinds) {
    if (name.empty()) continue;  // of no known kind
    std::vector<double> ratios;
    for (const auto& [row, ratio] : members) ratios.push_back(ratio);
    // The higher one of two counts as wrong; one alone has no peers.
    const double usual = members.size() == 2 ? std::ranges::min(ratios) : stats::Median(ratios);
    for (const auto& [row, ratio] : members) {
      if (std::abs(ratio - usual) > std::log(kFactOff)) breaches.emplace_back(row, std::exp(ratio - usual));
    }
  }
  return breaches;
}

// Either bandwidth law alone has exceptions, so both must agree.
bool NeedsBoth(const Law& law) { return std::string_view(law.column) == "memory_bandwidth_gbps"; }

// A cell that is no number in a column of numbers.
struct OddCell {
  int64_t row = 0;
  std::string what;
};
std::vector<OddCell> OddCells(const Table& table) {
  std::vector<OddCell> odd;
  for (int column = 0; column < std::ssize(table.csv().columns); ++column) {
    int64_t numbers = 0, others = 0;
    for (int64_t row = 0; row < table.rows(); ++row) {
      if (table.Cell(row, column).empty()) continue;
      ++(table.At(row, column).number ? numbers : others);
    }
    if (others == 0 || others * 5 > numbers) continue;  // a column of texts
    for (int64_t row = 0; row < table.rows(); ++row) {
      const std::string_view cell = table.Cell(row, column);
      if (cell.empty() || table.At(row, column).number) continue;
      odd.push_back({row, fmt::format("line {}: {} is \"{}\", not a finite number",
                                      table.csv().lines[static_cast<size_t>(row)],
                                      table.csv().columns[static_cast<size_t>(column)], cell.substr(0, 40))});
    }
  }
  return odd;
}

class TimeChecks {
 public:
  explicit TimeChecks(const Data& data) : data_(data) {}

  void AbovePeak(std::vector<Finding>& findings) const {
    if (data_.spec.peaks.size() != 2) return;
    for (const Row& row : data_.rows) {
      const double peak = row.peaks[0], work = row.peaks[1];  // TFLOPS; GFLOP in `time` ms
      if (!(peak > 0) || !(work > 0)) continue;
      const double rate = work / *row.time;
      if (rate <= kPeakSlack * peak) continue;
      findings.push_back(Finding::Of(Fault::kAbovePeak,
                                     fmt::format("{:.3g} TFLOPS, above the {:.3g} of {}: check its unit, its "
                                                 "devices and the table's peak",
                                                 rate, peak, row.hardware),
                                     row.id, row.place));
    }
  }

  // Checks scaling efficiency, if the time is of one device.
  void Scaling(std::vector<Finding>& findings) const {
    const Spec& spec = data_.spec;
    if (spec.devices.empty() || !spec.per || !Contains(spec.per->names(), spec.devices)) return;
    const std::vector<size_t> equal = CategoriesApartFromCount(spec);
    std::map<std::string, std::vector<const Row*>> single;
    for (const Row& row : data_.rows) {
      if (row.devices == 1) single[KeyOf(row, equal)].push_back(&row);
    }
    for (const Row& row : data_.rows) {
      if (row.devices == 1) continue;
      const auto peers = single.find(KeyOf(row, equal));
      if (peers == single.end()) continue;
      std::vector<double> times;
      for (const Row* peer : peers->second) {
        if (Alike(*peer, row)) times.push_back(*peer->time);
      }
      if (times.empty()) continue;
      const double efficiency = stats::Median(times) / *row.time;
      if (efficiency >= kWorstScaling && efficiency <= kBestScaling) continue;
      findings.push_back(Finding::Of(
          Fault::kScaling,
          fmt::format("scaling efficiency {:.2f} to {:g} devices, outside {} to {}: a broken link, "
                      "or a count that is wrong",
                      efficiency, row.devices, kWorstScaling, kBestScaling),
          row.id, row.place));
    }
  }

  void Kinks(std::vector<Finding>& findings) const {
    for (const Kink& kink : FindKinks(data_)) {
      Finding finding = Finding::Of(
          Fault::kKink,
          fmt::format("{} ({}): {} of {} configurations take {:.2g} times longer from {:g} to {:g} "
                      "devices than elsewhere: check its links; larger counts get wider intervals",
                      kink.hardware, kink.machine, kink.rows.size(), kink.configurations, kink.factor,
                      kink.from, kink.to));
      for (const int i : kink.rows) {
        finding.rows.push_back(data_.rows[static_cast<size_t>(i)].id);
        finding.places.push_back(data_.rows[static_cast<size_t>(i)].place);
      }
      findings.push_back(std::move(finding));
    }
  }

  // Reports hardware whose rows of one group are as a whole far from what its data sheet promises, by the
  // weights of all hardware.
  void OffDataSheet(std::vector<Finding>& findings) const {
    std::vector<int> all(data_.rows.size());
    std::iota(all.begin(), all.end(), 0);
    const Physical physical = Physical::Fit(
        data_.rows, all, {.pull = 10, .own_level = true, .even = true, .least = data_.spec.LeastWeights()});
    std::map<std::string, std::map<std::string, std::vector<int>>> groups;
    for (const int i : all) {
      const Row& row = data_.rows[static_cast<size_t>(i)];
      groups[row.group][row.hardware].push_back(i);
    }
    for (const auto& [group, by_hardware] : groups) {
      if (by_hardware.size() < kFewestPeers) continue;
      for (const auto& [hardware, rows] : by_hardware) {
        std::vector<double> misses;
        for (const int i : rows) {
          const Row& row = data_.rows[static_cast<size_t>(i)];
          misses.push_back(std::log(*row.time / physical.Time(row)));
        }
        const double off = std::exp(stats::Median(std::move(misses)));
        if (rows.size() < kFewestOfHardware || std::abs(std::log(off)) <= std::log(kOffDataSheet)) continue;
        Finding finding = Finding::Of(
            Fault::kOffDataSheet,
            fmt::format("{}: {} rows of {} take {:.2g} times what its data sheet and other hardware say: "
                        "check how they were measured, or leave them out with skip",
                        hardware, rows.size(), group, off));
        for (const int i : rows) {
          finding.rows.push_back(data_.rows[static_cast<size_t>(i)].id);
          finding.places.push_back(data_.rows[static_cast<size_t>(i)].place);
        }
        findings.push_back(std::move(finding));
      }
    }
  }

  void FarFromPeers(Seed seed, int threads, std::vector<Finding>& findings) const {
    std::vector<Fold> folds = MakeFolds(data_.rows, Split::kInside, seed);
    if (folds.empty()) return;
    for (Fold& fold : folds) fold.train = Sparse(std::move(fold.train));
    // Rows that are far off would pull the fit, so each round learns without those of the round before. The
    // first round uses the physical model alone, which a few rows cannot move.
    for (const int round : {0, 1, 2}) {
      const bool last = round == 2;
      Recipe recipe = RecipeOf(data_.spec, round > 0 ? kNeighbours : kPhysical, Split::kInside, Groups::kOwn);
      if (round > 0)
        recipe.kernel = Kernel{.number_weights = {}, .category_weights = {}, .noise = kPeersNoise};
      const CrossValidation validation =
          CrossValidate(data_, Split::kInside, folds, recipe, {.threads = threads, .seed = seed});
      std::vector<double> misses(validation.samples.size()), sizes(validation.samples.size());
      for (size_t i = 0; i < misses.size(); ++i) {
        misses[i] = -validation.samples[i].miss;
        sizes[i] = std::abs(misses[i]);
      }
      // 1.4826 median absolute deviations are a standard deviation of a normal distribution.
      const double limit = std::max(std::log(kFarFactor), kFarDeviations * 1.4826 * stats::Median(sizes));
      std::vector<char> far(data_.rows.size(), 0);
      for (size_t i = 0; i < misses.size(); ++i) {
        const auto row = static_cast<size_t>(validation.samples[i].row);
        if (sizes[i] <= (round == 0 ? limit + std::log(kFarFactor) : limit)) continue;
        far[row] = 1;
        if (last) findings.push_back(Describe(data_.rows[row], std::exp(misses[i])));
      }
      if (std::ranges::count(far, 1) * 3 > std::ssize(far)) return;  // the model is wrong, not the rows
      for (Fold& fold : folds)
        std::erase_if(fold.train, [&](int i) { return far[static_cast<size_t>(i)] != 0; });
    }
  }

 private:
  // Keeps at most as many as tell what is usual, at even distances.
  static std::vector<int> Sparse(std::vector<int> rows) {
    const size_t step = (rows.size() + kMostPeers - 1) / kMostPeers;
    std::vector<int> kept;
    for (size_t i = 0; i < rows.size(); i += std::max<size_t>(step, 1)) kept.push_back(rows[i]);
    return kept;
  }

  static Finding Describe(const Row& row, double factor) {
    const std::string seen = fmt::format("its time is {:.3g} times what its peers say", factor);
    const double size = std::max(factor, 1 / factor);
    const auto* unit = std::ranges::find_if(
        kUnits, [size](const auto& one) { return std::abs(std::log(size / one.first)) < std::log(2.0); });
    if (unit == std::end(kUnits))
      return Finding::Of(Fault::kFarFromPeers, seen + ": measure it again, or leave it out with skip", row.id,
                         row.place);
    return Finding::Of(Fault::kUnit, fmt::format("{}: its unit may be wrong ({})", seen, unit->second),
                       row.id, row.place);
  }

  static std::string KeyOf(const Row& row, const std::vector<size_t>& equal) {
    std::string key = row.hardware + "|" + row.network;
    for (const size_t j : equal) key += "|" + row.categories[j];
    return key;
  }
  static bool Alike(const Row& a, const Row& b) {
    for (size_t j = 0; j < a.ranges.size(); ++j) {
      if (std::abs(std::log(a.ranges[j] / b.ranges[j])) > std::log(1.3)) return false;
    }
    return true;
  }

  const Data& data_;
};

// Returns the facts that break the laws of their kind, by row and column, and how many times they are off.
std::map<std::pair<int64_t, std::string>, double> OddFacts(const Table& hardware) {
  std::map<std::pair<int64_t, std::string>, std::pair<int, double>> breaches;  // how many laws, how far
  for (const Law& law : Laws()) {
    for (const auto& [row, off] : Breaches(law, hardware)) {
      auto& [count, most] = breaches[{row, law.column}];
      count += NeedsBoth(law) ? 1 : 2;
      most = off;
    }
  }
  std::map<std::pair<int64_t, std::string>, double> odd;
  for (const auto& [place, breach] : breaches) {
    if (breach.first >= 2) odd[place] = breach.second;
  }
  return odd;
}

// Tells a fact that no card can have by itself; empty: it can be.
std::string ImpossibleAlone(const Table& hardware, int column, int64_t card, double given) {
  const std::string& name = hardware.csv().columns[static_cast<size_t>(column)];
  if (given < 0) return fmt::format("{} is {:g}, below 0", name, given);
  const auto known = card >= 0 ? hardware.At(card, column).number : std::nullopt;
  if (known && *known > 0) {
    const double off = std::max(given, 1e-300) / *known;
    return std::abs(std::log(off)) <= std::log(kFactOff)
               ? ""
               : fmt::format("{} is {:g}, and {:g} in the hardware table: correct one", name, given, *known);
  }
  double least = std::numeric_limits<double>::infinity(), greatest = 0;
  for (int64_t row = 0; row < hardware.rows(); ++row) {
    const auto number = hardware.At(row, column).number;
    if (!number || *number <= 0) continue;
    least = std::min(least, *number);
    greatest = std::max(greatest, *number);
  }
  if (given == 0 || greatest == 0 || (given >= least / kNoCard && given <= greatest * kNoCard)) return "";
  return fmt::format("{} is {:g}, and {:g} to {:g} for all cards of the hardware table: check its unit", name,
                     given, least, greatest);
}

// The hardware table with one row more, which `cells` give by column.
Table WithCard(const Table& hardware, const std::map<int, std::string>& cells, int64_t card) {
  Csv csv = hardware.csv();
  for (int column = 0; column < std::ssize(csv.columns); ++column) {
    const auto given = cells.find(column);
    csv.cells.push_back(given != cells.end() ? given->second
                        : card >= 0          ? std::string(hardware.Cell(card, column))
                                             : "");
  }
  csv.lines.push_back(csv.lines.empty() ? 2 : csv.lines.back() + 1);
  return Table(std::move(csv));
}

}  // namespace

std::vector<Finding> CheckFacts(const Spec& spec, const Facts& facts, const Table& rows) {
  std::vector<Finding> findings;
  for (const auto& [join, table] :
       {std::pair(&spec.hardware, &facts.hardware), std::pair(&spec.networks, &facts.networks)}) {
    for (const OddCell& cell : OddCells(*table))
      findings.push_back(Finding::Of(Fault::kNotANumber, fmt::format("{}, {}", (*join)->file, cell.what)));
  }
  if (!spec.hardware || facts.hardware.rows() == 0) return findings;
  const int key = rows.Column(spec.hardware->key), name = facts.hardware.Column(spec.hardware->table_key);
  const int id = rows.Column(spec.id);
  for (const auto& [place, off] : OddFacts(facts.hardware)) {
    const std::string_view gpu = facts.hardware.Cell(place.first, name);
    Finding finding = Finding::Of(
        Fault::kHardwareFact,
        fmt::format(
            "hardware {}: {} is {:.2g} times what others of its kind have: correct the hardware table", gpu,
            place.second, off));
    for (int64_t row = 0; row < rows.rows() && key >= 0 && id >= 0; ++row) {
      if (rows.Cell(row, key) != gpu) continue;
      finding.rows.emplace_back(rows.Cell(row, id));
      finding.places.push_back(row);
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::vector<std::string> ImpossibleFacts(const Spec& spec, const Facts& facts, const Table& rows) {
  std::vector<std::string> impossible(static_cast<size_t>(rows.rows()));
  const Table& hardware = facts.hardware;
  if (!spec.hardware || hardware.rows() == 0) return impossible;
  const int key = rows.Column(spec.hardware->key), name = hardware.Column(spec.hardware->table_key);
  std::map<std::map<int, std::string>, std::string> known;  // the same card comes in many rows
  for (int64_t row = 0; row < rows.rows(); ++row) {
    std::map<int, std::string> cells;
    for (int column = 0; column < std::ssize(hardware.csv().columns); ++column) {
      const int given = rows.Column(hardware.csv().columns[static_cast<size_t>(column)]);
      if (given < 0 || given == key || rows.Cell(row, given).empty()) continue;
      const auto number = rows.At(row, given).number;
      // A run may name its own links and interconnect in other words than the table does.
      if (number) cells[column] = std::string(rows.Cell(row, given));
    }
    if (cells.empty()) continue;
    int64_t card = -1;
    for (int64_t other = 0; other < hardware.rows() && key >= 0; ++other) {
      if (hardware.Cell(other, name) == rows.Cell(row, key)) card = other;
    }
    for (const char* text : {"vendor", "architecture", "compute_capability", "memory_type"}) {
      const int column = hardware.Column(text), given = rows.Column(text);
      if (column >= 0 && given >= 0 && !rows.Cell(row, given).empty())
        cells[column] = std::string(rows.Cell(row, given));
    }
    auto about = cells;
    about[name] = key >= 0 ? std::string(rows.Cell(row, key)) : "";
    const auto [found, is_new] = known.try_emplace(about);
    std::string& text = found->second;
    for (const auto& [column, cell] : cells) {
      const auto number = ParseNumber(cell);
      if (is_new && text.empty() && number) text = ImpossibleAlone(hardware, column, card, *number);
    }
    if (is_new && text.empty()) {
      for (const auto& [place, off] : OddFacts(WithCard(hardware, cells, card))) {
        const int column = hardware.Column(place.second);
        if (place.first == hardware.rows() && cells.contains(column))
          text = fmt::format("{} is {}, {:.2g} times what cards of its kind have", place.second,
                             cells[column], off);
      }
    }
    impossible[static_cast<size_t>(row)] = text;
  }
  return impossible;
}

std::vector<Finding> CheckCells(const Spec& spec, const Table& rows) {
  std::vector<Finding> findings;
  const int id = rows.Column(spec.id);
  if (id < 0) return findings;
  const auto found = [&](std::string_view fault, int64_t row, std::string what) {
    findings.push_back(Finding::Of(fault, std::move(what), rows.Cell(row, id), row));
  };
  const auto line_of = [&](int64_t row) { return rows.csv().lines[static_cast<size_t>(row)]; };
  for (OddCell& cell : OddCells(rows)) found(Fault::kNotANumber, cell.row, std::move(cell.what));
  std::vector<int> apart = {id};  // columns in which copies may differ: one run under two machines' names
  for (const Category& category : spec.categories) {
    const int column = rows.Column(category.column);
    if (category.side == Side::kMachine && column >= 0) apart.push_back(column);
  }
  std::unordered_map<std::string, int64_t> seen;
  std::unordered_map<std::string_view, int64_t> ids;
  for (int64_t row = 0; row < rows.rows(); ++row) {
    const auto [named, is_named] = ids.emplace(rows.Cell(row, id), row);
    const Csv& csv = rows.csv();
    if (!is_named && !std::ranges::equal(csv.row(row), csv.row(named->second)))
      found(Fault::kSameId, row,
            fmt::format("line {}: {} \"{}\" is that of line {}, too: give every row its own", line_of(row),
                        spec.id, rows.Cell(row, id).substr(0, 40), line_of(named->second)));
    std::vector<std::string> cells(rows.csv().row(row).begin(), rows.csv().row(row).end());
    for (const int column : apart) cells[static_cast<size_t>(column)].clear();
    const auto [first, is_new] = seen.emplace(CsvLine(cells), row);
    if (!is_new)
      found(Fault::kDuplicate, row,
            fmt::format("line {} is the same as line {} in all but its id and machine: remove one",
                        line_of(row), line_of(first->second)));
  }
  return findings;
}

std::vector<Finding> CheckExpectations(const std::vector<Row>& rows) {
  std::vector<Finding> findings;
  for (const Row& row : rows) {
    for (const std::string& name : row.contradictions)
      findings.push_back(Finding::Of(
          Fault::kContradiction,
          fmt::format("the row contradicts \"{}\" of the SPEC: check its columns", name), row.id, row.place));
  }
  return findings;
}

std::vector<Finding> CheckTimes(const Data& data, Seed seed, int threads) {
  std::vector<Finding> findings;
  const TimeChecks checks(data);
  checks.AbovePeak(findings);
  checks.Scaling(findings);
  checks.Kinks(findings);
  checks.OffDataSheet(findings);
  checks.FarFromPeers(seed, threads, findings);
  return findings;
}

}  // namespace weir::predict
