// The parts of a predictor to JSON and back: each part's members, once for both directions (base/fields.h).
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/fields.h"
#include "predict/predictor.h"

namespace weir::predict {

// A friend of the classes it describes. What a reader takes is whole: no part of it makes an answer fail.
struct PredictorFile {
  // Maps of names to lists of one length, whose numbers need not be finite.
  template <typename F, typename Map>
  static void Lists(F& fields, const std::string& key, Map& map) {
    std::vector<std::string> names;
    typename Map::mapped_type all;
    for (const auto& [name, list] : map) {
      names.push_back(name);
      all.insert(all.end(), list.begin(), list.end());
    }
    fields((key + "_names").c_str(), names);
    fields.Block(key.c_str(), all);
    if constexpr (F::kReads) {
      fields.Require(names.empty() ? all.empty() : all.size() % names.size() == 0, "a list is cut off");
      const size_t width = names.empty() ? 0 : all.size() / names.size();
      for (size_t i = 0; i < names.size(); ++i)
        map[names[i]] = {all.begin() + static_cast<std::ptrdiff_t>(i * width),
                         all.begin() + static_cast<std::ptrdiff_t>((i + 1) * width)};
    }
  }

  static bool IsSplit(Split split) { return split >= Split::kInside && split <= Split::kNetwork; }

  template <typename F>
  static void Fields(F& fields, Described<F, Table>& table) {
    fields("columns", table.csv_.columns);
    fields("cells", table.csv_.cells);
    if constexpr (F::kReads) {
      Csv& csv = table.csv_;
      const size_t width = std::max<size_t>(csv.columns.size(), 1), rows = csv.cells.size() / width;
      fields.Require(csv.columns.empty() ? csv.cells.empty() : rows * width == csv.cells.size(),
                     "a table that is not whole");
      if (!fields.status() || csv.columns.empty()) return;
      for (size_t row = 0; row < rows; ++row) csv.lines.push_back(static_cast<int64_t>(row + 2));
      table = Table(std::move(csv));
    }
  }

  template <typename F>
  static void Fields(F& fields, Described<F, Encoder::Scale>& scale) {
    fields("log", scale.log);
    fields("mean", scale.mean);
    fields("deviation", scale.deviation);
  }
  template <typename F>
  static void Fields(F& fields, Described<F, Encoder>& encoder) {
    fields("scales", encoder.scales_);
    fields("levels", encoder.levels_);
    fields("counts", encoder.counts_);
    bool is_whole = encoder.levels_.size() == encoder.counts_.size();
    for (size_t j = 0; is_whole && j < encoder.levels_.size(); ++j) {
      int next = 0;  // codes are in the order of the names
      for (const auto& [name, code] : encoder.levels_[j]) is_whole = is_whole && code == next++;
      is_whole = is_whole && encoder.levels_[j].size() == encoder.counts_[j].size();
    }
    fields.Require(is_whole, "an encoder that is not whole");
  }

  template <typename F>
  static void Fields(F& fields, Described<F, LinearFit::Factor>& factor) {
    fields("form", factor.form);
    fields("column", factor.column);
    fields("level", factor.level);
  }
  template <typename F>
  static void Fields(F& fields, Described<F, LinearFit::Feature>& feature) {
    fields("factors", feature.factors);
    fields("coefficient", feature.coefficient);
  }
  template <typename F>
  static void Fields(F& fields, Described<F, LinearFit::Function>& function) {
    fields("intercept", function.intercept);
    fields("features", function.features);
    fields("least", function.least);
    fields("greatest", function.greatest);
    fields.Require(function.least <= function.greatest, "times of the linear model that are not in order");
  }
  template <typename F>
  static void Fields(F& fields, Described<F, LinearFit>& linear) {
    fields("all", linear.all_);
    fields("groups", linear.groups_);
  }

  template <typename F>
  static void Fields(F& fields, Described<F, Physical>& physical) {
    fields("common", physical.common_);
    fields("groups", physical.groups_);
    fields.Require(std::ranges::all_of(
                       physical.groups_,
                       [&](const auto& group) { return group.second.size() == physical.common_.size(); }),
                   "weights of the physical model that are not whole");
  }

  template <typename F>
  static void Fields(F& fields, Described<F, Kernel>& kernel) {
    fields("number_weights", kernel.number_weights);
    fields("category_weights", kernel.category_weights);
    fields("all", kernel.all);
    fields("network", kernel.network);
    fields("hardware", kernel.hardware);
    fields("run", kernel.run);
    fields("noise", kernel.noise);
  }
  // All but the points, which are rows of the fit.
  template <typename F>
  static void Fields(F& fields, Described<F, Neighbours>& neighbours) {
    std::vector<float> values(neighbours.values_.begin(), neighbours.values_.end());
    fields.Block("values", values);
    if constexpr (F::kReads) neighbours.values_.assign(values.begin(), values.end());
    fields("kernel", neighbours.kernel_);
    fields("count", neighbours.count_);
    fields.Require(neighbours.count_ >= 1 && neighbours.count_ <= 2000, "a count of neighbours beyond 2000");
  }

