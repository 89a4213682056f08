// One result, as it is kept.
#pragma once

#include <string>

#include "base/error.h"
#include "base/json.h"
#include "record/verdict.h"

namespace weir::record {

struct Record {
  Json factors = Json::object();  // what was set, by name
  Json metrics = Json::object();  // what was measured, by name with its unit; undefined is absent
  Verdict verdict;
  std::string provenance;  // where the Provenance it was measured under is kept: a file's name
  std::string command;     // repeats it

  Json ToJson() const;
  static Result<Record> FromJson(const Json& json);  // kCorrupt names the key
  bool operator==(const Record&) const = default;
};

}  // namespace weir::record
