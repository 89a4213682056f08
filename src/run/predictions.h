// Takes the answers of a run: writes the predictions file, or keeps the first answers for the screen.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "run/answers.h"
#include "run/application.h"

namespace weir::run {

// One thread at a time. `labels` must outlive it.
class Predictions final : public AnswerSink {
 public:
  static constexpr int kMostShown = 5;  // answers kept for the screen

  // Without `writer` the first answers are kept for the screen.
  Predictions(std::unique_ptr<AnswerWriter> writer, const std::vector<std::string>& labels);

  void Answered(const dataset::Input& input, const std::vector<Answer>& answers) override;
  void Rejected(const dataset::Input& input, const image::Reject& reject) override;
  Status Finish();  // as AnswerWriter::Finish

  // Returns lines such as "cat.jpg  282 tiger cat  12.3".
  const std::vector<std::string>& shown() const { return shown_; }

 private:
  const std::unique_ptr<AnswerWriter> writer_;
  const std::vector<std::string>& labels_;
  std::vector<std::string> shown_;
};

}  // namespace weir::run
