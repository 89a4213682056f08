// Real copies of a set's pictures, for a set of a wanted size.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "base/error.h"
#include "dataset/set_writer.h"

namespace weir::prepare {

struct Copies {
  std::string folder;     // of the set
  int64_t originals = 0;  // its first pictures, which are copied in turn
  int64_t wanted = 0;     // pictures in all
  std::stop_token stop;
};

// Adds copies until there are as many pictures as wanted, going on behind those that are there. Goes over the
// originals' lines of the manifest again and again, so that they need not be held. `after_each` is called for
// each copy, and may end it with an error. kCancelled; kIo.
Status AddCopies(dataset::SetWriter& writer, const Copies& copies, const std::function<Status()>& after_each);

}  // namespace weir::prepare
