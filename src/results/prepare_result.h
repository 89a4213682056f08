// The result of a preparation, as `weir prepare --json` prints it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "results/bottleneck.h"

namespace weir::results {

struct PrepareResult {
  struct Labels {
    int64_t labelled = 0, unlabelled = 0;
    std::vector<std::string> unlabelled_examples;  // names, through EscapeBytes
    int64_t unused = 0;
    std::vector<std::string> unused_examples;
    bool operator==(const Labels&) const = default;
  };
  // Seconds of all workers together; `write`: of the one thread that writes.
  struct Stages {
    double read = 0, network = 0, check = 0, decode = 0, resize = 0, encode = 0, write = 0;
    bool operator==(const Stages&) const = default;
  };

  std::string folder;  // through EscapeBytes
  std::string format;
  int64_t images = 0;
  std::map<std::string, int64_t> rejected;  // by reason
  int64_t skipped = 0;
  std::optional<double> images_per_s;
  double wall_s = 0;
  int64_t bytes_in = 0, bytes_out = 0;
  bool was_finished = false;
  int64_t begun_at = 0, made_again = 0;
  Json splits;  // pictures by share, in the order of the shares; null: there are none
  std::optional<Labels> labels;
  std::optional<int64_t> workers;
  std::optional<Stages> stages_s;
  std::optional<Bottleneck> bottleneck;
  std::optional<int64_t> seed;
  Json provenance;  // record::Provenance::ToJson
  std::string command;

  Json ToJson() const;
  static Result<PrepareResult> FromJson(
      const Json& json);  // kCorrupt names the key; kUnsupported for another schema_version
  bool operator==(const PrepareResult&) const = default;
};

}  // namespace weir::results
