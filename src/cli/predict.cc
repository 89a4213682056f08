#include <fmt/format.h>

#include "base/file.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "predict/job.h"

namespace weir::cli {
namespace {

constexpr uint64_t kMaxPredictorBytes = uint64_t{1} << 30;

struct Wanted {
  std::string predictor, in, out, json;
};

std::optional<int> ParseFlags(const Arguments& arguments, Wanted& w) {
  Flags flags("predict",
              "Times of rows that nobody measured, with intervals, and whether they lie inside the data.",
              "weir predict train.json --in rows.csv --out scored.csv");
  flags.Required("PREDICTOR", w.predictor, "what weir fit made");
  flags.Required("--in", w.in, "rows (CSV); columns that the predictor does not know are ignored");
  flags.Required("--out", w.out, "row_id,prediction,low,high,regime,outside (CSV)");
  flags.Text("--json", w.json, "write counts as JSON to this file; - for standard output");
  return flags.Parse(arguments);
}

Result<int> PredictVerb(const Wanted& w) {
  Console console(w.json);
  TRY_STATUS(console.CheckJson());
  const Bytes saved = TRY(ReadFile(w.predictor, kMaxPredictorBytes));
  const predict::Predictor predictor = TRY_CONTEXT(predict::Predictor::Load(saved.text()), w.predictor);
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

}  // namespace

int Predict(const Arguments& arguments) {
  Wanted wanted;
  if (const auto status = ParseFlags(arguments, wanted)) return *status;
  const Result<int> status = PredictVerb(wanted);
  return status ? *status : FailWith(status.error());
}

}  // namespace weir::cli
