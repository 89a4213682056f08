#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "model/show.h"
#include "predict/asked.h"
#include "predict/job.h"
#include "report/predict_text.h"

namespace weir::cli {
namespace {

using predict::Predictor;

constexpr uint64_t kMaxPredictorBytes = uint64_t{1} << 30;
constexpr int kMostReasons = 10;

struct Wanted {
  std::string predictor, in, out, calibrate, json;
  bool explain = false;
  predict::AskedRows asked;
};

std::optional<int> ParseFlags(const Arguments& arguments, Wanted& w) {
  Flags flags("predict",
              "Times of rows that nobody measured, with intervals, and whether they lie inside the data.",
              "weir predict train.json --in rows.csv --out scored.csv\n  weir predict train.json --gpu "
              "H200-SXM-141GB --network resnet50 --batch 64 --set precision=fp32");
  flags.Required("PREDICTOR", w.predictor, "what weir fit made");
  flags.Optional(
      "--in", w.in,
      "rows (CSV, or a study's journal.jsonl); columns that the predictor does not know are ignored");
  flags.Optional("--out", w.out, "row_id,prediction,low,high,regime,outside (CSV)");
  flags.Optional("--calibrate", w.calibrate,
                 "rows measured on the new hardware, with their target (CSV); ids are optional");
  flags.Texts("--gpu", w.asked.gpus, "instead of --in: hardware, one or several", false);
  flags.Optional("--network", w.asked.network,
                 "a name of the network table, or an ONNX file or model folder");
  flags.Integers("--batch", w.asked.batches, "items of a step on a device, one or several");
  flags.Integer("--devices", w.asked.devices, 0, 1'000'000, "how many work on it; 0: one");
  flags.Texts("--set", w.asked.set, "further columns of the row: column=value", false);
  flags.Integer("--nodes", w.asked.nodes, 0, 1'000'000, "hosts that share the devices; 0: unknown");
  flags.Number("--network-gbit", w.asked.network_gbit, 0, 1e6,
               "Gbit/s of each host's network card; 0: unknown");
  flags.Integer64("--items", w.asked.items, 1, INT64_MAX, "of one epoch: the time of the whole job");
  flags.Number("--epochs", w.asked.epochs, 1e-9, 1e9, "of the job; left out: 1");
  flags.Texts("--price-per-hour", w.asked.prices,
              "of one device: the cost of the job; one price, or one for each --gpu", false);
  flags.Switch("--as-engine", w.asked.as_engine,
               "print the emulated engine that behaves so, for --engine of run and serve");
  flags.Switch("--explain", w.explain,
               "print the models of PREDICTOR, coefficients and terms; no row is asked");
  flags.Text("--json", w.json, "write the result as JSON to this file; - for standard output");
  return flags.Parse(arguments);
}

Status CheckTogether(const Wanted& w) {
  const auto refuse = [](std::string what) { return Fail(ErrorCode::kInvalidArgument, std::move(what)); };
  if (w.explain && (w.asked.any() || !w.in.empty() || !w.out.empty() || !w.calibrate.empty())) {
    return refuse(
        "--explain prints the models and answers no row: leave out --in, --out, --calibrate and what asks "
        "for "
        "a row");
  }
  if (w.in.empty() && !w.out.empty())
    return refuse(
        "--out is for the answers to the rows of --in; an answer to flags is printed (--json FILE)");
  if (!w.in.empty() && w.out.empty()) return refuse("--in wants --out, where the answers go");
  if (!w.in.empty() && w.asked.any()) {
    return refuse(
        "the rows come from --in, so --gpu, --network, --batch, --devices, --nodes, --network-gbit, --set, "
        "--items, --epochs, "
        "--price-per-hour and --as-engine say nothing: leave them out, or leave out --in and --out");
  }
  TRY_STATUS(predict::CheckAsked(w.asked));
  return CheckApart({{"PREDICTOR", w.predictor},
                     {"--in", w.in},
                     {"--calibrate", w.calibrate},
                     {"--network", w.asked.network}},
                    {{"--out", w.out}, {"--json", w.json}});
}

Status ScoreFile(const Wanted& w, const Predictor& predictor, const Console& console) {
  const predict::Table rows(TRY(predict::ReadRows(w.in)));
  const auto predictions = TRY_CONTEXT(predictor.Predict(rows), w.in);
  TRY_STATUS(WriteFileWhole(w.out, predict::ScoredCsv(predictions)));
  const results::PredictResult result = predict::MakePredictResult(predictor, predictions);
  console.Text(fmt::format("{} rows: {} inside, {} outside, {} refused\n", result.rows, result.inside,
                           result.outside, result.refused));
  int said = 0;
  for (const auto& [why, count] : result.refusals) {
    if (said++ < kMostReasons) console.Note(fmt::format("refused {}: {}", Count(count, "row"), why));
  }
  if (said > kMostReasons)
    console.Note(fmt::format("and for {} more reasons; {} has each row's", said - kMostReasons, w.out));
  return console.Json(result.ToJson());
}

Result<int> PredictVerb(const Wanted& w) {
  const Console console(w.json);
  TRY_STATUS(CheckTogether(w));
  TRY_STATUS(console.CheckJson());
  TRY_STATUS(CheckOutput("--out", w.out));
  const Bytes saved = TRY(ReadFile(w.predictor, kMaxPredictorBytes));
  Predictor predictor = TRY_CONTEXT(Predictor::Load(saved.text()), w.predictor);
  if (w.explain) {
    const results::PredictModels models{.name = predictor.spec().name, .models = predictor.Explain()};
    console.Text(models.models);
    TRY_STATUS(console.Json(models.ToJson()));
    return kDone;
  }
  if (!w.calibrate.empty()) {
    const predict::Table measured(predict::WithIds(TRY(predict::ReadRows(w.calibrate)), predictor.spec().id));
    for (const std::string& line : TRY_CONTEXT(predictor.Calibrate(measured), w.calibrate))
      console.Note("calibrate: " + line);
  }
  if (w.in.empty()) {
    std::vector<std::string> notes;
    const auto tell = [&](const std::string& text, const Json& result) {
      console.Text(text);
      for (const std::string& note : notes) console.Note(note);
      return console.Json(result);
    };
    if (w.asked.as_engine) {
      const auto engines = TRY(predict::AnswerEngines(w.asked, predictor, model::DescribeModel, notes));
      std::ranges::move(report::EngineNotes(engines), std::back_inserter(notes));
      TRY_STATUS(tell(report::EnginesText(engines), engines.ToJson()));
      return kDone;
    }
    const auto answers = TRY(predict::AnswerRows(w.asked, predictor, model::DescribeModel, notes));
    if (!answers.taken_as_unknown.empty())
      notes.push_back(
          fmt::format("unknown (give them with --set): {}", fmt::join(answers.taken_as_unknown, ", ")));
    const predict::Spec& spec = predictor.spec();
    TRY_STATUS(tell(report::AnswersText(
                        answers, {.hardware = spec.hardware ? spec.hardware->key : "", .batch = spec.batch}),
                    answers.ToJson()));
    const bool any =
        std::ranges::any_of(answers.answers, [](const auto& one) { return one.value.has_value(); });
    return any ? kDone : kBadInput;
  }
  TRY_STATUS(ScoreFile(w, predictor, console));
  return kDone;
}

}  // namespace

int Predict(const Arguments& arguments) {
  Wanted wanted;
  if (const auto status = ParseFlags(arguments, wanted)) return *status;
  const Result<int> status = PredictVerb(wanted);
  return status ? *status : FailWith(status.error());
}

}  // namespace weir::cli
