// What may be asked of a predictor, and how each is rehearsed on rows whose answer is known.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/seed.h"
#include "predict/dataset.h"

namespace weir::predict {

// Inside the data, or outside in one respect: more devices than were seen, hardware that was not, a network
// that was not.
enum class Question { kInside, kCount, kHardware, kNetwork };
inline constexpr Question kQuestions[] = {Question::kInside, Question::kCount, Question::kHardware,
                                          Question::kNetwork};
std::string_view ToString(Question question);  // "inside", "count", "hardware", "network"
std::optional<Question> QuestionNamed(std::string_view name);

// Indices of rows, in order.
struct Fold {
  std::vector<int> train, test;
};

// Inside: four parts by chance. Hardware and network: whole keys kept apart, in up to five parts of like size
// (each key a part where there are fewer); a part that leaves less than a third to train on is dropped.
// Count: below a count against those from it on whose hardware and network are known below, for the last
// count that leaves both sides enough and the last of at most half of it; below it are two counts at least,
// and one only where there are no more. Empty where the rows cannot rehearse the question: one key only, one
// count only, fewer than 20 rows.
std::vector<Fold> MakeFolds(const std::vector<Row>& rows, Question question, Seed seed);

// The same with no more than about `most` rows on the test sides together, chosen by chance. Parts by chance
// are all alike, so of theirs no more folds are kept than that takes, but two.
std::vector<Fold> Thin(std::vector<Fold> folds, Question question, size_t most, Seed seed);

}  // namespace weir::predict
