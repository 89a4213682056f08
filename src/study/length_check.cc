#include "study/length_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/count.h"

namespace weir::study {
namespace {

bool IsP99(const std::string& metric) { return metric.ends_with(".p99"); }

}  // namespace

bool WantsP99(const StudyFile& study) {
  return study.targets.p99_ms || IsP99(study.objective.metric) ||
         std::ranges::any_of(study.figures, [](const Figure& figure) { return IsP99(figure.metric); });
}

std::optional<int64_t> ResponsesPerTrial(const StudyFile& study) {
  if (!WantsP99(study)) return study.trial.responses;
  return std::max(kRequestsForP99, study.trial.responses.value_or(0));
}

int64_t RequestsPerTrial(const StudyFile& study, int64_t images, int batch) {
  return std::max((images + batch - 1) / batch, ResponsesPerTrial(study).value_or(0));
}

std::vector<std::string> LengthWarnings(const StudyFile& study, const Design& design) {
  std::vector<std::string> warnings;
  if (study.trial.seconds && *study.trial.seconds < kShortestTrial)
    warnings.push_back(
        fmt::format("trials of {:g} s are too short to see what else the machine does: give "
                    "trial: {{seconds: {:g}}} or more",
                    *study.trial.seconds, kShortestTrial));
  if (study.targets.p99_ms)
    warnings.push_back(fmt::format(
        "the study has a p99 target: each trial answers at least {} requests of the load generator for it",
        Count(kRequestsForP99)));
  if (design.blocks == 1)
    warnings.push_back("one repeat has no spread, so no difference can be shown: give repeats: 3 or more");
  return warnings;
}

std::optional<std::string> PilotWarning(const StudyFile& study, const Configuration& configuration,
                                        const Json& metrics) {
  const auto wall = metrics.find("wall_s");
  const auto images = metrics.find("images");
  if (study.trial.seconds || wall == metrics.end() || images == metrics.end()) return std::nullopt;
  const auto seconds = wall->get<double>();
  if (!(seconds > 0) || seconds >= kShortestTrial) return std::nullopt;
  const double needed = std::ceil(1.2 * images->get<double>() * kShortestTrial / seconds / 100) * 100;
  return fmt::format(
      "a trial of {} is measured for {:.2g} s, which is too short to see what else the machine does: "
      "trial: {{images: {:.0f}}} would make it longer than {:g} s",
      configuration.label, seconds, needed, kShortestTrial);
}

}  // namespace weir::study
