// Transfers by libcurl's multi interface.
#pragma once

#include <memory>
#include <string>

#include "object/transport.h"

namespace weir::object {

// `ca_bundle` is a file of certificates to trust instead of the system's; empty: the system's. `clock` must
// outlive it.
std::unique_ptr<Transport> MakeCurlTransport(const Clock& clock, const std::string& ca_bundle);

}  // namespace weir::object
