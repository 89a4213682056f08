// The results of `weir identities COMMAND --json`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace weir::results {

// Each command has its own part; what another command would have is absent.
struct IdentitiesResult {
  struct Index {
    uint64_t dimension = 0;
    int code_bits = 1;
    std::string model_hash;  // empty: absent
    uint64_t vectors = 0, sealed_vectors = 0, sealed_files = 0;
    std::optional<uint64_t> lists, probes, candidates;  // with a sealed file
    uint64_t memory_bytes = 0, file_bytes = 0, torn_bytes = 0;
    bool operator==(const Index&) const = default;
  };
  // A share, 0 to 1, with its 95 % interval.
  struct Share {
    double value = 0, low = 0, high = 0;
    bool operator==(const Share&) const = default;
  };
  // Microseconds of a look-up. A percentile is absent where too few look-ups support it. In JSON null
  // without a look-up.
  struct Latency {
    std::optional<double> p50, p90, p99, max;
    Json ToValue() const;
    static Result<Latency> FromValue(const Json& json);
    bool operator==(const Latency&) const = default;
  };
  // Names go through EscapeBytes.
  struct Match {
    std::string name;
    double score = 0;
    bool operator==(const Match&) const = default;
  };
  struct Query {
    uint64_t number = 0;
    std::string name;  // empty: absent
    std::vector<Match> matches;
    bool operator==(const Query&) const = default;
  };

  std::optional<uint64_t> added;                                      // build
  std::optional<double> wall_s;                                       // build
  std::optional<uint64_t> enrolled, deleted;                          // enrol, delete
  std::optional<std::vector<std::string>> names;                      // list
  std::optional<bool> whole;                                          // verify
  std::optional<uint64_t> exported;                                   // export
  std::optional<std::vector<Query>> matches;                          // search
  std::optional<uint64_t> queries;                                    // search
  std::optional<uint64_t> mates, strangers;                           // evaluate
  std::optional<double> threshold;                                    // search, evaluate
  std::optional<Share> tpir, fpir, rank_one, exact_rank_one, recall;  // evaluate
  std::optional<Latency> search_us;                                   // search, evaluate
  std::optional<double> rows_scanned_per_query, rows_read_per_query;  // evaluate
  Index index;
  std::string command;

  Json ToJson() const;
  static Result<IdentitiesResult> FromJson(const Json& json);  // kCorrupt names the key
  bool operator==(const IdentitiesResult&) const = default;
};

}  // namespace weir::results
