// The wording of Triton's errors. Clients of Triton match on it, so `--compat triton` answers with it.
// Source: triton-inference-server/core and triton-inference-server/server. The codes are our own where Triton
// has changed its codes between releases. A `why` is our own reason; it follows in parentheses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "infer/tensor.h"

namespace weir::oip::triton {

inline constexpr const char* kServerName = "triton";
inline constexpr const char* kServerVersion = "2.73.0";  // the release whose clients the tests run

// Returns "[request id: ID] ", the beginning of errors of one request.
std::string RequestPrefix(std::string_view id);

// A model or a version that cannot be had: kNotFound, or kOverloaded if the version is there but not ready.
Error UnknownModel(std::string_view model);
Error NoVersions(std::string_view model, std::string_view why);
Error UnknownVersion(std::string_view model, std::string_view version);
Error VersionNotReady(std::string_view model, std::string_view version, std::string_view why);

// Returns kInvalidArgument unless `version` is empty or a whole number from 0 on.
Status CheckVersion(std::string_view version);

// Loading. Every failure is kInternal.
Error FailedToLoad(std::string_view model, const Error& why);
Error ControlIsOff(std::string_view why);  // kOverloaded

// The error of an input that the model does not have: kInvalidArgument.
Error UnexpectedInput(std::string_view model, std::string_view input);
Error UnexpectedOutput(std::string_view model, std::string_view output);
Error MissingInput(std::string_view id, std::string_view model, size_t wanted, size_t given,
                   std::string_view missing);
Error WrongType(std::string_view id, std::string_view model, std::string_view input, infer::DType given,
                infer::DType wanted);
Error WrongShape(std::string_view id, std::string_view model, std::string_view input,
                 const infer::Shape& given, const infer::Shape& wanted);
Error UnequalBatch(std::string_view id, std::string_view model, std::string_view input);
Error LargeBatch(std::string_view id, std::string_view model, int max_batch);

// Queues: kOverloaded and kDeadline.
Error QueueIsFull(std::string_view id, std::string_view why);
Error TimedOut(std::string_view id, std::string_view why);

// Shared memory.
Error UnknownRegion(std::string_view region);                         // of an inference; kNotFound
Error UnknownRegion(std::string_view kind, std::string_view region);  // of its status; "system" or "cuda"
Error RegionExists(std::string_view region);                          // kInvalidArgument
Error NoGpu(std::string_view region);                                 // kInvalidArgument

}  // namespace weir::oip::triton
