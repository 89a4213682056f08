#include <fmt/format.h>

#include "base/file.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "model/show.h"
#include "predict/job.h"
#include "predict/whatif.h"

namespace weir::cli {
namespace {

using predict::Prediction, predict::Predictor, predict::Settings;

constexpr uint64_t kMaxPredictorBytes = uint64_t{1} << 30;

struct Wanted {
  std::string predictor, in, out, calibrate, json;
  std::vector<std::string> set, gpus;
  std::string network;
  std::vector<int> batches;
  int64_t items = 0;
  double epochs = 1, price = 0;
  int devices = 0;
  bool as_engine = false;
};

std::optional<int> ParseFlags(const Arguments& arguments, Wanted& w) {
  Flags flags("predict",
              "Times of rows that nobody measured, with intervals, and whether they lie inside the data.",
              "weir predict train.json --in rows.csv --out scored.csv\n  weir predict train.json --gpu "
              "H200-SXM-141GB --network resnet50 --batch 64 --set precision=fp32");
  flags.Required("PREDICTOR", w.predictor, "what weir fit made");
  flags.Optional("--in", w.in, "rows (CSV); columns that the predictor does not know are ignored");
  flags.Optional("--out", w.out, "row_id,prediction,low,high,regime,outside (CSV)");
  flags.Optional("--calibrate", w.calibrate, "a few rows measured on the hardware asked for (CSV)");
  flags.Texts("--gpu", w.gpus, "instead of --in: hardware, one or several", false);
  flags.Optional("--network", w.network, "a name of the network table, or an ONNX file or model folder");
  flags.Integers("--batch", w.batches, "items of a step on a device, one or several");
  flags.Integer("--devices", w.devices, 0, 1'000'000, "0: the SPEC asks for none");
  flags.Texts("--set", w.set, "further columns of the row: column=value", false);
  flags.Integer64("--items", w.items, 0, INT64_MAX, "of one epoch: the time of the whole job");
  flags.Number("--epochs", w.epochs, 1e-9, 1e9, "of the job");
  flags.Number("--price-per-hour", w.price, 0, 1e9, "of one device: the cost of the job");
  flags.Switch("--as-engine", w.as_engine,
               "print the emulated engine that behaves so, for --engine of run and serve");
  flags.Text("--json", w.json, "write the result as JSON to this file; - for standard output");
  return flags.Parse(arguments);
}

// What an ONNX file says of itself, as columns of the network table.
Result<Settings> NetworkFacts(const std::string& network) {
  const Json facts = TRY(model::DescribeModel(network));
  Settings settings;
  const auto put = [&](const char* fact, double scale, const char* column) {
    if (facts.contains(fact)) settings[column] = fmt::format("{}", facts[fact].get<double>() * scale);
  };
  put("parameters", 1e-6, "params_m");
  put("multiply_adds_per_item", 2e-9, "fwd_gflops_per_unit");
  put("multiply_adds_per_item", 1e-9, "fwd_gmacs");
  put("activations_per_item", 1e-6, "activations_m_per_unit");
  put("activations_per_item", 1e-6, "activations_m");
  put("depth", 1, "depth");
  put("inner_modules", 1, "blocks");
  return settings;
}

Result<Settings> BaseRow(const Wanted& w, const Predictor& predictor) {
  Settings row = TRY(predict::ParseSettings(w.set));
  const predict::Spec& spec = predictor.spec();
  if (!w.network.empty()) {
    if (!spec.networks)
      return Fail(ErrorCode::kInvalidArgument, "this predictor knows no networks: leave out --network");
    row[spec.networks->key] = w.network;
    if (w.network.ends_with(".onnx") || w.network.contains('/')) row.merge(TRY(NetworkFacts(w.network)));
  }
  if (w.devices > 0) {
    if (spec.devices.empty())
      return Fail(ErrorCode::kInvalidArgument, "this predictor knows no counts: leave out --devices");
    row[spec.devices] = fmt::format("{}", w.devices);
  } else if (!spec.devices.empty()) {
    row.emplace(spec.devices, "1");
  }
  return row;
}

Result<std::vector<Settings>> Rows(const Wanted& w, const Predictor& predictor) {
  const predict::Spec& spec = predictor.spec();
  std::vector<std::pair<std::string, std::vector<std::string>>> lists;
  if (spec.hardware) lists.emplace_back(spec.hardware->key, w.gpus);
  if (!w.batches.empty()) {
    if (spec.batch.empty())
      return Fail(ErrorCode::kInvalidArgument, "this predictor knows no batch: leave out --batch");
    std::vector<std::string> batches;
    for (const int batch : w.batches) batches.push_back(fmt::format("{}", batch));
    lists.emplace_back(spec.batch, std::move(batches));
  }
  return predict::Combine(TRY(BaseRow(w, predictor)), lists);
}

Json AnswerJson(const predict::Spec& spec, const Settings& row, const Prediction& prediction) {
  Json json{{"row", Json::object()}, {"regime", ToString(prediction.regime)}};
  for (const auto& [name, value] : row) json["row"][EscapeBytes(name)] = EscapeBytes(value);
  PutIfAny(json, spec.target.c_str(), prediction.value);
  PutIfAny(json, "low", prediction.low);
  PutIfAny(json, "high", prediction.high);
  if (!prediction.outside.empty()) json["outside"] = EscapeBytes(prediction.outside);
  for (size_t k = 0; k < prediction.shares.size(); ++k)
    json["shares"][spec.terms[k].name] = prediction.shares[k];
  return json;
}

Result<int> AskRows(const Wanted& w, const Predictor& predictor, const Console& console) {
  if (w.gpus.empty())
    return Fail(ErrorCode::kInvalidArgument, "predict wants either --in and --out, or --gpu");
  const predict::Spec& spec = predictor.spec();
  const std::vector<Settings> rows = TRY(Rows(w, predictor));
  if (w.as_engine) {
    const std::vector<int> batches = w.batches.empty() ? std::vector<int>{1, 2, 4, 8, 16, 32, 64} : w.batches;
    const auto engine = TRY(predict::AsEngine(predictor, rows.front(), batches));
    console.Text(engine.text + "\n");
    console.Note(fmt::format("at most {:.1f} % from the predicted times of batches {}",
                             100 * engine.greatest_error, fmt::join(batches, ", ")));
    TRY_STATUS(console.Json({{"engine", engine.text}, {"greatest_error", engine.greatest_error}}));
    return kDone;
  }
  const auto predictions = TRY(predictor.Predict(TRY(predict::MakeTable(spec, rows))));
  Json answers = Json::array();
  for (size_t i = 0; i < rows.size(); ++i) {
    const Prediction& p = predictions[i];
    answers.push_back(AnswerJson(spec, rows[i], p));
    std::string of = spec.hardware ? rows[i].at(spec.hardware->key) : "";
    if (w.batches.size() > 1) of += fmt::format(", {} {}", spec.batch, rows[i].at(spec.batch));
    if (!p.value) {
      console.Text(fmt::format("{}: refused: {}\n", of, p.outside));
      continue;
    }
    console.Text(fmt::format("{}: {} {} ({} to {}), {}{}\n  {}\n", of, Short(*p.value), spec.target,
                             Short(*p.low), Short(*p.high), ToString(p.regime),
                             p.outside.empty() ? "" : ": " + p.outside, predict::ShareText(spec, p)));
    if (w.items == 0) continue;
    const predict::Job job{.items = static_cast<double>(w.items),
                           .epochs = w.epochs,
                           .price_per_hour = w.price > 0 ? std::optional(w.price) : std::nullopt};
    const auto whole = TRY(predict::TimeOfJob(spec, rows[i], p, job));
    console.Text(fmt::format("  the whole job: {} h ({} to {}){}\n", Short(whole.hours), Short(whole.low),
                             Short(whole.high), whole.cost ? fmt::format(", {}", Short(*whole.cost)) : ""));
    Json part{{"hours", whole.hours}, {"low_hours", whole.low}, {"high_hours", whole.high}};
    PutIfAny(part, "cost", whole.cost);
    answers.back()["job"] = std::move(part);
  }
  TRY_STATUS(console.Json({{"name", spec.name}, {"answers", std::move(answers)}}));
  return kDone;
}

Result<int> ScoreFile(const Wanted& w, const Predictor& predictor, const Console& console) {
  if (w.out.empty()) return Fail(ErrorCode::kInvalidArgument, "--in wants --out, where the answers go");
  const predict::Table rows(TRY(predict::ReadCsv(w.in)));
  const auto predictions = TRY_CONTEXT(predictor.Predict(rows), w.in);
  TRY_STATUS(WriteFileWhole(w.out, predict::ScoredCsv(predictions)));
  const Json json = predict::PredictJson(predictor, predictions);
  console.Text(fmt::format("{} rows: {} inside, {} outside, {} refused\n", predictions.size(),
                           json["inside"].get<int64_t>(), json["outside"].get<int64_t>(),
                           json["refused"].get<int64_t>()));
  for (const auto& [why, count] : json["refusals"].items()) {
    console.Note(fmt::format("refused {}: {}", Count(count.get<int64_t>(), "row"), why));
  }
  TRY_STATUS(console.Json(json));
  return kDone;
}

Result<int> PredictVerb(const Wanted& w) {
  const Console console(w.json);
  TRY_STATUS(console.CheckJson());
  const Bytes saved = TRY(ReadFile(w.predictor, kMaxPredictorBytes));
  Predictor predictor = TRY_CONTEXT(Predictor::Load(saved.text()), w.predictor);
  if (!w.calibrate.empty()) {
    const predict::Table measured(TRY(predict::ReadCsv(w.calibrate)));
    for (const std::string& line : TRY_CONTEXT(predictor.Calibrate(measured), w.calibrate))
      console.Note("calibrate: " + line);
  }
  return w.in.empty() ? AskRows(w, predictor, console) : ScoreFile(w, predictor, console);
}

}  // namespace

int Predict(const Arguments& arguments) {
  Wanted wanted;
  if (const auto status = ParseFlags(arguments, wanted)) return *status;
  const Result<int> status = PredictVerb(wanted);
  return status ? *status : FailWith(status.error());
}

}  // namespace weir::cli
