// A contact sheet: what came out of a preparation, at a glance.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/error.h"

namespace weir::prepare {

struct PreviewOptions {
  int columns = 8, rows = 8;
  int side = 112;     // pixels of the square that each picture is fitted into
  uint64_t seed = 1;  // of the choice
};

// Returns a JPEG of up to columns * rows pictures of the finished set in `folder`, in their order there. The
// seed chooses them. Below them stands the number of rejected inputs by reason. Reads the manifest once and
// does not hold it.
Result<std::string> MakePreview(const std::string& folder, const PreviewOptions& options);

// Writes the preview of the largest set in `folder` (FindSets) to `file`. Writes nothing if there is no set.
Status WritePreview(const std::string& folder, const std::string& file, const PreviewOptions& options);

}  // namespace weir::prepare
