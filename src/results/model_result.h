// The results of `weir model make --json` and `weir model show --json`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "results/tensor.h"

namespace weir::results {

struct ModelMakeResult {
  std::string folder;  // through EscapeBytes
  uint64_t model_bytes = 0;
  int classes = 0;
  int64_t pictures = 0;                     // the last layer was fitted to
  std::optional<double> expected_accuracy;  // 0 to 1
  double wall_s = 0;
  int64_t seed = 0;
  std::string command;

  Json ToJson() const;
  static Result<ModelMakeResult> FromJson(const Json& json);  // kCorrupt names the key
  bool operator==(const ModelMakeResult&) const = default;
};

// The facts of a model. Figures that the graph does not settle are absent; so are texts that are empty.
struct ModelFacts {
  std::string name, version, backend;
  std::vector<Tensor> inputs, outputs;
  std::vector<Tensor> left_out;  // outputs of the file that cannot be sent; empty: absent
  std::optional<int64_t> parameters, multiply_adds_per_item, activations_per_item, inner_modules, depth;
  std::optional<int64_t> nodes;
  std::optional<int64_t> opset;
  std::map<std::string, int64_t> other_opsets;  // by domain
  std::optional<int64_t> ir_version;
  std::string producer;
  std::optional<int64_t> file_bytes;
  int64_t external_bytes = 0;  // 0: absent
  bool batchable = true;
  std::string not_batchable;  // why
  std::optional<int64_t> fixed_batch, max_batch;
  bool has_recipe = false;
  int64_t labels = 0;  // 0: absent

  Json ToJson() const;
  static Result<ModelFacts> FromJson(const Json& json);  // kCorrupt names the key
  bool operator==(const ModelFacts&) const = default;
};

}  // namespace weir::results
