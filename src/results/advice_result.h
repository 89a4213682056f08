// The result of `weir advise`: advice.json.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace weir::results {

struct AdviceResult {
  // The mean over `n` trials, with its interval at 95 %; no ends for a single trial.
  struct Expected {
    int64_t n = 0;
    double value = 0;
    std::optional<double> low, high;
    bool operator==(const Expected&) const = default;
  };
  // By metric.
  struct AllExpected {
    Expected throughput_images_per_s;
    std::optional<Expected> p99_ms, memory_bytes;  // of the client and the server
    bool operator==(const AllExpected&) const = default;
  };
  struct Cost {
    std::optional<int64_t> instances;  // that answer the rate
    std::optional<double> per_hour, per_million_images;
    bool operator==(const Cost&) const = default;
  };
  struct Candidate {
    std::string label;
    Json factors = Json::object();  // level by factor
    std::string standing;           // "meets", "misses", "undecided", "not measured", "disturbed"
    std::string why;
    AllExpected expected;
    Cost cost;  // in JSON its keys stand beside the others, as below
    bool operator==(const Candidate&) const = default;
  };
  struct BestExpected {
    Expected throughput;  // its keys stand beside the others
    std::string metric;
    AllExpected all;
    bool operator==(const BestExpected&) const = default;
  };
  struct Best {
    Json configuration = Json::object();  // level by factor
    std::string label;
    BestExpected expected;
    Cost cost;
    std::string bottleneck;  // of most of its trials; empty where none was named
    bool operator==(const Best&) const = default;
  };
  // The best against the runner-up.
  struct Comparison {
    Candidate runner_up;
    bool significant = false;
    std::optional<double> adjusted_p, advantage_low, advantage_high;
    bool operator==(const Comparison&) const = default;
  };
  struct Search {
    int64_t trials = 0, exploration_trials = 0, confirmation_trials = 0, full_factorial_trials = 0;
    std::string ending;
    bool operator==(const Search&) const = default;
  };

  // A predicted accelerator in front of the measured data path, in the configuration that suits it best.
  struct Hardware {
    static constexpr const char* kFed = "fed";  // at least 90 % of what it could do
    static constexpr const char* kNotFed = "not fed";
    static constexpr const char* kUndecided = "undecided";
    static constexpr const char* kNotMeasured = "not measured";

    std::string name;                      // in the predictor's table
    std::string engine;                    // the emulated one in its place
    std::string fast_engine, slow_engine;  // the ends of the prediction
    std::string outside;                   // why it lies outside the predictor's data; empty: inside
    std::string label;                     // of the configuration
    std::string standing;                  // against the targets, as a candidate's
    std::optional<Expected> throughput_images_per_s;   // measured; both uncertainties are in its interval
    std::optional<Expected> accelerator_images_per_s;  // predicted, alone
    std::optional<Expected> fed_share;                 // the first over the second
    std::string feeding = kNotMeasured;
    std::string bottleneck;
    std::optional<double> price_per_hour;
    std::optional<Expected> cost_per_million_images;
    bool operator==(const Hardware&) const = default;
  };

  std::string objective;
  std::vector<std::string> targets;
  std::optional<double> rate_images_per_s;
  std::optional<Best> best;
  std::string no_answer;  // why there is no best
  std::optional<Comparison> comparison;
  std::vector<std::string> notes, measure_next;
  std::vector<Candidate> candidates;
  std::vector<Hardware> hardware;
  std::optional<Search> search;
  std::optional<std::vector<std::string>> files;

  Json ToJson() const;
  static Result<AdviceResult> FromJson(const Json& json);  // kCorrupt names the key
  bool operator==(const AdviceResult&) const = default;
};

}  // namespace weir::results
