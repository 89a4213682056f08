// The files of this host that a caller's options may name: those below the folders of --allow-path.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace weir::cluster {

// A value. Links are followed: a path counts as what it leads to.
class AllowedPaths {
 public:
  AllowedPaths() = default;  // none
  // Each is a folder, or the URL of a store (s3://BUCKET/PREFIX, http://HOST/PATH); "/" is all of them.
  // kInvalidArgument names one that is neither.
  static Result<AllowedPaths> Make(const std::vector<std::string>& places);

  // kInvalidArgument unless `path` lies below one of them, or is empty. It need not be there yet. `flag` is
  // for the message.
  Status Check(const std::string& flag, const std::string& path) const;

 private:
  bool Holds(const std::string& path) const;

  std::vector<std::string> places_;  // folders by their canonical names, URLs; each with a slash at its end
};

}  // namespace weir::cluster
