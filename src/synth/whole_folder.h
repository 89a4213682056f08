// A folder that appears whole or not at all.
#pragma once

#include <string>

#include "base/error.h"

namespace weir::synth {

// A hidden folder beside the one wanted, with a name of its own; Publish gives it the wanted name. Removed
// with all it holds when it was not published. One thread at a time.
class WholeFolder {
 public:
  // Makes the parent of `path` where it is missing. kInvalidArgument when `path` is there and may not be
  // replaced; kIo.
  enum class IfThere { kRefuse, kReplace };
  static Result<WholeFolder> Create(const std::string& path, IfThere if_there);
  WholeFolder(WholeFolder&& other) noexcept;
  ~WholeFolder();

  // Returns the path of the folder to be filled.
  const std::string& path() const { return filling_; }

  // Renames the folder to the wanted name, swapping it with the one to be replaced, which is then removed.
  Status Publish();

 private:
  WholeFolder(std::string wanted, std::string filling, IfThere if_there);

  const std::string wanted_;
  const IfThere if_there_;
  std::string filling_;  // empty: published, or moved from
};

}  // namespace weir::synth
