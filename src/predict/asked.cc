#include "predict/asked.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "base/count.h"
#include "predict/whatif.h"

namespace weir::predict {
namespace {

using results::ModelFacts, results::PredictAnswers, results::PredictEngines;
using Answer = PredictAnswers::Answer;

std::unexpected<Error> Refuse(std::string what) { return Fail(ErrorCode::kInvalidArgument, std::move(what)); }

// The facts of a model, as columns of the network table and their scale.
struct FactColumn {
  const char* column;
  std::optional<int64_t> ModelFacts::* fact;
  double scale;
};
constexpr FactColumn kFactColumns[] = {{"params_m", &ModelFacts::parameters, 1e-6},
                                       {"fwd_gflops_per_unit", &ModelFacts::multiply_adds_per_item, 2e-9},
                                       {"fwd_gmacs", &ModelFacts::multiply_adds_per_item, 1e-9},
                                       {"activations_m_per_unit", &ModelFacts::activations_per_item, 1e-6},
                                       {"activations_m", &ModelFacts::activations_per_item, 1e-6},
                                       {"depth", &ModelFacts::depth, 1},
                                       {"blocks", &ModelFacts::inner_modules, 1}};

// Makes the row that all answers have in common from the flags.
class RowOfFlags {
 public:
  RowOfFlags(const AskedRows& asked, const Predictor& predictor, const ModelFactsOf& facts_of,
             std::vector<std::string>& notes)
      : asked_(asked), predictor_(predictor), spec_(predictor.spec()), facts_of_(facts_of), notes_(notes) {}

  Result<Settings> Make() {
    row_ = TRY(ParseSettings(asked_.set));
    TRY_STATUS(CheckSettings(spec_, row_));
    TRY_STATUS(CheckUse());
    TRY_STATUS(PutCluster("--nodes", "nodes", asked_.nodes));
    TRY_STATUS(PutCluster("--network-gbit", "network_gbit_per_s", asked_.network_gbit));
    TRY_STATUS(PutNetwork());
    if (asked_.devices > 0) TRY_STATUS(Put("--devices", spec_.devices, fmt::format("{}", asked_.devices)));
    if (!spec_.devices.empty()) row_.emplace(spec_.devices, "1");
    if (!asked_.batches.empty() && row_.contains(spec_.batch)) return Twice("--batch", spec_.batch);
    return row_;
  }

 private:
  static std::unexpected<Error> Twice(std::string_view flag, const std::string& column) {
    return Refuse(fmt::format("{} and --set {} say the same", flag, column));
  }

  Status Put(std::string_view flag, const std::string& column, std::string value) {
    return row_.emplace(column, std::move(value)).second ? Status() : Twice(flag, column);
  }

  // Refuses flags that this predictor has no use for.
  Status CheckUse() const {
    const std::tuple<bool, bool, const char*, const char*> uses[] = {
        {!asked_.gpus.empty(), spec_.hardware.has_value(), "hardware", "--gpu"},
        {!asked_.network.empty(), spec_.networks.has_value(), "networks", "--network"},
        {asked_.devices > 0, !spec_.devices.empty(), "counts", "--devices"},
        {!asked_.batches.empty(), !spec_.batch.empty(), "batch", "--batch"}};
    for (const auto& [is_asked, is_known, what, flag] : uses) {
      if (is_asked && !is_known)
        return Refuse(fmt::format("this predictor knows no {}: leave out {}; it uses the columns {}", what,
                                  flag, fmt::join(ColumnsOf(spec_), ", ")));
    }
    return {};
  }

  Status PutCluster(const char* flag, const char* column, double value) {
    if (value <= 0) return {};
    if (!std::ranges::binary_search(ColumnsOf(spec_), column))
      return Refuse(fmt::format("this predictor uses no column {}: leave out {}", column, flag));
    return Put(flag, column, fmt::format("{:g}", value));
  }

