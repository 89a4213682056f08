// Files that a command reads and writes, and whether they are apart.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace weir {

// A file and its name for the user: "--json", "the rows of train.yaml". An empty path, and "-", are no file.
struct NamedFile {
  std::string name, path;
};

// Returns kInvalidArgument if an output would overwrite an input, a file inside an input folder, or another
// output. Links are followed.
Status CheckApart(std::vector<NamedFile> inputs, const std::vector<NamedFile>& outputs);

// Returns whether `path` names something inside `folder`, not `folder` itself. Neither must exist.
bool LiesInside(const std::string& path, const std::string& folder);

}  // namespace weir
