// Compiled by clang at build time, without any toolkit: the few names of CUDA that it needs are the compiler's.
#include "gpu/normalise.h"

extern "C" __attribute__((global)) void weir_normalise(const unsigned char* levels, const float* table, float* out,
                                                       unsigned pixels, unsigned channels, unsigned planar,
                                                       unsigned long long count) {
  const unsigned long long at = static_cast<unsigned long long>(__nvvm_read_ptx_sreg_ctaid_x()) * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
  if (at < count) weir::gpu::NormaliseLevel(levels, table, out, pixels, channels, planar, at);
}
