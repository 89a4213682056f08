// The provenance of a study: that of this host and program, and the study's models and data.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "results/provenance.h"

namespace weir::results {

struct StudyProvenance {
  struct Model {
    std::string configuration;           // digest of its configuration
    std::optional<uint64_t> file_bytes;  // of its file, where it has one
    std::optional<std::string> file_hash;
    bool operator==(const Model&) const = default;
  };
  // The facts that must not change while a study lasts and that its file does not say.
  struct Materials {
    std::string program;                  // its digest
    std::map<std::string, Model> models;  // by the study's name
    std::optional<int64_t> pictures;
    bool operator==(const Materials&) const = default;
  };
  // Absolute paths, through EscapeBytes.
  struct Paths {
    std::map<std::string, std::string> models;        // by the study's name
    std::map<std::string, std::string> repositories;  // of other servers, by the study's name
    std::optional<std::string> data;
    bool operator==(const Paths&) const = default;
  };

  Provenance common;  // in JSON its keys stand beside the others
  Materials materials;
  Paths resolved;

  Json ToJson() const;
  static Result<StudyProvenance> FromJson(const Json& json);  // kCorrupt names the key
  bool operator==(const StudyProvenance&) const = default;
};

// Returns the JSON of a StudyProvenance without what may change from one run to the next: the command, the
// seed, the wall time, and where models and data lie. A caller's own keys are kept.
Json WithoutWhatMayChange(const Json& provenance);

}  // namespace weir::results
