#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <utility>

#include "predict/blocks.h"
#include "predict/predictor.h"

namespace weir::predict {
namespace {

constexpr int kFormat = 7;

template <typename T>
std::vector<T> Flat(const std::vector<std::vector<T>>& rows) {
  std::vector<T> all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  return all;
}

template <typename T>
Result<std::vector<std::vector<T>>> Chunk(const std::vector<T>& all, size_t width, size_t rows) {
  if (all.size() != width * rows) return Fail(ErrorCode::kCorrupt, "the rows do not fit the spec");
  std::vector<std::vector<T>> chunks;
  for (size_t i = 0; i < rows; ++i)
    chunks.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(i * width),
                        all.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
  return chunks;
}

Json ScoreJson(const Score& score) {
  return {{"log_mean", score.log_mean},
          {"median", score.median},
          {"p90", score.p90},
          {"mape", score.mape},
          {"rows", score.rows}};
}

Result<Score> ScoreFrom(const Json& json) {
  return Score{.log_mean = TRY(GetNumber(json, "log_mean")),
               .median = TRY(GetNumber(json, "median")),
               .p90 = TRY(GetNumber(json, "p90")),
               .mape = TRY(GetNumber(json, "mape")),
               .rows = TRY(GetInteger(json, "rows"))};
}

Result<Split> SplitFrom(const Json& json) {
  const std::string name = TRY(GetString(json, "split"));
  const auto split = SplitNamed(name);
  if (!split) return Fail(ErrorCode::kCorrupt, fmt::format("there is no split \"{}\"", name));
  return *split;
}

Json RowsToJson(const Data& data) {
  return {{"count", data.numbers.size()},
          {"numbers", EncodeBlock(Flat(data.numbers))},
          {"codes", EncodeBlock(Flat(data.codes))}};
}

}  // namespace

Json Predictor::ToJson() const {
  Json json{{"weir_predictor", kFormat}, {"name", spec().name}, {"estimator", estimator_}, {"seed", seed_}};
  json["spec"] = EscapeBytes(spec().source);
  json["dropped_terms"] = spec().dropped_terms;
  Json scores = Json::array(), validated = Json::array(), models = Json::array(), estimators = Json::array();
  for (const Validated& r : validated_) {
    Json item = ScoreJson(r.score);
    item["split"] = ToString(r.split);
    item["coverage"] = r.coverage;
    item["median_half_width"] = r.half_width;
    item["interval_score_of_constant"] = r.score_of_constant;
    validated.push_back(std::move(item));
  }
  for (const CandidateScore& s : scores_) {
    Json item = ScoreJson(s.score);
    item["split"] = ToString(s.split);
    item["candidate"] = s.recipe;
    item["weight"] = s.weight;
    scores.push_back(std::move(item));
  }
  for (const Model& model : models_) {
    Json mixture = Json::array();
    for (const auto& [index, weight] : model.mixture) mixture.push_back({index, weight});
    models.push_back({{"split", ToString(model.split)},
                      {"mixture", std::move(mixture)},
                      {"spread", model.spread.ToJson()},
                      {"reach", model.reach}});
  }
  for (const Estimator& estimator : estimators_) estimators.push_back(estimator.ToJson());
  json["validated"] = std::move(validated);
  json["candidates"] = std::move(scores);
  json["known"] = known_.ToJson();
  if (spec().hardware) json["hardware"] = facts_.hardware.ToJson();
  if (facts_.networks.rows() > 0) json["networks"] = facts_.networks.ToJson();
  json["encoder"] = data_->encoder.ToJson();
  json["rows"] = RowsToJson(*data_);
  if (calibration_) json["calibration"] = predict::ToJson(*calibration_);
  json["estimators"] = std::move(estimators);
  json["models"] = std::move(models);
  return json;
}

std::string Predictor::Save() const { return DumpWithBlocks(ToJson()) + "\n"; }

Result<Predictor> Predictor::Load(std::string_view text) {
  const auto corrupt = [](std::string what) { return Fail(ErrorCode::kCorrupt, std::move(what)); };
  const Json json = TRY(ParseWithBlocks(text));
  if (!json.is_object() || !json.contains("weir_predictor"))
    return corrupt("this is no predictor; weir fit makes one");
  if (TRY(GetInteger(json, "weir_predictor")) != kFormat) {
    return corrupt("this predictor is of another version; fit it again");
  }
  for (const char* key : {"validated", "candidates", "known", "encoder", "rows", "estimators", "models"}) {
    if (!json.contains(key)) return corrupt(fmt::format("{} is missing", key));
  }
  Predictor predictor;
  auto data = std::make_shared<Data>();
  data->spec = TRY(ParseSpec(TRY(UnescapeBytes(TRY(GetString(json, "spec"))))));
  if (!json.contains("dropped_terms") || !json["dropped_terms"].is_array())
    return corrupt("dropped_terms is missing");
  for (const Json& name : json["dropped_terms"]) {
    if (!name.is_string()) return corrupt("dropped_terms holds other values");
    data->spec.DropTerm(name.get<std::string>());
  }
  data->encoder = TRY(Encoder::FromJson(json["encoder"]));
  const auto rows =
      static_cast<size_t>(std::clamp<int64_t>(TRY(GetInteger(json["rows"], "count")), 0, 1 << 26));
  data->numbers = TRY(Chunk(TRY(DecodeBlock<float>(TRY(GetString(json["rows"], "numbers")))),
                            data->spec.numbers.size(), rows));
  data->codes = TRY(Chunk(TRY(DecodeBlock<int>(TRY(GetString(json["rows"], "codes")))),
                          data->spec.categories.size(), rows));
  if (data->encoder.numbers() != data->spec.numbers.size() ||
      data->encoder.categories() != data->spec.categories.size()) {
    return corrupt("the encoder does not fit the spec");
  }
  const Spec& spec = data->spec;
  if (spec.hardware && !spec.hardware->file.empty()) {
    if (!json.contains("hardware")) return corrupt("the hardware table is missing");
    predictor.facts_.hardware = TRY(Table::FromJson(json["hardware"], spec.hardware->table_key));
  }
  if (spec.networks && json.contains("networks")) {
    predictor.facts_.networks = TRY(Table::FromJson(json["networks"], spec.networks->table_key));
  } else if (spec.networks && !spec.networks->file.empty()) {
    return corrupt("the network table is missing");
  }
  predictor.seed_ = static_cast<uint64_t>(TRY(GetInteger(json, "seed")));
  predictor.estimator_ = TRY(GetString(json, "estimator"));
  predictor.known_ = TRY(Applicability::FromJson(json["known"], spec));
  if (json.contains("calibration")) predictor.calibration_ = TRY(CalibrationFrom(json["calibration"]));
  for (const Json& item : json["validated"]) {
    predictor.validated_.push_back({.split = TRY(SplitFrom(item)),
                                    .score = TRY(ScoreFrom(item)),
                                    .coverage = TRY(GetNumber(item, "coverage")),
                                    .half_width = TRY(GetNumber(item, "median_half_width")),
                                    .score_of_constant = TRY(GetNumber(item, "interval_score_of_constant")),
                                    .ablations = {}});
  }
  for (const Json& item : json["candidates"]) {
    predictor.scores_.push_back({TRY(SplitFrom(item)), TRY(GetString(item, "candidate")),
                                 TRY(ScoreFrom(item)), TRY(GetNumber(item, "weight"))});
  }
  for (const Json& item : json["estimators"])
    predictor.estimators_.push_back(TRY(Estimator::FromJson(item, *data)));
  for (const Json& item : json["models"]) {
    Model model{.split = TRY(SplitFrom(item))};
    if (!item.contains("mixture") || !item.contains("spread")) return corrupt("a model is not whole");
    double whole = 0;
    for (const Json& member : item["mixture"]) {
      if (!member.is_array() || member.size() != 2 || !member[0].is_number_integer() ||
          !member[1].is_number())
        return corrupt("a mixture is not whole");
      const auto index = member[0].get<int64_t>();
      if (index < 0 || index >= std::ssize(predictor.estimators_))
        return corrupt("a mixture names an estimator that is not there");
      model.mixture.emplace_back(static_cast<int>(index), member[1].get<double>());
      whole += member[1].get<double>();
    }
    if (!(std::abs(whole - 1) < 1e-6)) return corrupt("the parts of a mixture are not one");
    model.spread = TRY(Spread::FromJson(item["spread"], SpreadColumns(spec)));
    model.reach = TRY(GetNumber(item, "reach"));
    predictor.models_.push_back(std::move(model));
  }
  if (predictor.models_.empty()) return corrupt("there are no models");
  predictor.data_ = std::move(data);
  return predictor;
}

}  // namespace weir::predict
