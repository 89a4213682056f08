// Libraries for CUDA: any bytes are one or a refusal, and nothing outside of them is read.
#include <cstddef>
#include <cstdint>
#include <span>

#include "infer/engines/cuda_code.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir;
  const auto facts = infer::ReadCudaLibrary(std::as_bytes(std::span(data, size)));
  if (facts) infer::ToString(facts->code);
  return 0;
}
