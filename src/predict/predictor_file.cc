#include "predict/predictor_file.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

namespace weir::predict {
namespace {

constexpr int64_t kFormat = 12;

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

bool Estimator::Join(const Data& data) {
  const Spec& spec = data.spec;
  if (!linear_ && !physical_) return false;
  if (linear_ && !linear_->Fits(spec)) return false;
  if (physical_ && physical_->weights().size() != spec.terms.size()) return false;
  if (!neighbours_) return true;
  if (!physical_) return false;
  likeness_.ChooseColumns(spec, physical_->weights());
  std::vector<int> all(static_cast<size_t>(data.points.size()));
  std::iota(all.begin(), all.end(), 0);
  return neighbours_->SetPoints(likeness_.PointsOf(data, all));
}

Status Predictor::Join() {
  TRY_STATUS(JoinTable(spec().hardware, "the hardware table", facts_.hardware));
  TRY_STATUS(JoinTable(spec().networks, "the network table", facts_.networks));
  if (!known_.Fits(spec())) return Corrupt("the measured ranges do not fit the spec");
  for (Model& model : models_) {
    if (!model.estimator.Join(*data_)) return Corrupt("an estimator does not fit the spec");
    if (!model.spread.Join(model.estimator, *data_)) return Corrupt("an interval does not fit the rows");
  }
  return models_.empty() ? Corrupt("there are no models") : Status();
}

std::string Predictor::Save() const {
  Json json{{"weir_predictor", kFormat}, {"name", spec().name}};
  json.update(FieldsToJson(*this));
  return DumpWithBlocks(json) + "\n";
}

Result<Predictor> Predictor::Load(std::string_view text) {
  const Json json = TRY(ParseWithBlocks(text));
  if (!json.is_object() || !json.contains("weir_predictor"))
    return Corrupt("this is no predictor; weir fit makes one");
  if (TRY(GetInteger(json, "weir_predictor")) != kFormat)
    return Corrupt(
        "this predictor is of another version; refit it: weir fit SPEC.yaml --data-dir DIR -o FILE");
  Predictor predictor;
  TRY_STATUS(ReadFields(json, predictor));
  TRY_STATUS(predictor.Join());
  return predictor;
}

}  // namespace weir::predict
