// Requests of given values: the files of perf_analyzer's --input-data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "infer/call.h"
#include "infer/endpoint.h"
#include "infer/tensor.h"
#include "load/inputs/requests.h"

namespace weir::load {

struct InputData {
  std::vector<infer::Request> requests;
  // The outputs that each request must give, to the byte; empty if the data names none.
  std::vector<std::vector<infer::Tensor>> expected;
};

// {"data": [STEP, ...], "validation_data": [STEP, ...]}. A STEP says every input of one row: {"NAME":
// VALUES}, where VALUES is a flat list in row-major order, {"content": LIST, "shape": [...]}, or {"b64":
// TEXT} with or without a shape (also as "content"): little-endian values, of BYTES each with its length in 4
// bytes before it. The shape is without the batch dimension; where it is not said --shape holds, and else one
// free dimension follows from the number of values. Lists of STEPs in "data", the streams of sequence models,
// are taken one after the other.
//
// "validation_data" has the outputs, in the lists that "data" has; an output that one step says all must.
//
// Batches are put together as perf_analyzer does: request k holds the steps from k * batch on, and behind the
// last begins again with the first, until the requests repeat themselves. All rows of one request must have
// the same shapes. `options` gives batch, shapes and outputs.
//
// kCorrupt for what is not JSON. kInvalidArgument, naming the step, the tensor and the remedy, for everything
// else: a wrong number of values, one that its type cannot hold, wrong base64, a tensor that is missing or
// not the model's, more than kMaxRequestBytes a request.
Result<InputData> ReadInputData(std::string_view json, const infer::ModelInfo& model,
                                const std::string& version, const RequestOptions& options);

// A folder with a file for each input, and one for each output to be checked, of the tensor's name: the raw
// bytes of one row, or for BYTES one element a line. Every row of the batch is the same. Hidden files are
// passed over; any other file is kInvalidArgument. kNotFound or kIo where the folder or a file cannot be
// read.
Result<InputData> ReadInputFolder(const std::string& folder, const infer::ModelInfo& model,
                                  const std::string& version, const RequestOptions& options);

}  // namespace weir::load
