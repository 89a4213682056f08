// Whether two trials gave the same answers. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace weir::trial {

// The entry of the predictions file for each picture, in its order: the best class, or that it was rejected.
struct Answers {
  std::vector<std::string> best;
};
// `text` is a whole protocol (run/answers.h). kCorrupt for what is none.
Result<Answers> ReadAnswers(std::string_view text);

// Pictures whose best answer is another one than the reference's. The trial may have gone over the same
// pictures several times. kCorrupt where it has not the same pictures.
Result<int64_t> CountDifferences(const Answers& reference, const Answers& trial);

}  // namespace weir::trial