  Status PutNetwork() {
    if (!spec_.networks) return {};
    const std::string &key = spec_.networks->key, &network = asked_.network;
    if (network.empty())
      return row_.contains(key) ? Status() : Refuse(fmt::format("say --network: a {}, or an ONNX file", key));
    if (row_.contains(key)) return Twice("--network", key);
    // A name of the table comes before a folder that is called so: ./NAME is the folder.
    std::error_code ignored;
    if (predictor_.networks().KeysBeginning(network).empty() &&
        (network.ends_with(".onnx") || std::filesystem::is_directory(network, ignored)))
      return PutModel();
    return Put("--network", key, TRY(KeyMeant(predictor_.networks(), network, key)));
  }

  // Asks for a model that the table knows by its name there, so that both give one answer.
  Status PutModel() {
    const ModelFacts facts = TRY(facts_of_(asked_.network));
    Settings columns;
    for (const auto& [column, fact, scale] : kFactColumns) {
      if (facts.*fact) columns[column] = fmt::format("{}", static_cast<double>(*(facts.*fact)) * scale);
    }
    const auto alike = NetworksAlike(spec_, predictor_.networks(), columns);
    row_[spec_.networks->key] = alike.empty() ? asked_.network : alike.front();
    if (alike.empty())
      row_.merge(std::move(columns));
    else
      notes_.push_back(fmt::format("{} has the facts of {}: asked as {}{}", asked_.network,
                                   fmt::join(alike, " and "), alike.front(),
                                   alike.size() > 1 ? ", --network NAME asks as another" : ""));
    return {};
  }

