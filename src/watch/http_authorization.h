// Answers to a server's challenge (RFC 9110, 11.4). Pure.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace weir::watch {

struct Credentials {
  std::string user, password;
};

// The request that is to be authorized.
struct AuthorizedRequest {
  std::string method, target;  // "GET", "/path?query"
  std::string client_nonce;    // of hexadecimal digits; new for each request
};

// Returns the value of the header Authorization for the strongest challenge: Digest by SHA-256 or MD5 (RFC
// 7616), then Basic. `challenges`: the values of the headers WWW-Authenticate; none is taken for Basic.
// kUnsupported names the schemes if none of them is known.
Result<std::string> Authorize(const std::vector<std::string>& challenges, const Credentials& credentials,
                              const AuthorizedRequest& request);

}  // namespace weir::watch
