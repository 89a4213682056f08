#include "run/reporter.h"

#include <algorithm>

namespace weir::run {

std::optional<double> Report::Throughput() const {
  if (images == 0 || wall_s <= 0) return std::nullopt;
  return static_cast<double>(images) / wall_s;
}

int64_t Reporter::TellDue() {
  const int64_t before = next_;
  for (auto it = waiting_.begin(); it != waiting_.end() && it->first == next_; it = waiting_.begin()) {
    Outcome outcome = std::move(it->second);
    waiting_.erase(it);
    Tell(next_, std::move(outcome));
    next_ += 1;
  }
  return next_ - before;
}

void Reporter::TellRest() {
  while (!waiting_.empty()) {
    auto [index, outcome] = *waiting_.begin();
    waiting_.erase(waiting_.begin());
    Tell(index, std::move(outcome));
  }
}

void Reporter::Tell(int64_t index, Outcome outcome) {
  const dataset::Input& input = listing_.inputs[static_cast<size_t>(index % std::ssize(listing_.inputs))];
  Stamps& stamps = outcome.stamps;
  stamps.print_begin = clock_.Now();
  if (const auto* answers = std::get_if<std::vector<Answer>>(&outcome.fate)) {
    sink_.Answered(input, *answers);
    stamps.print_end = clock_.Now();
    report_.stages.Add(stamps);
    Count(input, *answers);
  } else {
    const auto& reject = std::get<image::Reject>(outcome.fate);
    sink_.Rejected(input, reject);
    Count(input, reject);
  }
}

void Reporter::Count(const dataset::Input& input, const std::vector<Answer>& answers) {
  report_.images += 1;
  if (!input.label || answers.empty()) return;
  report_.labelled += 1;
  for (size_t rank = 0; rank < answers.size() && rank < 5; ++rank) {
    if (answers[rank].class_index != *input.label) continue;
    report_.top5_hits += 1;
    if (rank == 0) report_.top1_hits += 1;
  }
}

void Reporter::Count(const dataset::Input& input, const image::Reject& reject) {
  report_.rejected.total += 1;
  report_.rejected.by_reason[std::string(ToString(reject.reason))] += 1;
  if (reject.reason == image::RejectReason::kFailed) report_.failed += 1;
  auto& first = report_.rejected.first;
  const bool known =
      std::ranges::find(first, input.name, &std::pair<std::string, image::Reject>::first) != first.end();
  if (first.size() < 20 && !known) first.emplace_back(input.name, reject);
}

}  // namespace weir::run