  const AskedRows& asked_;
  const Predictor& predictor_;
  const Spec& spec_;
  const ModelFactsOf& facts_of_;
  std::vector<std::string>& notes_;
  Settings row_;
};

// Returns the hardware asked for, by its names in the table. One that --set gives stays as it is.
Result<std::vector<std::string>> Hardware(const AskedRows& asked, const Predictor& predictor,
                                          const Settings& base) {
  std::vector<std::string> names;
  if (!predictor.spec().hardware) return names;
  const std::string& key = predictor.spec().hardware->key;
  const auto set = base.find(key);
  if (set != base.end() && !asked.gpus.empty())
    return Refuse(fmt::format("--gpu and --set {} say the same", key));
  if (set != base.end()) return std::vector{set->second};
  if (asked.gpus.empty()) return Refuse("say --gpu, or --in and --out for rows of a file");
  for (const std::string& gpu : asked.gpus) names.push_back(TRY(KeyMeant(predictor.hardware(), gpu, key)));
  return names;
}

// Returns the price of each of `count` kinds of hardware; one price is of all.
Result<std::vector<std::optional<double>>> Prices(const AskedRows& asked, size_t count) {
  std::vector<std::optional<double>> prices;
  for (const std::string& text : asked.prices) {
    const double price = TRY_CONTEXT(ParseNumber(text), "--price-per-hour");
    if (price < 0) return Refuse(fmt::format("--price-per-hour: {} is below 0", text));
    prices.emplace_back(price);
  }
  if (prices.size() <= 1) return std::vector(count, prices.empty() ? std::nullopt : prices.front());
  if (prices.size() == count) return prices;
  return Refuse(fmt::format("--price-per-hour wants one price, or one for each of {} --gpu, not {}", count,
                            prices.size()));
}

Answer ResultOf(const Spec& spec, const Settings& row, const Prediction& p) {
  Answer answer{.row = {},
                .regime = std::string(ToString(p.regime)),
                .value = p.value,
                .low = p.low,
                .high = p.high,
                .outside = EscapeBytes(p.outside),
                .shares = {},
                .job = {}};
  for (const auto& [name, value] : row) answer.row[EscapeBytes(name)] = EscapeBytes(value);
  for (size_t k = 0; k < p.shares.size(); ++k) answer.shares[spec.terms[k].name] = p.shares[k];
  return answer;
}

// Returns `base` with each hardware and each batch; hardware changes slowest. No list leaves `base` as it is.
std::vector<Settings> RowsOver(const Spec& spec, const Settings& base,
                               const std::vector<std::string>& hardware, const std::vector<int>& batches) {
  std::vector<Settings> rows;
  for (size_t i = 0; i < std::max<size_t>(1, hardware.size()); ++i) {
    Settings row = base;
    if (!hardware.empty()) row[spec.hardware->key] = hardware[i];
    if (batches.empty()) rows.push_back(row);
    for (const int batch : batches) {
      row[spec.batch] = fmt::format("{}", batch);
      rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace

Status CheckAsked(const AskedRows& asked) {
  const bool job = asked.items > 0;
  if (!job && asked.epochs > 0) return Refuse("--epochs is of a job: say --items, too");
  if (!job && !asked.prices.empty()) return Refuse("--price-per-hour is of a job: say --items, too");
  if (asked.as_engine && job) return Refuse("--as-engine prints an engine, not a job: leave out --items");
  for (const int batch : asked.batches) {
    if (batch < 1) return Refuse(fmt::format("--batch: {} is not at least 1", batch));
  }
  if (asked.as_engine && std::set<int>(asked.batches.begin(), asked.batches.end()).size() == 1)
    return Refuse(
        "--as-engine is a line through the times of batches: say two different --batch at least, or none for "
        "1 to 64");
  return {};
}

Result<PredictEngines> AnswerEngines(const AskedRows& asked, const Predictor& predictor,
                                     const ModelFactsOf& facts_of, std::vector<std::string>& notes) {
  const Spec& spec = predictor.spec();
  const Settings base = TRY(RowOfFlags(asked, predictor, facts_of, notes).Make());
  const std::vector<std::string> hardware = TRY(Hardware(asked, predictor, base));
  if (base.contains(spec.batch))
    return Refuse(fmt::format("--as-engine asks for batches: say --batch, not --set {}", spec.batch));
  const std::vector<int> batches =
      asked.batches.empty() ? std::vector<int>{1, 2, 4, 8, 16, 32, 64} : asked.batches;
  PredictEngines result{.name = spec.name, .engines = {}};
  for (const Settings& row : RowsOver(spec, base, hardware, {})) {
    const std::string& name = spec.hardware ? row.at(spec.hardware->key) : spec.name;
    auto& engine = result.engines.emplace_back(TRY_CONTEXT(AsEngine(predictor, row, batches), name));
    engine.hardware = EscapeBytes(name);
    engine.outside = EscapeBytes(engine.outside);
  }
  return result;
}

Result<PredictAnswers> AnswerRows(const AskedRows& asked, const Predictor& predictor,
                                  const ModelFactsOf& facts_of, std::vector<std::string>& notes) {
  const Spec& spec = predictor.spec();
  const Settings base = TRY(RowOfFlags(asked, predictor, facts_of, notes).Make());
  const std::vector<std::string> hardware = TRY(Hardware(asked, predictor, base));
  if (!spec.batch.empty() && asked.batches.empty() && !base.contains(spec.batch))
    return Refuse(fmt::format("say --batch: {} of the row", spec.batch));
  const auto prices = TRY(Prices(asked, std::max<size_t>(1, hardware.size())));
  const std::vector<Settings> rows = RowsOver(spec, base, hardware, asked.batches);
  const auto predictions = TRY(predictor.Predict(TRY(MakeTable(spec, rows))));
  PredictAnswers result{.name = spec.name, .target = spec.target, .answers = {}, .taken_as_unknown = {}};
  for (size_t i = 0; i < rows.size(); ++i) {
    Answer& answer = result.answers.emplace_back(ResultOf(spec, rows[i], predictions[i]));
    if (asked.items <= 0 || !answer.value) continue;
    // Hardware is the slower list.
    const Job job{.items = static_cast<double>(asked.items),
                  .epochs = asked.epochs > 0 ? asked.epochs : 1,
                  .price_per_hour = prices[i * prices.size() / rows.size()]};
    answer.job = TRY(TimeOfJob(spec, rows[i], predictions[i], job));
  }
  result.taken_as_unknown = UnknownColumns(predictor, rows.front());
  return result;
}

}  // namespace weir::predict
