#include "serve/repository_scan.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <utility>

namespace weir::serve {
namespace {

namespace fs = std::filesystem;

void AddFile(const fs::path& path, std::set<std::string>& lines) {
  std::error_code error;
  const auto size = fs::is_directory(path, error) ? 0 : fs::file_size(path, error);
  const auto changed = fs::last_write_time(path, error).time_since_epoch();
  lines.insert(fmt::format("{}|{}|{}|{}", path.string(), error ? error.value() : 0, error ? 0 : size,
                           error ? 0 : changed.count()));
}

// Returns the path, size and time of change of each file of the model at `path`. A file that cannot be looked
// at is there with its error.
std::string FilesOf(const std::string& path) {
  std::set<std::string> lines;
  AddFile(path, lines);
  std::error_code error;
  AddFile(fs::path(path).replace_extension(".recipe.yaml"), lines);  // of a model that is one file
  fs::recursive_directory_iterator entries(path, error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error))
    AddFile(entries->path(), lines);
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace

Result<RepositoryScan> RepositoryScan::Create(Catalogue catalogue) {
  RepositoryScan scan(std::move(catalogue));
  scan.known_ = TRY(scan.Read());
  scan.last_ = scan.known_;
  return scan;
}

Result<RepositoryScan::Files> RepositoryScan::Read() const {
  Files files;
  for (const auto& [name, path] : TRY(catalogue_.List())) files[name] = FilesOf(path);
  return files;
}

Result<RepositoryScan::Changes> RepositoryScan::Look() {
  Files now = TRY(Read());
  Changes changes;
  for (const auto& [name, files] : now) {
    const auto known = known_.find(name), last = last_.find(name);
    if (known != known_.end() && known->second == files) continue;
    if (last != last_.end() && last->second == files) changes.changed.push_back(name);
  }
  for (const auto& [name, files] : known_) {
    if (!now.contains(name) && !last_.contains(name)) changes.gone.push_back(name);
  }
  for (const std::string& name : changes.changed) known_[name] = now[name];
  for (const std::string& name : changes.gone) known_.erase(name);
  last_ = std::move(now);
  return changes;
}

}  // namespace weir::serve
