// The keys of a configuration that is given as JSON.
#pragma once

#include "base/error.h"
#include "base/json.h"

namespace weir::model {

// Checks the keys at every depth. kInvalidArgument names the first that is none, with the path to it and the
// key that was probably meant; kUnsupported names one of Triton's that is not supported. Values are not
// looked at.
Status CheckConfigKeys(const Json& config);

}  // namespace weir::model
