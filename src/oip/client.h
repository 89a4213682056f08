// A server elsewhere, as the same seam: Submit sends the call, its Completion gets the answer.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "http/client_options.h"
#include "infer/choices.h"
#include "infer/endpoint.h"

namespace weir::oip {

// Makes a client of `server`: "http://HOST:PORT" or "grpc://HOST:PORT" (a name that is resolved, an IPv4, or
// an IPv6 in brackets), or of several servers of one scheme: "http://HOST:PORT,HOST:PORT". `balance` spreads
// calls over several; kGrpcRoundRobin also over all addresses of one name (infer/several.h says what is sent
// again). A call on a pooled connection that the server had closed before a byte of the answer came is sent
// again, once, where the server can not have begun it; nothing else is. Times: sent (where the caller has
// not) and done are set; over HTTP written and first_byte, too, and done is when the last byte came to this
// host, by the kernel's stamp (the gRPC library tells of a whole answer only). Errors are the server's, with
// the first 1,000 bytes of its words; kIo names an address that cannot be reached; kDeadline; kCancelled when
// the caller's stop token asked. The destructor cancels what is in flight.
Result<std::unique_ptr<infer::Endpoint>> MakeClient(const std::string& server, http::ClientOptions options,
                                                    const Clock& clock,
                                                    infer::Balance balance = infer::Balance::kRoundRobin);

// kInvalidArgument for a policy that has nothing to choose between at `server`.
Status CheckBalance(infer::Balance balance, const std::string& server);

// Returns the URL of each server of a text as MakeClient takes it. kInvalidArgument names what is wrong.
Result<std::vector<std::string>> ServersOf(const std::string& text);

// A model's URL: "http://HOST:PORT/NAME", "grpc://HOST:PORT/NAME", NAME[/versions/V]; of several servers
// "http://HOST:PORT,HOST:PORT/NAME". kInvalidArgument names what is wrong with it.
struct ModelUrl {
  std::string server;  // "http://HOST:PORT", as MakeClient takes it
  std::string model, version;
};
bool IsModelUrl(const std::string& text);
Result<ModelUrl> ParseModelUrl(const std::string& text);

}  // namespace weir::oip
