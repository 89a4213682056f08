// Files with personal data, for their owner alone.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace weir {

// As WriteFileWhole, with mode 0600 whatever was there before.
Status WritePrivateFile(const std::string& path, std::string_view contents);

}  // namespace weir
