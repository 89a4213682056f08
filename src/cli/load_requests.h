// The requests that `weir load` sends, by its flags.
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "cli/console.h"
#include "cli/load_flags.h"
#include "cli/load_target.h"
#include "load/generator/generator.h"

namespace weir::cli {

// Made for what the target's model takes; not yet prepared. Notes on the console what was left out. A model
// that answers are held against runs here meanwhile.
Result<load::Requests> MakeRequests(const LoadFlags& flags, const LoadTarget& target, const Console& console,
                                    const Clock& clock);

}  // namespace weir::cli
