// The measurements of a study's trials, sorted by configuration, metric and block. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "study/design.h"
#include "study/entries.h"

namespace weir::study {

// Metrics by flat names: {"stages_ms": {"infer": 3}} is stages_ms.infer. Lists, truths and nulls are left
// out.
struct FlatMetrics {
  std::vector<std::pair<std::string, double>> numbers;
  std::vector<std::pair<std::string, std::string>> words;  // such as the bottleneck's name
};
FlatMetrics Flatten(const Json& metrics);

// The try of each trial that stands: the last one, unless an earlier one has the better verdict. In the order
// of the journal. The verdict alone decides, so the choice does not favour high figures.
std::vector<const PlayedTrials*> LastTries(std::span<const PlayedTrials> played);

// Whether its figures count: VALID, or SUSPECT (which is marked wherever it is shown).
bool Counts(const PlayedTrials& played);

class Measured {
 public:
  // `played` must outlive this.
  Measured(const Design& design, std::span<const PlayedTrials> played);

  const std::vector<std::string>& metrics() const { return metrics_; }  // all there are, as first met
  // Returns the values of a configuration's trials that count, references left out, by block.
  std::map<int, double> ByBlock(size_t configuration, const std::string& metric) const;
  std::vector<double> Values(size_t configuration, const std::string& metric) const;
  // The trials of the role kTrial that count and have the metric, in the order in which they were played.
  struct Value {
    const PlayedTrials* played = nullptr;
    double value = 0;
  };
  std::vector<Value> Trials(const std::string& metric) const;
  std::vector<Value> TrialsOf(size_t configuration, const std::string& metric) const;
  // Returns the values of the reference's drift controls in one role.
  std::map<int, double> References(Role role, const std::string& metric) const;
  // How often a metric of words said what, over the trials of a configuration that count.
  std::map<std::string, std::map<std::string, int64_t>> Words(size_t configuration) const;

 private:
  struct One {
    const PlayedTrials* played = nullptr;
    std::map<std::string, double> numbers;
    std::vector<std::pair<std::string, std::string>> words;
  };
  std::vector<One> counted_;
  std::vector<std::vector<size_t>> by_configuration_;  // indices of counted_, role kTrial
  std::vector<std::string> metrics_;
};

}  // namespace weir::study
