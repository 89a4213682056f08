// The protocol's JSON beside inference: what the server tells of itself, and the small bodies it is sent.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "oip/api.h"

namespace weir::oip {

Json ToJson(const ServerMetadata& server);
Json ToJson(const ModelMetadata& model);
Json ToJson(const std::vector<ModelStatistics>& statistics);
Json ToJson(const std::vector<IndexEntry>& index);
Json ToJson(const std::vector<Region>& regions);
Json ToJson(const std::vector<CudaRegion>& regions);

// Bodies may be empty where nothing in them is needed. kInvalidArgument names what is wrong.
Result<bool> ParseIndexBody(std::string_view body);        // "ready": only models that are
Result<std::string> ParseLoadBody(std::string_view body);  // the "config" parameter; empty: none
Status ParseUnloadBody(std::string_view body);
Result<Region> ParseRegionBody(const std::string& name, std::string_view body);
Result<CudaRegion> ParseCudaRegionBody(const std::string& name, std::string_view body);

}  // namespace weir::oip
