// The flags of `weir probe storage`.
#pragma once

#include <optional>

#include "cli/verbs.h"
#include "probe/storage_request.h"

namespace weir::cli {

// Returns the exit status where the program should end.
std::optional<int> ParseStorageFlags(const Arguments& arguments, probe::StorageRequest& request);

}  // namespace weir::cli
