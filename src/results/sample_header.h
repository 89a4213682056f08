// The text in the header of a file of samples, as `weir load --samples` writes it.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace weir::results {

struct SampleHeader {
  std::string model;                // through EscapeBytes
  std::vector<std::string> levels;  // their names, in the order of their numbers

  Json ToJson() const;
  static Result<SampleHeader> FromJson(const Json& json);  // kCorrupt names the key
  bool operator==(const SampleHeader&) const = default;
};

}  // namespace weir::results
