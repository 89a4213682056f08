// The way of a request through a model: checked, its data fetched and prepared, queued and computed, its
// answer shaped as the client wants it, and counted.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "http/byte_budget.h"
#include "infer/call.h"
#include "oip/api.h"
#include "oip/status.h"
#include "serve/decode_pool.h"
#include "serve/failure_log.h"
#include "serve/loaded_model.h"
#include "serve/pictures.h"
#include "serve/shared_memory_registry.h"

namespace weir::serve {

// Thread-safe. Must outlive the requests it was given.
class InferencePath {
 public:
  struct Options {
    int decode_threads = 0;             // 0: as many as this process may use CPUs
    size_t max_pictures_waiting = 256;  // requests that wait for the decoders
    size_t max_prepared_bytes = size_t{1} << 30;
    size_t max_region_bytes = size_t{64} << 20;  // of one request's inputs in shared memory
    image::DecodeOptions decode;
    oip::Compat compat = oip::Compat::kNone;  // kTriton: its words for what clients match on
  };
  // `regions` may be null: none are served. All must outlive the path.
  InferencePath(Options options, const SharedMemoryRegistry* regions, const Clock& clock,
                FailureLog& failures);

  // Does not block. Answers exactly once.
  void Start(std::shared_ptr<ServedModel> served, oip::InferRequest request, infer::Completion completion);

 private:
  struct Inference;
  using InferencePtr = std::unique_ptr<Inference>;

  Status Admit(Inference& inference) const;
  Status FetchInputs(Inference& inference) const;
  void Prepare(InferencePtr inference);
  void Submit(InferencePtr inference);
  void LookUp(InferencePtr inference, infer::Tensor embeddings, const infer::Times& times);
  void Finish(InferencePtr inference, Result<infer::Response> result, const infer::Times& times);
  static bool IsLongToShape(const Inference& inference, const infer::Response& response);
  void Answer(Inference& inference, infer::Response response, const infer::Times& times) const;
  Error RegionFailed(std::string_view what, const std::string& region, Error error) const;
  Error RunFailed(const Inference& inference, Error error) const;
  Result<infer::Response> ShapeAnswer(const Inference& inference, infer::Response response) const;
  static bool IsInSharedMemory(const Inference& inference, const Bytes& data);
  Result<infer::Tensor> ShapeOutput(const Inference& inference, const oip::RequestedOutput* wish,
                                    infer::Tensor output) const;
  void Count(Inference& inference, const infer::Response& response, const infer::Times& times,
             Instant now) const;
  void Refuse(Inference& inference, const Error& error, const infer::Times& times) const;

  const Options options_;
  const SharedMemoryRegistry* const regions_;
  const Clock& clock_;
  FailureLog& failures_;
  const std::shared_ptr<http::ByteBudget> prepared_;
  Preparers preparers_;
  DecodePool pool_;  // last: its threads use what is above
};

}  // namespace weir::serve
