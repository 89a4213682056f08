#include "predict/asked.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "base/count.h"
#include "predict/table/contains.h"
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
        return Refuse(fmt::format("this predictor knows no {}: leave out {}", what, flag));
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

std::string HardwareOf(const Spec& spec, const Settings& row) {
  return spec.hardware ? row.at(spec.hardware->key) : spec.name;
}

std::string OneText(const Spec& spec, const Answer& answer) {
  const std::string hardware = HardwareOf(spec, answer.row);
  if (!answer.value) return fmt::format("{}: refused: {}\n", hardware, answer.outside);
  std::string text =
      fmt::format("{}: {} {} ({} to {}), {}{}\n  {}\n", hardware, Short(*answer.value), spec.target,
                  Short(*answer.low), Short(*answer.high), answer.regime,
                  answer.outside.empty() ? "" : ": " + answer.outside, ShareText(answer.shares));
  if (!answer.job) return text;
  text += fmt::format("  the whole job: {} h ({} to {})", Short(answer.job->hours),
                      Short(answer.job->low_hours), Short(answer.job->high_hours));
  if (answer.job->cost)
    text += fmt::format(", cost {} ({} to {})", Short(*answer.job->cost), Short(*answer.job->low_cost),
                        Short(*answer.job->high_cost));
  return text + "\n";
}

// Makes columns as wide as their widest cell; the first two and the last stand left, the others right.
std::string Aligned(const std::vector<std::vector<std::string>>& lines) {
  std::vector<size_t> widths(lines.front().size(), 0);
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const auto& line : lines) {
    std::string one;
    for (size_t i = 0; i < line.size(); ++i) {
      const bool left = i < 2 || i + 1 == line.size();
      one += left ? fmt::format("{:<{}}  ", line[i], widths[i]) : fmt::format("{:>{}}  ", line[i], widths[i]);
    }
    text += one.substr(0, one.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string TableText(const Spec& spec, const std::vector<Answer>& answers) {
  const bool jobs = std::ranges::any_of(answers, [](const Answer& a) { return a.job.has_value(); });
  const bool costs = std::ranges::any_of(answers, [](const Answer& a) { return a.job && a.job->cost; });
  std::vector<std::vector<std::string>> lines = {
      {"hardware", "regime", spec.batch, spec.target, "low", "high"}};
  if (jobs) lines.front().emplace_back("hours");
  if (costs) lines.front().emplace_back("cost");
  lines.front().emplace_back("time goes to");
  const auto number = [](const std::optional<double>& value) { return value ? Short(*value) : "-"; };
  for (const Answer& answer : answers) {
    const auto batch = answer.row.find(spec.batch);
    std::vector<std::string>& line = lines.emplace_back();
    line = {HardwareOf(spec, answer.row), answer.regime, batch == answer.row.end() ? "" : batch->second};
    for (const auto& value : {answer.value, answer.low, answer.high}) line.push_back(number(value));
    if (jobs) line.push_back(answer.job ? Short(answer.job->hours) : "-");
    if (costs) line.push_back(number(answer.job ? answer.job->cost : std::nullopt));
    line.push_back(answer.value ? ShareText(answer.shares) : answer.outside);
  }
  return Aligned(lines);
}

using Lists = std::vector<std::pair<std::string, std::vector<std::string>>>;

Result<PredictAnswers> Answers(const AskedRows& asked, const Predictor& predictor, const Settings& base,
                               const std::vector<std::string>& hardware) {
  const Spec& spec = predictor.spec();
  const auto prices = TRY(Prices(asked, std::max<size_t>(1, hardware.size())));
  Lists lists;
  if (spec.hardware) lists.emplace_back(spec.hardware->key, hardware);
  std::vector<std::string> batches;
  for (const int batch : asked.batches) batches.push_back(fmt::format("{}", batch));
  if (!batches.empty()) lists.emplace_back(spec.batch, batches);
  const std::vector<Settings> rows = Combine(base, lists);
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

Result<Answered> Engines(const AskedRows& asked, const Predictor& predictor, const Settings& base,
                         const std::vector<std::string>& hardware, Answered answered) {
  const Spec& spec = predictor.spec();
  const std::vector<int> batches =
      asked.batches.empty() ? std::vector<int>{1, 2, 4, 8, 16, 32, 64} : asked.batches;
  Lists lists;
  if (spec.hardware) lists.emplace_back(spec.hardware->key, hardware);
  PredictEngines result{.name = spec.name, .engines = {}};
  for (const Settings& row : Combine(base, lists)) {
    const std::string name = HardwareOf(spec, row);
    auto engine = TRY_CONTEXT(AsEngine(predictor, row, batches), name);
    // One alone is fit for $(...).
    answered.text += fmt::format("{}{}\n", hardware.size() > 1 ? name + ": " : "", engine.engine);
    answered.notes.push_back(fmt::format("{}: at most {:.1f} % from the predicted times of batches {}", name,
                                         100 * engine.greatest_error, fmt::join(batches, ", ")));
    if (engine.batches_outside > 0)
      answered.notes.push_back(fmt::format("{}: {} of {} batches are outside the data: {}", name,
                                           engine.batches_outside, batches.size(), engine.outside));
    engine.hardware = EscapeBytes(name);
    engine.outside = EscapeBytes(engine.outside);
    result.engines.push_back(std::move(engine));
  }
  answered.result = result.ToJson();
  return answered;
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
  PredictEngines result{.name = spec.name, .engines = {}};
  if (!spec.hardware) return Refuse(fmt::format("the predictor {} knows no hardware", spec.name));
  for (const std::string& name : TRY(Hardware(asked, predictor, base))) {
    Settings row = base;
    row[spec.hardware->key] = name;
    result.engines.push_back(TRY_CONTEXT(AsEngine(predictor, row, asked.batches), name));
    result.engines.back().hardware = name;
  }
  return result;
}

Result<Answered> AnswerRows(const AskedRows& asked, const Predictor& predictor,
                            const ModelFactsOf& facts_of) {
  const Spec& spec = predictor.spec();
  Answered answered;
  const Settings base = TRY(RowOfFlags(asked, predictor, facts_of, answered.notes).Make());
  const std::vector<std::string> hardware = TRY(Hardware(asked, predictor, base));
  const bool has_batch = base.contains(spec.batch);
  if (asked.as_engine && has_batch)
    return Refuse(fmt::format("--as-engine asks for batches: say --batch, not --set {}", spec.batch));
  if (asked.as_engine) return Engines(asked, predictor, base, hardware, std::move(answered));
  if (!spec.batch.empty() && asked.batches.empty() && !has_batch)
    return Refuse(fmt::format("say --batch: {} of the row", spec.batch));
  const PredictAnswers result = TRY(Answers(asked, predictor, base, hardware));
  answered.text =
      result.answers.size() == 1 ? OneText(spec, result.answers.front()) : TableText(spec, result.answers);
  if (!result.taken_as_unknown.empty())
    answered.notes.push_back(
        fmt::format("unknown (give them with --set): {}", fmt::join(result.taken_as_unknown, ", ")));
  answered.any = std::ranges::any_of(result.answers, [](const Answer& a) { return a.value.has_value(); });
  answered.result = result.ToJson();
  return answered;
}

}  // namespace weir::predict
