// A work that several machines share: which part of it is this one's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "dataset/set.h"

namespace weir::prepare {

// The value of an environment variable, where it has one.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// "I/N": part I of N, from 1 on. "auto" and "auto/N": as the batch system says that started this process: the
// array variables of Slurm (SLURM_ARRAY_TASK_ID, and _MIN, _STEP and _COUNT where they are), or of a
// Kubernetes indexed job (JOB_COMPLETION_INDEX, which has no count of its own: "auto/N"). kInvalidArgument
// says what is missing or wrong.
Result<dataset::Part> ParsePart(std::string_view text, const Environment& environment);

// Inputs [first, end) of `inputs`: consecutive, and as many as any other part's but for one.
struct Range {
  int64_t first = 0, end = 0;
};
Range RangeOf(const dataset::Part& part, int64_t inputs);

// part-2-of-3: where a part's set lies in the folder that was asked for.
std::string PartFolder(const dataset::Part& part);

}  // namespace weir::prepare
