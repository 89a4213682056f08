// A folder that lives as long as its holder.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace weir {

// Goes with all that is in it when this ends. One thread at a time.
class TemporaryFolder {
 public:
  // "NAME-XXXXXX" below the system's folder for such things, for this user alone. kIo.
  static Result<TemporaryFolder> Make(std::string_view name);
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path);

  std::string path_;  // empty: moved from
};

}  // namespace weir
