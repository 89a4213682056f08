#include "cli/predict_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "base/csv.h"
#include "model/show.h"
#include "predict/whatif.h"
#include "results/predict_result.h"

namespace weir::cli {
namespace {

using predict::Prediction, predict::Predictor, predict::Settings, predict::Spec;

std::unexpected<Error> Refuse(std::string what) { return Fail(ErrorCode::kInvalidArgument, std::move(what)); }

// Reads the facts of an ONNX file, as columns of the network table.
Result<Settings> NetworkFacts(const std::string& network) {
  const results::ModelFacts facts = TRY(model::DescribeModel(network));
  Settings settings;
  const auto put = [&](const std::optional<int64_t>& fact, double scale, const char* column) {
    if (fact) settings[column] = fmt::format("{}", static_cast<double>(*fact) * scale);
  };
  put(facts.parameters, 1e-6, "params_m");
  put(facts.multiply_adds_per_item, 2e-9, "fwd_gflops_per_unit");
  put(facts.multiply_adds_per_item, 1e-9, "fwd_gmacs");
  put(facts.activations_per_item, 1e-6, "activations_m_per_unit");
  put(facts.activations_per_item, 1e-6, "activations_m");
  put(facts.depth, 1, "depth");
  put(facts.inner_modules, 1, "blocks");
  return settings;
}

// A name of the table comes before a folder that is called so: ./NAME is the folder.
bool IsModel(const std::string& network, const predict::Table& networks) {
  std::error_code ignored;
  return networks.KeysBeginning(network).empty() &&
         (network.ends_with(".onnx") || std::filesystem::is_directory(network, ignored));
}

// A model that the table knows is asked for by its name, so that it gives the answer that the name gives.
Status PutModel(const std::string& model, const Predictor& predictor, const Console& console, Settings& row) {
  const Spec& spec = predictor.spec();
  Settings facts = TRY(NetworkFacts(model));
  const auto alike = predict::NetworksAlike(spec, predictor.networks(), facts);
  row[spec.networks->key] = alike.empty() ? model : alike.front();
  if (alike.empty())
    row.merge(std::move(facts));
  else
    console.Note(fmt::format("{} has the facts of {}: asked as {}{}", model, fmt::join(alike, " and "),
                             alike.front(), alike.size() > 1 ? ", --network NAME asks as another" : ""));
  return {};
}

Status PutNetwork(const AskedRows& asked, const Predictor& predictor, const Console& console, Settings& row) {
  const Spec& spec = predictor.spec();
  if (!spec.networks) {
    return asked.network.empty() ? Status() : Refuse("this predictor knows no networks: leave out --network");
  }
  const std::string& key = spec.networks->key;
  if (asked.network.empty())
    return row.contains(key) ? Status() : Refuse(fmt::format("say --network: a {}, or an ONNX file", key));
  if (row.contains(key)) return Refuse(fmt::format("--network and --set {} say the same", key));
  if (IsModel(asked.network, predictor.networks())) return PutModel(asked.network, predictor, console, row);
  row[key] = TRY(predict::KeyMeant(predictor.networks(), asked.network, key));
  return {};
}

Status PutDevices(const AskedRows& asked, const Spec& spec, Settings& row) {
  if (spec.devices.empty())
    return asked.devices == 0 ? Status() : Refuse("this predictor knows no counts: leave out --devices");
  if (asked.devices > 0 && row.contains(spec.devices))
    return Refuse(fmt::format("--devices and --set {} say the same", spec.devices));
  row.emplace(spec.devices, fmt::format("{}", std::max(1, asked.devices)));
  return {};
}

// Puts --nodes and --network-gbit into the columns of these names.
Status PutCluster(const AskedRows& asked, const Spec& spec, Settings& row) {
  const std::vector<std::string> columns = predict::ColumnsOf(spec);
  const auto put = [&](const char* flag, const char* column, double value) -> Status {
    if (value <= 0) return {};
    if (!std::ranges::binary_search(columns, column))
      return Refuse(fmt::format("this predictor uses no column {}: leave out {}", column, flag));
    if (!row.emplace(column, fmt::format("{:g}", value)).second)
      return Refuse(fmt::format("{} and --set {} say the same", flag, column));
    return {};
  };
  TRY_STATUS(put("--nodes", "nodes", asked.nodes));
  return put("--network-gbit", "network_gbit_per_s", asked.network_gbit);
}

// Returns the settings that every row has: --set, --network, --devices, --nodes, --network-gbit.
Result<Settings> BaseRow(const AskedRows& asked, const Predictor& predictor, const Console& console) {
  Settings row = TRY(predict::ParseSettings(asked.set));
  TRY_STATUS(predict::CheckSettings(predictor.spec(), row));
  TRY_STATUS(PutCluster(asked, predictor.spec(), row));
  TRY_STATUS(PutNetwork(asked, predictor, console, row));
  TRY_STATUS(PutDevices(asked, predictor.spec(), row));
  return row;
}

// The hardware asked for, by its names in the table. One that is set by --set stays as it is.
Result<std::vector<std::string>> Hardware(const AskedRows& asked, const Predictor& predictor,
                                          const Settings& base) {
  const Spec& spec = predictor.spec();
  if (!spec.hardware) {
    if (!asked.gpus.empty()) return Refuse("this predictor knows no hardware: leave out --gpu");
    return std::vector<std::string>();
  }
  const std::string& key = spec.hardware->key;
  if (base.contains(key)) {
    if (!asked.gpus.empty()) return Refuse(fmt::format("--gpu and --set {} say the same", key));
    return std::vector{base.at(key)};
  }
  if (asked.gpus.empty()) return Refuse("say --gpu, or --in and --out for rows of a file");
  std::vector<std::string> names;
  for (const std::string& gpu : asked.gpus)
    names.push_back(TRY(predict::KeyMeant(predictor.hardware(), gpu, key)));
  return names;
}

Status CheckBatch(const AskedRows& asked, const Spec& spec, const Settings& base) {
  if (spec.batch.empty())
    return asked.batches.empty() ? Status() : Refuse("this predictor knows no batch: leave out --batch");
  if (base.contains(spec.batch) && !asked.batches.empty())
    return Refuse(fmt::format("--batch and --set {} say the same", spec.batch));
  return {};
}

// The price of each of `count` kinds of hardware; one price is of all.
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

// One answer, and where it stands in the table.
struct Answer {
  Settings row;
  std::string hardware, batch;
  Prediction prediction;
  std::optional<predict::JobAnswer> job;
};

results::PredictAnswers::Answer ResultOf(const Spec& spec, const Answer& answer) {
  const Prediction& p = answer.prediction;
  results::PredictAnswers::Answer result;
  for (const auto& [name, value] : answer.row) result.row[EscapeBytes(name)] = EscapeBytes(value);
  result.regime = ToString(p.regime);
  result.value = p.value;
  result.low = p.low;
  result.high = p.high;
  result.outside = EscapeBytes(p.outside);
  for (size_t k = 0; k < p.shares.size(); ++k) result.shares[spec.terms[k].name] = p.shares[k];
  if (const auto& job = answer.job) {
    result.job = {.hours = job->hours,
                  .low_hours = job->low,
                  .high_hours = job->high,
                  .cost = job->cost,
                  .low_cost = job->low_cost,
                  .high_cost = job->high_cost};
  }
  return result;
}

std::string JobText(const predict::JobAnswer& job) {
  const std::string cost = job.cost ? fmt::format(", cost {} ({} to {})", Short(*job.cost),
                                                  Short(*job.low_cost), Short(*job.high_cost))
                                    : "";
  return fmt::format("  the whole job: {} h ({} to {}){}\n", Short(job.hours), Short(job.low),
                     Short(job.high), cost);
}

std::string OneText(const Spec& spec, const Answer& answer) {
  const Prediction& p = answer.prediction;
  if (!p.value) return fmt::format("{}: refused: {}\n", answer.hardware, p.outside);
  return fmt::format("{}: {} {} ({} to {}), {}{}\n  {}\n", answer.hardware, Short(*p.value), spec.target,
                     Short(*p.low), Short(*p.high), ToString(p.regime),
                     p.outside.empty() ? "" : ": " + p.outside, predict::ShareText(spec, p)) +
         (answer.job ? JobText(*answer.job) : "");
}

// Columns as wide as their widest cell; words stand left, numbers right.
std::string Aligned(const std::vector<std::vector<std::string>>& lines, size_t words) {
  std::vector<size_t> widths(lines.front().size(), 0);
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const auto& line : lines) {
    std::string one;
    for (size_t i = 0; i < line.size(); ++i) {
      const bool left = i < words || i + 1 == line.size();
      one += left ? fmt::format("{:<{}}  ", line[i], widths[i]) : fmt::format("{:>{}}  ", line[i], widths[i]);
    }
    text += one.substr(0, one.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string TableText(const Spec& spec, const std::vector<Answer>& answers) {
  const bool jobs = std::ranges::any_of(answers, [](const Answer& a) { return a.job.has_value(); });
  const bool costs = std::ranges::any_of(answers, [](const Answer& a) { return a.job && a.job->cost; });
  std::vector<std::string> head = {"hardware",  "regime", spec.batch.empty() ? "" : spec.batch,
                                   spec.target, "low",    "high"};
  if (jobs) head.emplace_back("hours");
  if (costs) head.emplace_back("cost");
  head.emplace_back("time goes to");
  std::vector<std::vector<std::string>> lines = {head};
  const auto number = [](const std::optional<double>& value) { return value ? Short(*value) : "-"; };
  for (const Answer& answer : answers) {
    const Prediction& p = answer.prediction;
    std::vector<std::string> line = {answer.hardware, std::string(ToString(p.regime)),
                                     answer.batch,    number(p.value),
                                     number(p.low),   number(p.high)};
    if (jobs) line.push_back(answer.job ? Short(answer.job->hours) : "-");
    if (costs) line.push_back(number(answer.job ? answer.job->cost : std::nullopt));
    line.push_back(p.value ? predict::ShareText(spec, p) : p.outside);
    lines.push_back(std::move(line));
  }
  return Aligned(lines, 2);
}

Result<std::vector<Answer>> Answers(const AskedRows& asked, const Predictor& predictor, const Settings& base,
                                    const std::vector<std::string>& hardware) {
  const Spec& spec = predictor.spec();
  const auto prices = TRY(Prices(asked, std::max<size_t>(1, hardware.size())));
  std::vector<std::pair<std::string, std::vector<std::string>>> lists;
  if (spec.hardware) lists.emplace_back(spec.hardware->key, hardware);
  std::vector<std::string> batches;
  for (const int batch : asked.batches) batches.push_back(fmt::format("{}", batch));
  if (!batches.empty()) lists.emplace_back(spec.batch, batches);
  const std::vector<Settings> rows = predict::Combine(base, lists);
  const auto predictions = TRY(predictor.Predict(TRY(predict::MakeTable(spec, rows))));
  std::vector<Answer> answers;
  for (size_t i = 0; i < rows.size(); ++i) {
    Answer answer{.row = rows[i],
                  .hardware = spec.hardware ? rows[i].at(spec.hardware->key) : spec.name,
                  .batch = {},
                  .prediction = predictions[i],
                  .job = {}};
    if (const auto batch = rows[i].find(spec.batch); batch != rows[i].end()) answer.batch = batch->second;
    if (asked.items > 0 && predictions[i].value) {
      // Hardware is the slower list.
      const predict::Job job{.items = static_cast<double>(asked.items),
                             .epochs = asked.epochs > 0 ? asked.epochs : 1,
                             .price_per_hour = prices[i * prices.size() / rows.size()]};
      answer.job = TRY(predict::TimeOfJob(spec, rows[i], predictions[i], job));
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

Status SayEngines(const AskedRows& asked, const Predictor& predictor, const Settings& base,
                  const std::vector<std::string>& hardware, const Console& console) {
  const Spec& spec = predictor.spec();
  const std::vector<int> batches =
      asked.batches.empty() ? std::vector<int>{1, 2, 4, 8, 16, 32, 64} : asked.batches;
  std::vector<std::pair<std::string, std::vector<std::string>>> lists;
  if (spec.hardware) lists.emplace_back(spec.hardware->key, hardware);
  results::PredictEngines result{.name = spec.name, .engines = {}};
  for (const Settings& row : predict::Combine(base, lists)) {
    const std::string name = spec.hardware ? row.at(spec.hardware->key) : spec.name;
    const auto engine = TRY_CONTEXT(predict::AsEngine(predictor, row, batches), name);
    // One alone is fit for $(...).
    console.Text(hardware.size() > 1 ? fmt::format("{}: {}\n", name, engine.text) : engine.text + "\n");
    console.Note(fmt::format("{}: at most {:.1f} % from the predicted times of batches {}", name,
                             100 * engine.greatest_error, fmt::join(batches, ", ")));
    if (engine.outside > 0)
      console.Note(fmt::format("{}: {} of {} batches are outside the data: {}", name, engine.outside,
                               batches.size(), engine.why));
    result.engines.push_back({.hardware = EscapeBytes(name),
                              .engine = engine.text,
                              .base_ms = engine.base_ms,
                              .per_item_ms = engine.per_item_ms,
                              .greatest_error = engine.greatest_error,
                              .batches = batches,
                              .batches_outside = engine.outside,
                              .outside = engine.outside > 0 ? EscapeBytes(engine.why) : ""});
  }
  return console.Json(result.ToJson());
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

Result<int> AnswerRows(const AskedRows& asked, const Predictor& predictor, const Console& console) {
  const Spec& spec = predictor.spec();
  const Settings base = TRY(BaseRow(asked, predictor, console));
  const std::vector<std::string> hardware = TRY(Hardware(asked, predictor, base));
  TRY_STATUS(CheckBatch(asked, spec, base));
  if (asked.as_engine) {
    if (base.contains(spec.batch))
      return Refuse(fmt::format("--as-engine asks for batches: say --batch, not --set {}", spec.batch));
    TRY_STATUS(SayEngines(asked, predictor, base, hardware, console));
    return kDone;
  }
  if (!spec.batch.empty() && asked.batches.empty() && !base.contains(spec.batch))
    return Refuse(fmt::format("say --batch: {} of the row", spec.batch));
  const std::vector<Answer> answers = TRY(Answers(asked, predictor, base, hardware));
  results::PredictAnswers result{
      .name = spec.name, .target = spec.target, .answers = {}, .taken_as_unknown = {}};
  for (const Answer& answer : answers) result.answers.push_back(ResultOf(spec, answer));
  console.Text(answers.size() == 1 ? OneText(spec, answers.front()) : TableText(spec, answers));
  const auto unknown = predict::UnknownColumns(predictor, answers.front().row);
  if (!unknown.empty())
    console.Note(fmt::format("unknown (give them with --set): {}", fmt::join(unknown, ", ")));
  result.taken_as_unknown = {unknown.begin(), unknown.end()};
  TRY_STATUS(console.Json(result.ToJson()));
  const bool any =
      std::ranges::any_of(answers, [](const Answer& a) { return a.prediction.value.has_value(); });
  return any ? kDone : kBadInput;
}

}  // namespace weir::cli
