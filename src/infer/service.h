// The seam. A request becomes a response behind it; who brings requests, or looks at the times that come
// back, does not know whether the other side is a Runner in this process or a server elsewhere.
#pragma once

#include "infer/call.h"

namespace weir::infer {

// Thread-safe.
class Service {
 public:
  virtual ~Service() = default;
  // Takes the call and returns at once. Its Completion is answered exactly once, on any thread, possibly
  // before Submit returns; a full queue answers kOverloaded now.
  virtual void Submit(Call call) = 0;
};

}  // namespace weir::infer
