// A model's scores to ranked classes, and the predictions file.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "dataset/recipe.h"
#include "image/reject.h"
#include "infer/tensor.h"

namespace weir::run {

struct Answer {
  int class_index = 0;  // output index - first_class
  double score = 0;     // a probability where the recipe says softmax, else the model's own output
};

// The `top` best classes of item `item` of `scores` (FP32 or FP64, the first dimension is the batch of
// `items`), best first; equal scores: the lower index first. Outputs before `first_class` are never an
// answer. Scores that are not numbers are kCorrupt. kInvalidArgument when the tensor is not a batch of
// scores.
Result<std::vector<Answer>> RankAnswers(const infer::Tensor& scores, int64_t items, int64_t item,
                                        const dataset::Recipe& recipe, int top);

// Returns one field of a CSV line (RFC 4180): quoted where it must be, and a formula defused (Defused of
// base/csv.h). All other bytes are passed on as they are.
std::string CsvField(std::string_view text);

// Writes the predictions file: file,status,rank,class,label,score,reason. One thread at a time.
// A regular file appears under its name, whole, when Finish is called; a kill before leaves only a ".tmp"
// beside it (TemporaryBeside of base/file.h).
class AnswerWriter {
 public:
  static Result<std::unique_ptr<AnswerWriter>> Create(const std::string& path);
  ~AnswerWriter();

  // One row per rank.
  void Write(std::string_view file, const std::vector<Answer>& answers,
             const std::vector<std::string>& labels);
  void WriteReject(std::string_view file, const image::Reject& reject);
  Status Finish();  // kIo when anything could not be written

 private:
  AnswerWriter(std::string path, std::string beside, std::FILE* file);
  void Put();  // line_

  const std::string path_;
  const std::string
      beside_;  // where it is written until it is whole; empty: `path_` itself (a device or pipe)
  std::FILE* file_;
  int error_ = 0;  // errno of the first write that failed
  std::string line_;
};

}  // namespace weir::run
