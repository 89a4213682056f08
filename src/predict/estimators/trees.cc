#include "predict/estimators/trees.h"

#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "stats/median.h"

namespace weir::predict {
namespace {

struct MatrixCloser {
  void operator()(void* handle) const { XGDMatrixFree(handle); }
};
struct BoosterCloser {
  void operator()(void* handle) const { XGBoosterFree(handle); }
};
using Matrix = std::unique_ptr<void, MatrixCloser>;
using Booster = std::unique_ptr<void, BoosterCloser>;

Status Call(int status) {
  if (status == 0) return {};
  // The stack of the library stands behind the first line.
  const std::string_view said = XGBGetLastError();
  return Fail(ErrorCode::kInternal, fmt::format("XGBoost: {}", said.substr(0, said.find('\n'))));
}

Result<Booster> Boost(std::span<const float> x, int columns, std::span<const float> y,
                      const Trees::Options& options) {
  DMatrixHandle matrix_handle = nullptr;
  TRY_STATUS(Call(XGDMatrixCreateFromMat(x.data(), y.size(), static_cast<bst_ulong>(columns),
                                         std::numeric_limits<float>::quiet_NaN(), &matrix_handle)));
  const Matrix matrix(matrix_handle);
  TRY_STATUS(Call(XGDMatrixSetFloatInfo(matrix_handle, "label", y.data(), y.size())));
  BoosterHandle handle = nullptr;
  TRY_STATUS(Call(XGBoosterCreate(&matrix_handle, 1, &handle)));
  Booster booster(handle);
  const auto number = [](double value) { return fmt::format("{}", value); };
  const std::pair<const char*, std::string> parameters[] = {
      {"objective", options.loss == Trees::Loss::kSquared ? "reg:squarederror" : "reg:absoluteerror"},
      {"base_score", "0"},
      {"tree_method", "hist"},
      {"eta", number(options.rate)},
      {"max_depth", number(options.depth)},
      {"min_child_weight", number(options.child_weight)},
      {"subsample", number(options.row_share)},
      {"colsample_bytree", number(options.column_share)},
      {"lambda", number(options.penalty)},
      {"seed", number(static_cast<double>(options.seed % 1'000'000'007))},
      {"seed_per_iteration", "1"},  // whatever this thread fitted before
      {"nthread", "1"},             // sums in one order
      {"verbosity", "0"}};
  for (const auto& [name, value] : parameters)
    TRY_STATUS(Call(XGBoosterSetParam(handle, name, value.c_str())));
  for (int round = 0; round < options.rounds; ++round) {
    TRY_STATUS(Call(XGBoosterUpdateOneIter(handle, round, matrix_handle)));
  }
  return booster;
}

}  // namespace

Result<Trees> Trees::Fit(std::span<const float> x, int columns, std::span<const float> y,
                         const Options& options) {
  if (columns < 1 || columns > 60'000 || y.empty() || x.size() != y.size() * static_cast<size_t>(columns)) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("trees need rows of 1 to 60000 columns, not {} numbers for {} rows", x.size(), y.size()));
  }
  Trees trees;
  trees.columns_ = columns;
  std::vector<float> centred(y.begin(), y.end());
  trees.base_ = stats::Median(centred);
  std::ranges::transform(y, centred.begin(),
                         [&](float value) { return value - static_cast<float>(trees.base_); });

  const Booster booster = TRY(Boost(x, columns, centred, options));
  bst_ulong length = 0;
  const char* text = nullptr;
  TRY_STATUS(Call(XGBoosterSaveModelToBuffer(booster.get(), R"({"format":"json"})", &length, &text)));
  const Json model = TRY(ParseJson({text, length}));
  try {
    for (const Json& tree : model.at("learner").at("gradient_booster").at("model").at("trees")) {
      const auto root = static_cast<int32_t>(trees.nodes_.size());
      trees.roots_.push_back(root);
      const Json &left = tree.at("left_children"), &right = tree.at("right_children");
      const Json &column = tree.at("split_indices"), &threshold = tree.at("split_conditions");
      const Json& unknown = tree.at("default_left");
      for (size_t i = 0; i < left.size(); ++i) {
        const auto child = left.at(i).get<int32_t>();
        if (child >= 0 && right.at(i).get<int32_t>() != child + 1)
          return Fail(ErrorCode::kInternal, "XGBoost: a model whose children are apart");
        const auto goes_left =
            unknown.at(i).is_boolean() ? unknown.at(i).get<bool>() : unknown.at(i).get<int>() != 0;
        trees.nodes_.push_back({.left = child < 0 ? -1 : root + child,
                                .column = column.at(i).get<uint16_t>(),
                                .unknown_goes_left = goes_left,
                                .threshold = threshold.at(i).get<float>()});
      }
    }
  } catch (const JsonError& error) {
    return Fail(ErrorCode::kInternal, fmt::format("XGBoost: a model of an unknown form: {}", error.what()));
  }
  if (!trees.IsWhole()) return Fail(ErrorCode::kInternal, "XGBoost: a model that is not whole");
  return trees;
}

double Trees::Predict(std::span<const float> x) const {
  double sum = 0;
  for (const int32_t root : roots_) {
    const Node* node = &nodes_[static_cast<size_t>(root)];
    while (node->left >= 0) {
      const float value = x[node->column];
      const bool left = std::isnan(value) ? node->unknown_goes_left != 0 : value < node->threshold;
      node = &nodes_[static_cast<size_t>(node->left + (left ? 0 : 1))];
    }
    sum += node->threshold;
  }
  return base_ + sum;
}

// Children lie behind their parents, so every walk ends.
bool Trees::IsWhole() const {
  const auto count = std::ssize(nodes_);
  for (const int32_t root : roots_) {
    if (root < 0 || root >= count) return false;
  }
  for (int64_t i = 0; i < count; ++i) {
    const Node& node = nodes_[static_cast<size_t>(i)];
    if (node.left < 0) continue;
    if (node.left <= i || node.left >= count - 1 || node.column >= columns_) return false;
  }
  return true;
}

}  // namespace weir::predict
