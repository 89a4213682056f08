#include "image/testing/shared_files.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace weir::image::testing {

namespace fs = std::filesystem;

std::optional<std::string> SharedFolder(const std::string& part) {
  const char* named = std::getenv("WEIR_SHARED");
  const fs::path checkout = fs::path(__FILE__).parent_path().parent_path().parent_path().parent_path();
  const fs::path folder = (named != nullptr ? fs::path(named) : checkout.parent_path() / "shared") / part;
  std::error_code error;
  if (!fs::is_directory(folder, error)) return std::nullopt;
  return folder.string();
}

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::vector<std::string>> ReadCsv(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::vector<std::string>& fields = rows.emplace_back(1);
    bool quoted = false;
    for (const char c : line) {
      if (c == '"') {
        quoted = !quoted;
      } else if (c == ',' && !quoted) {
        fields.emplace_back();
      } else {
        fields.back() += c;
      }
    }
  }
  return rows;
}

}  // namespace weir::image::testing
