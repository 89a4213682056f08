// Finds which models of a repository have changed, by looking at their files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "serve/catalogue.h"

namespace weir::serve {

// Compares the files of each model (paths, sizes, times of change) between looks. A change counts at the
// second look that finds it: files that are still being copied are left alone. Not thread-safe.
class RepositoryScan {
 public:
  struct Changes {
    std::vector<std::string> changed, gone;  // names of models, sorted
  };

  // Takes the files of this moment as known. The errors are those of Catalogue::List.
  static Result<RepositoryScan> Create(Catalogue catalogue);

  // Returns the changes since the last call that returned them. Opens no file. The errors are those of
  // Catalogue::List; after an error nothing counts as changed.
  Result<Changes> Look();

 private:
  using Files = std::map<std::string, std::string>;  // name of a model -> its files, as one text

  explicit RepositoryScan(Catalogue catalogue) : catalogue_(std::move(catalogue)) {}
  Result<Files> Read() const;

  Catalogue catalogue_;
  Files known_;  // what has been returned
  Files last_;   // at the last look
};

}  // namespace weir::serve
