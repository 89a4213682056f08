// The token of agents and their callers where none is given: of one user, on this machine.
#pragma once

#include <string>

#include "base/error.h"
#include "cluster/rank.h"

namespace weir::cluster {

// Returns a new token of 64 hexadecimal digits.
Result<std::string> MakeToken();

// Returns the folder for files of this user that others cannot read: $XDG_RUNTIME_DIR/weir,
// /run/user/UID/weir, or /tmp/weir-UID, the first that can be made. kInvalidArgument where a folder of that
// name is another user's or open to others; kIo if none can be made. The remedy is --token-file.
Result<std::string> RuntimeFolder(const Environment& environment);

// Returns the token in `folder`/agent-token, which is made (mode 0600) where it is not there: two processes
// that need it at once get the same. kInvalidArgument if others could have read or written it.
Result<std::string> UserToken(const std::string& folder);
// The same in this process's RuntimeFolder.
Result<std::string> UserToken();

}  // namespace weir::cluster
