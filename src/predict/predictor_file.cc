#include "predict/predictor_file.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace weir::predict {
namespace {

constexpr int64_t kFormat = 11;

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
  const auto is_below = [](int index, size_t count) { return index >= 0 && std::cmp_less(index, count); };
  if (!linear_ && !physical_) return false;
  if (linear_ && !linear_->Fits(spec)) return false;
  if (physical_ && physical_->weights().size() != spec.terms.size()) return false;
  if (trees_) {
    const size_t columns = tree_numbers_.size() + tree_levels_.size() + 2 * spec.terms.size();
    if (!physical_ || !std::cmp_equal(trees_->columns(), columns) ||
        !std::ranges::all_of(tree_numbers_, [&](int j) { return is_below(j, spec.numbers.size()); }) ||
        !std::ranges::all_of(
            tree_levels_, [&](const auto& level) { return is_below(level.first, spec.categories.size()); }))
      return false;
  }
  return !neighbours_ || neighbours_->SetPoints(data.points);
}

Status Predictor::Join() {
  TRY_STATUS(JoinTable(spec().hardware, "the hardware table", facts_.hardware));
  TRY_STATUS(JoinTable(spec().networks, "the network table", facts_.networks));
  if (!known_.Fits(spec())) return Corrupt("the measured ranges do not fit the spec");
  for (Estimator& estimator : estimators_) {
    if (!estimator.Join(*data_)) return Corrupt("an estimator does not fit the spec");
  }
  for (const Model& model : models_) {
    double whole = 0;
    for (const auto& [index, weight] : model.mixture) {
      if (index < 0 || index >= std::ssize(estimators_))
        return Corrupt("a mixture names an estimator that is not there");
      whole += weight;
    }
    if (!(std::abs(whole - 1) < 1e-6)) return Corrupt("the parts of a mixture are not one");
    if (!model.spread.Takes(SpreadColumns(spec())))
      return Corrupt("the trees of an interval do not fit the spec");
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
    return Corrupt("this predictor is of another version; fit it again");
  Predictor predictor;
  TRY_STATUS(ReadFields(json, predictor));
  TRY_STATUS(predictor.Join());
  return predictor;
}

}  // namespace weir::predict