  // Its columns follow from the spec and the physical model.
  template <typename F>
  static void Fields(F& fields, Described<F, Likeness>& likeness) {
    fields("mean", likeness.mean_);
    fields("deviation", likeness.deviation_);
    fields.Require(likeness.deviation_ > 0, "times that are all alike");
  }

  template <typename F>
  static void Fields(F& fields, Described<F, Estimator>& estimator) {
    fields("name", estimator.recipe_.name);
    fields("linear", estimator.linear_);
    fields("physical", estimator.physical_);
    fields("likeness", estimator.likeness_);
    fields("neighbours", estimator.neighbours_);
  }

  // All but the rows, whose coordinates are enough for predictions.
  template <typename F>
  static void Fields(F& fields, Described<F, Data>& data) {
    std::vector<std::string> dropped = data.spec.dropped_terms;
    fields("spec", data.spec.source);
    fields("dropped_terms", dropped);
    fields("encoder", data.encoder);
    if constexpr (F::kReads) {
      auto parsed = ParseSpec(data.spec.source);
      fields.Require(parsed.has_value(), "a SPEC that cannot be read");
      if (!fields.status()) return;
      data.spec = std::move(*parsed);
      for (const std::string& name : dropped) data.spec.DropTerm(name);
      data.points = Points::Of(data.spec);
    }
    fields.Block("numbers", data.points.numbers);
    fields.Block("codes", data.points.codes);
    fields.Block("terms", data.terms);
    fields.Require(
        data.points.IsWhole() && std::ssize(data.terms) == data.points.size() * std::ssize(data.spec.terms),
        "rows that are not whole");
    fields.Require(data.encoder.numbers() == data.spec.numbers.size() &&
                       data.encoder.categories() == data.spec.categories.size(),
                   "an encoder of another SPEC");
  }

  template <typename F>
  static void Fields(F& fields, Described<F, Range>& range) {
    fields("least", range.least);
    fields("greatest", range.greatest);
  }
  template <typename F>
  static void Fields(F& fields, Described<F, Applicability>& known) {
    Lists(fields, "hardware", known.hardware_);
    Lists(fields, "networks", known.networks_);
    Lists(fields, "ranges_of_network", known.of_network_);
    fields.Block("ranges", known.ranges_);
    fields("vendors", known.vendors_);
    fields("terms_use_network", known.terms_use_network_);
    fields("devices", known.devices_);
    fields("filled", known.filled_);
    fields("kinks", known.kinks_);
    fields("new_words", known.new_words_);
    fields.Require(std::ranges::is_sorted(known.vendors_), "vendors that are not in order");
  }

  template <typename F>
  static void Fields(F& fields, Described<F, Calibration>& calibration) {
    fields("common", calibration.common);
    fields("own", calibration.own);
  }

  template <typename F>
  static void Fields(F& fields, Described<F, Spread>& spread) {
    fields("scale", spread.scale_);
    fields("usual", spread.usual_);
    fields("rows", spread.rows_);
    fields("difficulty", spread.difficulty_);
  }

  template <typename F>
  static void Fields(F& fields, Described<F, Predictor::Model>& model) {
    fields("split", model.split);
    fields("model", model.estimator);
    fields("spread", model.spread);
    fields("reach", model.reach);
    fields.Require(IsSplit(model.split), "a split that is none");
  }
  template <typename F>
  static void Fields(F& fields, Described<F, Predictor>& predictor) {
    fields("estimator", predictor.estimator_);
    fields("seed", predictor.seed_);
    if constexpr (F::kReads) {
      auto data = std::make_shared<Data>();
      fields("data", *data);
      predictor.data_ = std::move(data);
    } else {
      fields("data", *predictor.data_);
    }
    fields("hardware", predictor.facts_.hardware);
    fields("networks", predictor.facts_.networks);
    fields("worst_physical", predictor.worst_physical_);
    fields("known", predictor.known_);
    fields("calibration", predictor.calibration_);
    fields("models", predictor.models_);
  }
};

template <typename F, typename T>
  requires requires(F& fields, T& part) { PredictorFile::Fields(fields, part); }
void Describe(F& fields, T& part) {
  PredictorFile::Fields(fields, part);
}

}  // namespace weir::predict
