// The results of `weir fit --json`: of one SPEC, and of the command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace weir::results {

// Errors of predicted times in percent, over `rows` rows that no fit saw.
struct FitScore {
  double median_percent = 0, p90_percent = 0;
  double log_mean_percent = 0;  // exp(mean |log(predicted / measured)|) - 1
  double mean_percent = 0;      // mean |predicted / measured - 1|
  int64_t rows = 0;
  bool operator==(const FitScore&) const = default;
};

// The fit, or the check, of the rows of one SPEC. In JSON a score's keys stand beside the others.
struct FitResult {
  struct Candidate {
    FitScore score;
    std::string name;
    double weight = 0;  // in the mixture
    bool operator==(const Candidate&) const = default;
  };
  struct Group {
    FitScore score;
    std::string name;
    bool operator==(const Group&) const = default;
  };
  // Rows of like measured time: quantiles 50 %, 5 % and 95 % of predicted / measured.
  struct ProfilePoint {
    double measured_ms = 0, predicted_over_measured = 0, low = 0, high = 0;
    int64_t rows = 0;
    bool operator==(const ProfilePoint&) const = default;
  };
  struct Case {
    std::string row, hardware, network;
    double devices = 1, measured_ms = 0, predicted_ms = 0;
    bool operator==(const Case&) const = default;
  };
  struct Split {
    // Names: what the rows were left out by.
    static constexpr const char* kInside = "inside";
    static constexpr const char* kCount = "count";
    static constexpr const char* kHardware = "hardware";
    static constexpr const char* kNetwork = "network";

    FitScore score;
    std::string name;
    double interval_coverage_percent = 0, interval_half_width_percent = 0;
    double interval_score_of_constant = 1;
    std::vector<Candidate> candidates;
    std::optional<std::vector<Group>> by_hardware, by_network, by_devices;
    std::optional<std::vector<ProfilePoint>> profile;
    std::optional<std::vector<Case>> worst;
    bool operator==(const Split&) const = default;
  };
  struct LearningPoint {
    FitScore score;
    int64_t fitted = 0;  // rows
    double answered_percent = 0, interval_coverage_percent = 0;
    bool operator==(const LearningPoint&) const = default;
  };
  struct Finding {
    std::string fault, what;
    std::vector<std::string> rows;
    bool operator==(const Finding&) const = default;
  };

  std::string name, target;
  int64_t rows = 0, skipped = 0, unusable = 0, left_out = 0;
  std::optional<int64_t> usable;              // of a check
  std::optional<int64_t> fitted;              // of a fit, as all that follows but findings
  std::optional<std::vector<Split>> splits;   // empty: too few rows for a cross-validation
  std::vector<LearningPoint> learning_curve;  // empty: absent
  std::vector<Finding> findings;
  std::optional<std::string> models;  // as text
  std::optional<std::string> predictor;
  std::optional<int64_t> seed;
  std::optional<std::string> estimator;
  std::optional<double> wall_s;
  std::optional<std::string> command;

  Json ToJson() const;
  static Result<FitResult> FromJson(const Json& json);  // kCorrupt names the key
  bool operator==(const FitResult&) const = default;
};

// The result of the command: of its only SPEC, whose keys stand beside the others, or a list.
struct FitsResult {
  std::optional<FitResult> only;
  std::optional<std::vector<FitResult>> fits, checks;
  double wall_s = 0;
  Json provenance;
  std::string command;

  Json ToJson() const;
  static Result<FitsResult> FromJson(const Json& json);  // kCorrupt names the key
  bool operator==(const FitsResult&) const = default;
};

}  // namespace weir::results
