#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <utility>

#include "predict/blocks.h"
#include "predict/predictor.h"

namespace weir::predict {
namespace {

constexpr int kFormat = 6;

template <typename T>
std::vector<T> Flat(const std::vector<std::vector<T>>& rows) {
  std::vector<T> all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  return all;
}

template <typename T>
Result<std::vector<std::vector<T>>> Split(const std::vector<T>& all, size_t width, size_t rows) {
  if (all.size() != width * rows) return Fail(ErrorCode::kCorrupt, "the rows do not fit the spec");
  std::vector<std::vector<T>> split;
  for (size_t i = 0; i < rows; ++i)
    split.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(i * width),
                       all.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
  return split;
}

Json ScoreJson(const Score& score) {
  return {{"mean_absolute_error", score.mean},
          {"median_absolute_error", score.median},
          {"p90_absolute_error", score.p90},
          {"rows", score.rows}};
}

Result<Score> ScoreFrom(const Json& json) {
  return Score{.mean = TRY(GetNumber(json, "mean_absolute_error")),
               .median = TRY(GetNumber(json, "median_absolute_error")),
               .p90 = TRY(GetNumber(json, "p90_absolute_error")),
               .rows = TRY(GetInteger(json, "rows"))};
}

Result<Question> QuestionFrom(const Json& json) {
  const std::string name = TRY(GetString(json, "question"));
  const auto question = QuestionNamed(name);
  if (!question) return Fail(ErrorCode::kCorrupt, fmt::format("there is no question \"{}\"", name));
  return *question;
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
  Json scores = Json::array(), rehearsed = Json::array(), answers = Json::array(), estimators = Json::array();
  for (const Rehearsed& r : rehearsed_) {
    Json item = ScoreJson(r.score);
    item["question"] = ToString(r.question);
    item["coverage"] = r.coverage;
    item["median_half_width"] = r.half_width;
    rehearsed.push_back(std::move(item));
  }
  for (const CandidateScore& s : scores_) {
    Json item = ScoreJson(s.score);
    item["question"] = ToString(s.question);
    item["candidate"] = s.recipe;
    item["weight"] = s.weight;
    scores.push_back(std::move(item));
  }
  for (const Answer& answer : answers_) {
    Json mixture = Json::array();
    for (const auto& [index, weight] : answer.mixture) mixture.push_back({index, weight});
    answers.push_back({{"question", ToString(answer.question)},
                       {"mixture", std::move(mixture)},
                       {"spread", answer.spread.ToJson()},
                       {"reach", answer.reach},
                       {"lean", answer.lean}});
  }
  for (const Estimator& estimator : estimators_) estimators.push_back(estimator.ToJson());
  json["rehearsed"] = std::move(rehearsed);
  json["candidates"] = std::move(scores);
  json["known"] = known_.ToJson();
  if (spec().hardware) json["hardware"] = facts_.hardware.ToJson();
  if (spec().networks && !spec().networks->file.empty()) json["networks"] = facts_.networks.ToJson();
  json["encoder"] = data_->encoder.ToJson();
  json["rows"] = RowsToJson(*data_);
  if (calibration_) json["calibration"] = predict::ToJson(*calibration_);
  json["estimators"] = std::move(estimators);
  json["answers"] = std::move(answers);
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
  for (const char* key : {"rehearsed", "candidates", "known", "encoder", "rows", "estimators", "answers"}) {
    if (!json.contains(key)) return corrupt(fmt::format("{} is missing", key));
  }
  Predictor predictor;
  auto data = std::make_shared<Data>();
  data->spec = TRY(ParseSpec(TRY(UnescapeBytes(TRY(GetString(json, "spec"))))));
  data->encoder = TRY(Encoder::FromJson(json["encoder"]));
  const auto rows =
      static_cast<size_t>(std::clamp<int64_t>(TRY(GetInteger(json["rows"], "count")), 0, 1 << 26));
  data->numbers = TRY(Split(TRY(DecodeBlock<float>(TRY(GetString(json["rows"], "numbers")))),
                            data->spec.numbers.size(), rows));
  data->codes = TRY(Split(TRY(DecodeBlock<int>(TRY(GetString(json["rows"], "codes")))),
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
  if (spec.networks && !spec.networks->file.empty()) {
    if (!json.contains("networks")) return corrupt("the network table is missing");
    predictor.facts_.networks = TRY(Table::FromJson(json["networks"], spec.networks->table_key));
  }
  predictor.seed_ = static_cast<uint64_t>(TRY(GetInteger(json, "seed")));
  predictor.estimator_ = TRY(GetString(json, "estimator"));
  predictor.known_ = TRY(Applicability::FromJson(json["known"], spec));
  if (json.contains("calibration")) predictor.calibration_ = TRY(CalibrationFrom(json["calibration"]));
  for (const Json& item : json["rehearsed"]) {
    predictor.rehearsed_.push_back({.question = TRY(QuestionFrom(item)),
                                    .score = TRY(ScoreFrom(item)),
                                    .coverage = TRY(GetNumber(item, "coverage")),
                                    .half_width = TRY(GetNumber(item, "median_half_width"))});
  }
  for (const Json& item : json["candidates"]) {
    predictor.scores_.push_back({TRY(QuestionFrom(item)), TRY(GetString(item, "candidate")),
                                 TRY(ScoreFrom(item)), TRY(GetNumber(item, "weight"))});
  }
  for (const Json& item : json["estimators"])
    predictor.estimators_.push_back(TRY(Estimator::FromJson(item, *data)));
  for (const Json& item : json["answers"]) {
    Answer answer{.question = TRY(QuestionFrom(item))};
    if (!item.contains("mixture") || !item.contains("spread")) return corrupt("an answer is not whole");
    double whole = 0;
    for (const Json& member : item["mixture"]) {
      if (!member.is_array() || member.size() != 2 || !member[0].is_number_integer() ||
          !member[1].is_number())
        return corrupt("a mixture is not whole");
      const auto index = member[0].get<int64_t>();
      if (index < 0 || index >= std::ssize(predictor.estimators_))
        return corrupt("a mixture names an estimator that is not there");
      answer.mixture.emplace_back(static_cast<int>(index), member[1].get<double>());
      whole += member[1].get<double>();
    }
    if (!(std::abs(whole - 1) < 1e-6)) return corrupt("the parts of a mixture are not one");
    answer.spread = TRY(Spread::FromJson(item["spread"], SpreadColumns(spec)));
    answer.reach = TRY(GetNumber(item, "reach"));
    answer.lean = TRY(GetNumber(item, "lean"));
    if (!(answer.lean >= 0 && answer.lean <= 1)) return corrupt("a lean is not from 0 to 1");
    predictor.answers_.push_back(std::move(answer));
  }
  if (predictor.answers_.empty()) return corrupt("there are no answers");
  predictor.data_ = std::move(data);
  return predictor;
}

}  // namespace weir::predict
