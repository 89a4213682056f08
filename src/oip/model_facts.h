// A server's descriptions of its models, as values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "infer/endpoint.h"

namespace weir::oip {

// Parameters of ModelInfo beside those of the configuration: instances, all together; CPU threads of the
// engine, 0 of an accelerator; whether requests may be computed together. Absent: not told.
inline constexpr const char* kInstances = "instances_in_force";
inline constexpr const char* kThreads = "threads_in_force";
inline constexpr const char* kJoinsRequests = "joins_requests";
// Returns a parameter that is a whole number from 0 on; nullopt for what is none.
std::optional<int64_t> ReadNumber(const std::map<std::string, std::string>& parameters, const char* name);

// Nothing a server says is trusted: kCorrupt names what is missing or of the wrong kind.
Result<infer::ModelInfo> ReadMetadata(const Json& metadata);
// Adds to `info` what its configuration knows: the largest batch, the number of priorities, the instances and
// the parameters that are text.
Status AddConfiguration(const Json& configuration, infer::ModelInfo& info);
// Returns the extensions in a server's metadata; empty if it lists none.
std::vector<std::string> ReadExtensions(const Json& server);
Result<std::vector<std::string>> ReadReadyModels(const Json& index);
Result<infer::PhaseTotals> ReadStatistics(const Json& statistics);

// The same from gRPC: the bytes of an inference.ModelConfig, of which only these fields are read.
Status AddConfigurationMessage(const std::string& message, infer::ModelInfo& info);

// Returns the bytes that add the parameter "labels" to those of an inference.ModelConfig; none for no labels.
std::string LabelsParameter(const std::string& labels);

}  // namespace weir::oip
