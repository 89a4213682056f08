// Files and RTSP streams through libav (FFmpeg), which is opened while the program runs.
#pragma once

#include <memory>

#include "watch/source.h"

namespace weir::watch {

// kUnsupported where this build was made without libav's headers, or the machine lacks the libraries of the
// same major versions; the message says what to install.
Result<std::unique_ptr<Source>> MakeLibavSource(const StreamSpec& spec, const SourceOptions& options,
                                                const Clock& clock);

}  // namespace weir::watch
