// The pool of requests that a load run sends again and again, made once before the clock starts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/seed.h"
#include "infer/call.h"
#include "infer/endpoint.h"
#include "infer/tensor.h"

namespace weir::load {

inline constexpr int64_t kMaxRequestBytes = int64_t{1} << 30;  // of all inputs of one request

struct RequestOptions {
  enum class Fill { kRandom, kZero };

  int batch = 1;  // rows in a request; more than 1 only where the model batches (ModelInfo::max_batch > 0)
  // For inputs with free dimensions, by name; without the batch dimension where the model batches.
  std::map<std::string, infer::Shape> shapes;
  Fill fill = Fill::kRandom;
  int pool = 1024;          // requests with different bytes, 1 to 2^20
  std::string string_data;  // every element of the BYTES inputs; empty: random text
  int string_length = 128;  // characters of each random text
  Seed seed{1};
  std::vector<std::string> outputs;  // wanted, by name; empty: all
};

// Requests of random values: floats uniform in [0, 1), integers over their whole range, BOOL 0 or 1, BYTES
// letters and digits. Zero fill gives zeros and empty texts (or `string_data`). The same seed gives the same
// bytes.
//
// Of an input of fixed element size all requests share one block: request i holds the bytes from 64 * i on,
// so the pool costs one payload and 64 bytes a request. Random texts are held for each request; they are at
// most 64 MiB in all, and the pool is the smaller for it. Where nothing is random one request is given.
//
// kInvalidArgument, with the remedy, if CheckRequestOptions refuses the options, a free dimension has no
// shape, or a shape contradicts the model. Also for requests over kMaxRequestBytes, a pool or length out of
// range, and texts for a model without BYTES inputs.
Result<std::vector<infer::Request>> MakeRequests(const infer::ModelInfo& model, const std::string& version,
                                                 const RequestOptions& options);

// The parts from which requests are made, for values of any source.

// kInvalidArgument for a model without inputs, a batch that it does not take, and names in `shapes` or
// `outputs` that it does not have.
Status CheckRequestOptions(const infer::ModelInfo& model, const RequestOptions& options);

// A request for that model without inputs.
infer::Request StartRequest(const infer::ModelInfo& model, const std::string& version,
                            const std::vector<std::string>& outputs);

// The dimensions of one row, free ones -1: those behind the batch dimension where the model batches, all of
// them otherwise.
Result<infer::Shape> RowShape(const infer::ModelInfo& model, const infer::TensorInfo& tensor);
// `given` where it has the rank of `row`, keeps its fixed dimensions, and has no negative ones.
Result<infer::Shape> FitShape(const infer::Shape& row, const infer::Shape& given);
// The shape of `batch` rows: `row` itself where the model does not batch.
infer::Shape RequestShape(const infer::ModelInfo& model, const infer::Shape& row, int batch);

// The data of requests of `batch` rows each: request k holds the rows from k * batch on, and begins again
// with the first behind the last, until the requests repeat themselves (rows / gcd(rows, batch) of them).
// They are slices of one block, which holds JoinedBytes. REQUIRES: a row or more, 1 <= batch.
std::vector<Bytes> JoinRows(std::vector<Bytes> rows, int batch);
int64_t JoinedBytes(const std::vector<Bytes>& rows, int batch);

// One element of a BYTES tensor: its length in 4 bytes, little-endian, and the text.
// REQUIRES: fewer than 2^32 bytes.
Bytes ToElement(std::string_view text);

// The nearest number of 16 bits, ties to even; nothing where that is not finite.
std::optional<uint16_t> ToFp16(double value);
std::optional<uint16_t> ToBf16(double value);

}  // namespace weir::load
