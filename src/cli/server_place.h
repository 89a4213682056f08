// The flags that name a server to watch, and the program's ways to reach it.
#pragma once

#include "base/clock.h"
#include "cli/flags.h"
#include "monitor/server_watch.h"

namespace weir::cli {

// Adds --server-pid, --server-container and --metrics-url.
void AddServerPlace(Flags& flags, monitor::ServerPlace& place);
// `clock` must outlive it.
monitor::ServerAccess MakeServerAccess(const Clock& clock);

}  // namespace weir::cli
