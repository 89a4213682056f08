// An index of identities behind a model that makes embeddings.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "infer/tensor.h"
#include "model/model.h"

namespace weir::identity {
class Index;
}

namespace weir::serve {

// The index that the parameter "identities" of a model's configuration names. It follows what another process
// enrols and deletes. Thread-safe.
class IdentityBinding {
 public:
  // Returns null if the configuration names none. The parameters:
  //   identities: the folder of the index, absolute or relative to the model's folder.
  //   identities_false_alarms: the share of strangers for whom any name may come up (default 0.01).
  //   identities_threshold: the least cosine of a match, instead.
  //   identities_best: names for each row (default 5).
  // kInvalidArgument for an index that names no model or another one. The model needs one output of
  // embeddings of the index's dimension, and a batch dimension. Other errors are those of Index::Open.
  static Result<std::unique_ptr<IdentityBinding>> Open(const model::Model& model);
  ~IdentityBinding();

  const std::string& output() const { return output_; }  // of the model, with the embeddings
  infer::TensorInfo input() const;                       // "embedding" FP32 [-1, dimension]
  std::vector<infer::TensorInfo> outputs() const;        // "name" BYTES, "score" FP32, both [-1, best]

  // Looks up each row of an FP32 tensor. Rows with fewer matches than `best` end with empty names and scores
  // of -1. kInvalidArgument for rows of another dimension or without a direction.
  Result<std::vector<infer::Tensor>> LookUp(const infer::Tensor& embeddings) const;

 private:
  IdentityBinding();
  std::unique_ptr<identity::Index> index_;
  std::string output_;
  double false_alarms_ = 0.01, threshold_ = -2;
  int64_t best_ = 5;
};

}  // namespace weir::serve
