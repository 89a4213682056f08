#include "results/predict_result.h"

#include "base/fields.h"

namespace weir::results {

template <typename F>
void Describe(F& fields, Described<F, PredictResult>& result) {
  fields("name", result.name);
  fields("target", result.target);
  fields("rows", result.rows);
  fields("inside", result.inside);
  fields("outside", result.outside);
  fields("refused", result.refused);
  fields("refusals", result.refusals);
}

template <typename F>
void Describe(F& fields, Described<F, PredictAnswers::Job>& job) {
  fields("hours", job.hours);
  fields("low_hours", job.low_hours);
  fields("high_hours", job.high_hours);
  fields("cost", job.cost);
  fields("low_cost", job.low_cost);
  fields("high_cost", job.high_cost);
}

template <typename F>
void Describe(F& fields, Described<F, PredictEngines::Line>& line) {
  fields("engine", line.engine);
  fields("base_ms", line.base_ms);
  fields("per_item_ms", line.per_item_ms);
}

template <typename F>
void Describe(F& fields, Described<F, PredictEngines::Engine>& engine) {
  fields("hardware", engine.hardware);
  fields("engine", engine.engine);
  fields("base_ms", engine.base_ms);
  fields("per_item_ms", engine.per_item_ms);
  fields("greatest_error", engine.greatest_error);
  fields("fast", engine.fast);
  fields("slow", engine.slow);
  fields("batches", engine.batches);
  fields("batches_outside", engine.batches_outside);
  fields.Unless("outside", engine.outside);
}

template <typename F>
void Describe(F& fields, Described<F, PredictModels>& models) {
  fields("name", models.name);
  fields("models", models.models);
}

Json PredictResult::ToJson() const { return FieldsToJson(*this); }

Json PredictAnswers::ToJson() const {
  Json list = Json::array();
  for (const Answer& answer : answers) {
    Json json;
    FieldWriter fields(json);
    fields("row", answer.row);
    fields("regime", answer.regime);
    fields(target.c_str(), answer.value);
    fields("low", answer.low);
    fields("high", answer.high);
    fields.Unless("outside", answer.outside);
    fields.Unless("shares", answer.shares);
    fields("job", answer.job);
    list.push_back(std::move(json));
  }
  Json json;
  FieldWriter fields(json);
  fields("name", name);
  fields("answers", list);
  fields.Unless("taken_as_unknown", taken_as_unknown);
  return json;
}

Json PredictEngines::ToJson() const {
  Json json;
  FieldWriter fields(json);
  fields("name", name);
  fields("engine", engines.front().engine);
  fields("engines", engines);
  return json;
}

Json PredictModels::ToJson() const { return FieldsToJson(*this); }

}  // namespace weir::results
