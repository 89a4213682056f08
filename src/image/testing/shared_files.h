// Development photos and broken files that lie beside the checkout, where they are.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace weir::image::testing {

// $WEIR_SHARED, or `shared` beside the checkout; nothing when `part` ("data/images") is not in it.
std::optional<std::string> SharedFolder(const std::string& part);

// The regular files of `folder` in byte order of their names, hidden ones too.
std::vector<std::string> FilesIn(const std::string& folder);

// The fields of each line of a CSV file after its first; quoted fields may hold commas.
std::vector<std::vector<std::string>> ReadCsv(const std::string& path);

}  // namespace weir::image::testing
