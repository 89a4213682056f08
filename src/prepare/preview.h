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

// A JPEG of up to columns * rows pictures of the finished set in `folder`, chosen by the seed, in the order
// in which they stand there, and below them how many inputs were rejected for which reason. The manifest is
// read once, and is not held.
Result<std::string> MakePreview(const std::string& folder, const PreviewOptions& options);

// Writes the preview of the largest set in `folder` (FindSets) to `file`. Writes nothing if there is no set.
Status WritePreview(const std::string& folder, const std::string& file, const PreviewOptions& options);

}  // namespace weir::prepare
