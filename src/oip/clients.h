// Clients of several servers that one thread can drive. Private to MakeClient.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "http/client_options.h"
#include "infer/endpoint.h"

namespace weir::oip {

// Return a client for each URL. Without threads Drive of one drives all. kInvalidArgument names a URL that is
// wrong.
Result<std::vector<std::unique_ptr<infer::Endpoint>>> MakeHttpClients(const std::vector<std::string>& urls,
                                                                      const http::ClientOptions& options,
                                                                      const Clock& clock);
Result<std::vector<std::unique_ptr<infer::Endpoint>>> MakeGrpcClients(const std::vector<std::string>& urls,
                                                                      const http::ClientOptions& options,
                                                                      const Clock& clock);
// Returns one client whose channel spreads calls over all addresses by the gRPC library's round_robin: those
// of `urls`, or all that one name resolves to. Its Calls tell of each address. kInvalidArgument for several
// names: the library resolves one.
Result<std::unique_ptr<infer::Endpoint>> MakeGrpcRoundRobin(const std::vector<std::string>& urls,
                                                            const http::ClientOptions& options,
                                                            const Clock& clock);

}  // namespace weir::oip
