// Any HTTP endpoint, one that knows nothing of models, as the same seam.
#pragma once

#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "http/http_response_reader.h"
#include "infer/endpoint.h"
#include "oip/client.h"

namespace weir::oip {

struct PlainRequest {
  std::string method = "POST";
  std::string path = "/";    // with its query
  std::string content_type;  // empty: none is said
  Bytes body;
  uint64_t most_answer = http::kMostBody;  // bytes of the answer's body
  // kRead: the answer's body is the Response's one output, "body" of UINT8.
  infer::RequestForm::Outputs outputs = infer::RequestForm::Outputs::kPassOver;
};

// Thread-safe, but for Drive (as infer::Endpoint's). Every Call is a request that Prepare has made. An answer
// of status 200 to 299 is a Response; any other is the error of that status.
class PlainHttp : public infer::Service {
 public:
  // `url`: "http://HOST:PORT". The options are as a client's.
  static Result<std::unique_ptr<PlainHttp>> Create(const std::string& url, const http::ClientOptions& options,
                                                   const Clock& clock);

  // kInvalidArgument for a method, a path or a header that would not stay one.
  virtual Result<std::shared_ptr<const infer::PreparedRequest>> Prepare(
      const PlainRequest& request) const = 0;
  virtual Duration Drive(Instant until, Duration awake) = 0;  // as infer::Endpoint's
};

// The body of a page, got once, on a connection and a thread of its own. `url`: "http://HOST:PORT/PATH".
// At most 16 MiB. Errors as a client's.
Result<std::string> FetchText(const std::string& url, std::chrono::milliseconds timeout, const Clock& clock);

}  // namespace weir::oip
