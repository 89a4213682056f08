// Files that stay open from one sample to the next. For the readers of this module.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/file.h"

namespace weir::probe {

// Files that stay open from one sample to the next: shards. One thread at a time.
class OpenFiles {
 public:
  // Returns an open file, or -1.
  int Find(const std::string& path) const {
    for (const auto& [name, fd] : files_)
      if (name == path) return fd.get();
    return -1;
  }
  // Keeps a file open, in place of the oldest one if there are too many.
  int Keep(const std::string& path, UniqueFd fd) {
    constexpr size_t kMost = 32;
    if (files_.size() == kMost) files_.erase(files_.begin());
    files_.emplace_back(path, std::move(fd));
    return files_.back().second.get();
  }

 private:
  std::vector<std::pair<std::string, UniqueFd>> files_;
};

}  // namespace weir::probe
