// The results of checks: `weir load --validate --json`, `weir prepare --verify --json`, `weir doctor --json`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace weir::results {

// The rules that a stored result of `weir load` breaks.
struct ValidateResult {
  struct Finding {
    std::string rule, where, what;
    bool fatal = false;
    bool operator==(const Finding&) const = default;
  };
  std::vector<Finding> findings;
  bool keeps_the_rules = true;

  Json ToJson() const;
  static Result<ValidateResult> FromJson(const Json& json);  // kCorrupt names the key, as below
  bool operator==(const ValidateResult&) const = default;
};

// The pictures that are not as the manifest of their set says. Texts go through EscapeBytes.
struct VerifyResult {
  struct Set {
    std::string folder;
    int64_t images = 0, bytes = 0, faults = 0;
    std::vector<std::string> examples;
    bool operator==(const Set&) const = default;
  };
  int64_t faults = 0;
  std::vector<Set> sets;

  Json ToJson() const;
  static Result<VerifyResult> FromJson(const Json& json);
  bool operator==(const VerifyResult&) const = default;
};

// The facts of this machine that matter for a measurement.
struct DoctorResult {
  struct Finding {
    std::string kind, severity;  // of the closed lists of probe/finding.h
    std::string what, meaning, remedy;
    bool operator==(const Finding&) const = default;
  };
  std::vector<Finding> findings;
  int64_t warnings = 0;
  Json provenance;

  Json ToJson() const;
  static Result<DoctorResult> FromJson(const Json& json);
  bool operator==(const DoctorResult&) const = default;
};

}  // namespace weir::results
