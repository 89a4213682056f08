// The result of `weir plan --json`.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace weir::results {

struct PlanResult {
  // A value with its 95 % interval, from the intervals of the measurements.
  struct Estimate {
    double value = 0, low = 0, high = 0;
    bool operator==(const Estimate&) const = default;
  };
  // The part of one work that falls on a resource.
  struct Work {
    std::string name;
    Estimate units;  // of the resource that it keeps fully busy
    std::string arithmetic;
    bool operator==(const Work&) const = default;
  };
  struct Resource {
    std::string resource;  // "storage", "link", "host", "accelerator"
    Estimate needed;       // whole units
    int count = 0;         // that the user has, or else needs
    bool owned = false;    // the workload gives the count
    Estimate scale;        // the multiple of the workload that the count carries
    double busy_percent = 0;
    std::vector<Work> works;
    std::string arithmetic;
    std::vector<std::string> measured_from;  // files
    bool operator==(const Resource&) const = default;
  };
  struct Doubling {
    std::string resource;
    double scale = 0;  // the multiple of the workload that is then carried
    double gain = 0;   // over the plan
    std::string limited_by;
    bool operator==(const Doubling&) const = default;
  };

  std::string name;
  std::vector<Resource> resources;
  std::string bottleneck;  // the resource with the least scale
  Estimate scale;          // its
  bool met = false;        // given counts are enough at the low end of the scale, counted ones by its value
  std::vector<Doubling> doubling;
  std::vector<std::string> assumptions;
  Json provenance = Json::object();

  Json ToJson() const;
  static Result<PlanResult> FromJson(const Json& json);  // kCorrupt names the key
  bool operator==(const PlanResult&) const = default;
};

}  // namespace weir::results
