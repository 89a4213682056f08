#include "load/session/level_result.h"

namespace weir::load {

double LevelResult::throughput() const {
  double answers = 0;
  for (const RunOutcome& played : repeats) answers += played.throughput() * played.measured_s;
  return measured_s > 0 ? answers / measured_s : 0;
}

double LevelResult::elapsed_s() const {
  double elapsed = 0;
  for (const RunOutcome& played : repeats) elapsed += played.warm_up_s + played.measured_s;
  return elapsed;
}

}  // namespace weir::load
