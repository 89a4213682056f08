// Requests of pictures, decoded and prepared before the clock starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "dataset/recipe.h"
#include "image/decode.h"
#include "infer/call.h"
#include "infer/choices.h"
#include "infer/endpoint.h"

namespace weir::load {

inline constexpr int64_t kMaxPictureBytes = int64_t{512} << 20;  // of all requests together

using infer::Payload;

struct PictureOptions {
  Payload payload = Payload::kTensor;
  int batch = 1;                     // pictures in a request
  int pool_limit = 1024;             // requests, 1 or more
  std::vector<std::string> outputs;  // wanted, by name; empty: all
  image::DecodeOptions decode;
};

struct PictureRequests {
  std::vector<infer::Request> requests;
  // The pictures in them, as found: row i of request k is number (k * batch + i) % names.size().
  std::vector<std::string> names;
  int batch = 1;         // rows in each request
  int64_t rejected = 0;  // were read, and are no input
  int64_t left_out =
      0;  // listed and not among the requests: these are full, or the batches even without them
};

// `paths` are files, folders and prepared sets (dataset::ListInputs), taken in their order until there are
// `pool_limit` requests or kMaxPictureBytes; what lies behind is not read. Request k holds the pictures from
// k * batch on. Where all of them are taken, a request that begins near the last picture goes on with the
// first, and there are as many as differ; else the pictures are a multiple of the batch.
//
// A model that does not batch and has a fixed first dimension gets that many pictures in each request.
//
// kInvalidArgument: no picture can be used, the recipe and the model do not fit, a batch that the model does
// not take or that is larger than kMaxPictureBytes, a set prepared for another geometry. Else what ListInputs
// says.
Result<PictureRequests> MakePictureRequests(const infer::ModelInfo& model, const std::string& version,
                                            const dataset::Recipe& recipe,
                                            const std::vector<std::string>& paths,
                                            const PictureOptions& options);

}  // namespace weir::load
