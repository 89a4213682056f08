#include "run/predictions.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "base/json.h"

namespace weir::run {

Predictions::Predictions(std::unique_ptr<AnswerWriter> writer, const std::vector<std::string>& labels)
    : writer_(std::move(writer)), labels_(labels) {}

void Predictions::Answered(const dataset::Input& input, const std::vector<Answer>& answers) {
  if (writer_) return writer_->Write(input.name, answers, labels_);
  if (std::ssize(shown_) >= kMostShown || answers.empty()) return;
  const auto index = static_cast<size_t>(answers[0].class_index);
  shown_.push_back(fmt::format("{}  {} {}  {:.4g}", EscapeBytes(input.name), index,
                               index < labels_.size() ? EscapeBytes(labels_[index]) : "", answers[0].score));
}

void Predictions::Rejected(const dataset::Input& input, const image::Reject& reject) {
  if (writer_) writer_->WriteReject(input.name, reject);
}

Status Predictions::Finish() { return writer_ ? writer_->Finish() : Status{}; }

}  // namespace weir::run
