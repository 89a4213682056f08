#include "predict/validation/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/contains.h"
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
constexpr double kPeakSlack = 2.5;
constexpr double kWorstScaling = 0.35, kBestScaling = 1.3;
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

  Status FarFromPeers(Seed seed, int threads, std::vector<Finding>& findings) const {
    std::vector<Fold> folds = MakeFolds(data_.rows, Split::kInside, seed);
    if (folds.empty()) return {};
    Recipe recipe{.name = "check",
                  .physical = {.pull = 10},
                  .tree = {.rounds = 120, .rate = 0.15, .depth = 6, .loss = Trees::Loss::kAbsolute}};
    // Rows that are far off would pull the fit, so each round learns without those of the round before. The
    // first round uses the physical model alone, which a few rows cannot move.
    for (const int round : {0, 1, 2}) {
      const bool last = round == 2;
      recipe.trees = round > 0;
      const CrossValidation validation =
          TRY(CrossValidate(data_, Split::kInside, folds, {recipe}, {.threads = threads, .seed = seed}));
      std::vector<double> misses(validation.row.size()), sizes(validation.row.size());
      for (size_t i = 0; i < misses.size(); ++i) {
        misses[i] = validation.measured[i] - validation.predicted[0][i];
        sizes[i] = std::abs(misses[i]);
      }
      // 1.4826 median absolute deviations are a standard deviation of a normal distribution.
      const double limit = std::max(std::log(kFarFactor), kFarDeviations * 1.4826 * stats::Median(sizes));
      std::vector<char> far(data_.rows.size(), 0);
      for (size_t i = 0; i < misses.size(); ++i) {
        const auto row = static_cast<size_t>(validation.row[i]);
        if (sizes[i] <= (round == 0 ? limit + std::log(kFarFactor) : limit)) continue;
        far[row] = 1;
        if (last) findings.push_back(Describe(data_.rows[row], std::exp(misses[i])));
      }
      if (std::ranges::count(far, 1) * 3 > std::ssize(far)) return {};  // the model is wrong, not the rows
      for (Fold& fold : folds)
        std::erase_if(fold.train, [&](int i) { return far[static_cast<size_t>(i)] != 0; });
    }
    return {};
  }

 private:
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
  std::map<std::pair<int64_t, std::string>, std::pair<int, double>> breaches;  // how many laws, how far
  for (const Law& law : Laws()) {
    for (const auto& [row, off] : Breaches(law, facts.hardware)) {
      auto& [count, most] = breaches[{row, law.column}];
      count += NeedsBoth(law) ? 1 : 2;
      most = off;
    }
  }
  for (const auto& [place, breach] : breaches) {
    if (breach.first < 2) continue;
    const std::string_view gpu = facts.hardware.Cell(place.first, name);
    Finding finding = Finding::Of(
        Fault::kHardwareFact,
        fmt::format(
            "hardware {}: {} is {:.2g} times what others of its kind have: correct the hardware table", gpu,
            place.second, breach.second));
    for (int64_t row = 0; row < rows.rows() && key >= 0 && id >= 0; ++row) {
      if (rows.Cell(row, key) != gpu) continue;
      finding.rows.emplace_back(rows.Cell(row, id));
      finding.places.push_back(row);
    }
    findings.push_back(std::move(finding));
  }
  return findings;
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

Result<std::vector<Finding>> CheckTimes(const Data& data, Seed seed, int threads) {
  std::vector<Finding> findings;
  const TimeChecks checks(data);
  checks.AbovePeak(findings);
  checks.Scaling(findings);
  checks.Kinks(findings);
  TRY_STATUS(checks.FarFromPeers(seed, threads, findings));
  return findings;
}

}  // namespace weir::predict
