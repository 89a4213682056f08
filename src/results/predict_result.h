// The results of `weir predict --json`, which nothing reads back.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace weir::results {

// The answers to the rows of a file, counted.
struct PredictResult {
  std::string name, target;
  int64_t rows = 0;
  int64_t inside = 0, outside = 0, refused = 0;
  std::map<std::string, int64_t> refusals;  // by reason, through EscapeBytes

  Json ToJson() const;
};

// The answers to rows that flags made.
struct PredictAnswers {
  struct Job {
    double hours = 0, low_hours = 0, high_hours = 0;
    std::optional<double> cost, low_cost, high_cost;
  };
  // Texts go through EscapeBytes.
  struct Answer {
    std::map<std::string, std::string> row;
    std::string regime;
    std::optional<double> value, low, high;  // `value` stands under the target's name
    std::string outside;                     // empty: absent
    std::map<std::string, double> shares;    // by term; empty: absent
    std::optional<Job> job;
  };
  std::string name, target;
  std::vector<Answer> answers;
  std::vector<std::string> taken_as_unknown;  // columns; empty: absent

  Json ToJson() const;
};

// Emulated engines that take the predicted times.
struct PredictEngines {
  // An end of the predictions' intervals: an engine that is as fast, or as slow, as they allow.
  struct Line {
    std::string engine;
    double base_ms = 0, per_item_ms = 0;
  };
  struct Engine {
    std::string hardware, engine;
    double base_ms = 0, per_item_ms = 0, greatest_error = 0;  // the error is relative
    Line fast, slow;
    std::vector<int> batches;
    int64_t batches_outside = 0;
    std::string outside;  // why; empty: absent
  };
  std::string name;
  std::vector<Engine> engines;  // at least one

  Json ToJson() const;
};

// A predictor, explained.
struct PredictModels {
  std::string name, models;

  Json ToJson() const;
};

}  // namespace weir::results
