// The requests that a load sends, made by its options.
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "load/generator/generator.h"
#include "load/session/options.h"
#include "load/session/target.h"

namespace weir::load {

// Takes a line for the user.
using NoteSink = std::function<void(const std::string& line)>;

// Makes the requests for the target's model; they are not yet prepared. Notes how many pictures were left
// out. Runs the model that --check names, which blocks. kInvalidArgument names options that do not fit
// together.
Result<Requests> RequestsFor(const LoadOptions& options, const Target& target, const NoteSink& note,
                             const Clock& clock);

}  // namespace weir::load
