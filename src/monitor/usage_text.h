// Resource use as text for people.
#pragma once

#include <string>

#include "base/text_style.h"
#include "monitor/resources.h"
#include "monitor/run_command.h"

namespace weir::monitor {

// Returns a line for each quantity that was measured: mean, minimum and maximum.
std::string ResourceText(const TextStyle& style, const Resources& r);

// Returns the times of a command, and its resources.
std::string UsageText(const TextStyle& style, const CommandUsage& usage);

}  // namespace weir::monitor
