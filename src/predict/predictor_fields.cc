#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "predict/archive.h"
#include "predict/predictor.h"

namespace weir::predict {
namespace {

constexpr int64_t kFormat = 8;

std::unexpected<Error> Corrupt(std::string what) { return Fail(ErrorCode::kCorrupt, std::move(what)); }

// Finds the key again, which the file does not have.
Status JoinTable(const std::optional<Join>& join, const char* what, Table& table) {
  if (!join || (join->file.empty() && table.rows() == 0)) return {};
  auto with_key = Table::WithKey(table.csv(), join->table_key);
  if (!with_key) return Corrupt(fmt::format("{}: {}", what, with_key.error().message));
  table = std::move(*with_key);
  return {};
}

}  // namespace

void Score::Fields(Archive& archive) {
  archive("log_mean", log_mean);
  archive("median", median);
  archive("p90", p90);
  archive("mape", mape);
  archive("rows", rows);
}

void CandidateScore::Fields(Archive& archive) {
  archive("split", split);
  archive("candidate", recipe);
  archive("score", score);
  archive("weight", weight);
}

void Predictor::Validated::Fields(Archive& archive) {
  archive("split", split);
  archive("score", score);
  archive("coverage", coverage);
  archive("median_half_width", half_width);
  archive("interval_score_of_constant", score_of_constant);
}

void Predictor::Model::Fields(Archive& archive) {
  archive("split", split);
  archive("mixture", mixture);
  archive("spread", spread);
  archive("reach", reach);
}

void Predictor::Fields(Archive& archive, Data& data) {
  archive("estimator", estimator_);
  archive("seed", seed_);
  archive("data", data);
  archive("hardware", facts_.hardware);
  archive("networks", facts_.networks);
  archive("validated", validated_);
  archive("candidates", scores_);
  archive("known", known_);
  archive("calibration", calibration_);
  archive("estimators", estimators_);
  archive("models", models_);
}

std::string Predictor::Save() const {
  Json json{{"weir_predictor", kFormat}, {"name", EscapeBytes(spec().name)}};
  Status status;
  Archive archive(json, Archive::Mode::kWrite, status);
  // Writing changes nothing.
  const_cast<Predictor*>(this)->Fields(archive, const_cast<Data&>(*data_));
  return DumpWithBlocks(std::move(json)) + "\n";
}

Status Predictor::Join(std::shared_ptr<Data> data) {
  const Spec& spec = data->spec;
  TRY_STATUS(JoinTable(spec.hardware, "the hardware table", facts_.hardware));
  TRY_STATUS(JoinTable(spec.networks, "the network table", facts_.networks));
  if (!known_.Fits(spec)) return Corrupt("the measured ranges do not fit the spec");
  for (Estimator& estimator : estimators_) {
    if (!estimator.Join(*data)) return Corrupt("an estimator does not fit the spec");
  }
  for (const Model& model : models_) {
    double whole = 0;
    for (const auto& [index, weight] : model.mixture) {
      if (index < 0 || index >= std::ssize(estimators_))
        return Corrupt("a mixture names an estimator that is not there");
      whole += weight;
    }
    if (!(std::abs(whole - 1) < 1e-6)) return Corrupt("the parts of a mixture are not one");
    if (!model.spread.Takes(SpreadColumns(spec)))
      return Corrupt("the trees of an interval do not fit the spec");
  }
  if (models_.empty()) return Corrupt("there are no models");
  data_ = std::move(data);
  return {};
}

Result<Predictor> Predictor::Load(std::string_view text) {
  Json json = TRY(ParseWithBlocks(text));
  if (!json.is_object() || !json.contains("weir_predictor"))
    return Corrupt("this is no predictor; weir fit makes one");
  if (TRY(GetInteger(json, "weir_predictor")) != kFormat)
    return Corrupt("this predictor is of another version; fit it again");
  Predictor predictor;
  auto data = std::make_shared<Data>();
  Status status;
  Archive archive(json, Archive::Mode::kRead, status);
  predictor.Fields(archive, *data);
  TRY_STATUS(std::move(status));
  TRY_STATUS(predictor.Join(std::move(data)));
  return predictor;
}

}  // namespace weir::predict
