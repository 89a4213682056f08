// `weir probe network`, a part of the verb `weir probe`.
#pragma once

#include "cli/verbs.h"

namespace weir::cli {

int ProbeNetworkVerb(const Arguments& arguments);

}  // namespace weir::cli
