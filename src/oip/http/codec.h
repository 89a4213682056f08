// Bodies of inference over HTTP: JSON, and the binary tensor extension.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "infer/call.h"
#include "oip/api.h"

namespace weir::oip {

// A body in parts, sent one after the other without being put together.
struct HttpBody {
  std::vector<Bytes> parts;  // the JSON first
  std::optional<size_t>
      header_length;  // of the JSON, where binary tensors follow: Inference-Header-Content-Length
  size_t size() const;
};

// Reads a request. `header_length`: the header of that name; absent: all is JSON. Binary tensors are slices
// of `body`; one that does not lie on a multiple of its element size is copied. kInvalidArgument names what
// is wrong: malformed or too deep JSON, a shape that overflows or is negative, an element count or type that
// does not fit, an integer out of range, bytes left over, duplicate names, reserved parameters; kUnsupported
// for sequences. Names and shapes are not held against a model here.
// Where the protocol leaves it open: null is the same as absent; keys that it does not know are passed over;
// data may be nested in any way, its elements are only counted; BOOL is true or false and nothing else; NaN,
// Infinity, Inf and the negative ones, which JSON does not have, are read and written as Triton does; a float
// that is too large is refused.
Result<InferRequest> ParseHttpRequest(const Bytes& body, std::optional<uint64_t> header_length);

// A request that is nothing but one binary tensor (header length 0), for a model with `input` as its only
// one. Its free dimension, one at most, follows from the size; BYTES is one element.
Result<InferRequest> ParseRawHttpRequest(const Bytes& body, const infer::TensorInfo& input, bool batched);

// The form of the response: the part of the request that outlives the inference.
struct ResponseForm {
  std::vector<RequestedOutput> outputs;
  bool binary_by_default = false;
};

// kInvalidArgument where data have no JSON form (BYTES that are not UTF-8) and binary was not asked for.
// Outputs in a region are written without data. Floats are the shortest decimals that read back as the same
// float. Where binary tensors follow, spaces after the JSON let the first of them lie on a multiple of 64 of
// the body.
Result<HttpBody> WriteHttpResponse(const infer::Response& response, const ResponseForm& form);

// The client's side. All tensors go binary, and are asked for binary, but for those that `form` has in
// regions.
HttpBody WriteHttpRequest(const infer::Request& request, const infer::RequestForm& form = {});
// kInvalidArgument also for an answer that is an error in spite of its status. kPassOver: all but the
// outputs, of which only the sizes are held against shapes and types; one without data is taken to lie in a
// region.
Result<infer::Response> ParseHttpResponse(
    const Bytes& body, std::optional<uint64_t> header_length,
    infer::RequestForm::Outputs outputs = infer::RequestForm::Outputs::kRead);

}  // namespace weir::oip
