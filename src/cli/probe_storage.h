// `weir probe storage`.
#pragma once

#include "cli/verbs.h"

namespace weir::cli {

int ProbeStorageVerb(const Arguments& arguments);

}  // namespace weir::cli
