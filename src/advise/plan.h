// The number of storage units, links and hosts that a workload needs, from measured capacities. Pure.
//
// Each work keeps a part of a resource busy: its demand over the capacity of one unit. A resource is enough
// if its busy part stays below the limit. The resource with the least room is the bottleneck.
#pragma once

#include <string>

#include "advise/profiles.h"
#include "advise/workload.h"
#include "base/error.h"
#include "base/text_style.h"
#include "results/plan_result.h"

namespace weir::advise {

// Returns the plan without provenance. kInvalidArgument, with the command that measures it, for a capacity
// that the workload needs and no profile has; kNotFound for a profile or model that nobody knows.
Result<results::PlanResult> MakePlan(const Workload& workload, const Profiles& profiles);

// Lines for people.
std::string PlanText(const TextStyle& style, const results::PlanResult& plan);

}  // namespace weir::advise
