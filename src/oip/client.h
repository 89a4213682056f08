// A server elsewhere, as the same seam: Submit sends the call, its Completion gets the answer.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "http/client_options.h"
#include "infer/endpoint.h"

namespace weir::oip {

// `url`: "http://HOST:PORT" or "grpc://HOST:PORT" (a name that is resolved, an IPv4, or an IPv6 in brackets).
// A call on a pooled connection that the server had closed before a byte of the answer came is sent again,
// once, where the server can not have begun it; nothing else is. Times: sent (where the caller has not) and
// done are set; over HTTP written and first_byte, too, and done is when the last byte came to this host, by
// the kernel's stamp (the gRPC library tells of a whole answer only). Errors are the server's, with the first
// 1,000 bytes of its words; kIo names an address that cannot be reached; kDeadline; kCancelled when the
// caller's stop token asked. The destructor cancels what is in flight.
Result<std::unique_ptr<infer::Endpoint>> MakeHttpClient(const std::string& url, http::ClientOptions options,
                                                        const Clock& clock);
Result<std::unique_ptr<infer::Endpoint>> MakeGrpcClient(const std::string& url, http::ClientOptions options,
                                                        const Clock& clock);

// A model's URL: "http://HOST:PORT/NAME", "grpc://HOST:PORT/NAME", NAME[/versions/V]. kInvalidArgument names
// what is wrong with it.
struct ModelUrl {
  std::string server;  // "http://HOST:PORT"
  std::string model, version;
};
bool IsModelUrl(const std::string& text);
Result<ModelUrl> ParseModelUrl(const std::string& text);
// By the scheme.
Result<std::unique_ptr<infer::Endpoint>> MakeClient(const std::string& server, http::ClientOptions options,
                                                    const Clock& clock);

}  // namespace weir::oip
